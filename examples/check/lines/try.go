package lines

import (
	"io"
	"net/http"
	"slices"
)

// StatusError is an answer that is no success.
type StatusError struct {
	Status string
	Code   int
	Header http.Header
}

func (e *StatusError) Error() string { return "the answer is " + e.Status }

// Passing tells whether the status is one that may be gone at the next try.
func (e *StatusError) Passing() bool {
	return e.Code >= 500 && e.Code != http.StatusNotImplemented ||
		slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, e.Code)
}

// Try makes one attempt, for libraries that repeat any function: the whole
// answer is read, and what is no success is a StatusError.
func Try(client *http.Client, r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.GetBody != nil {
		r.Body, _ = r.GetBody() // of a string: it does not fail
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, Cause(err)
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, &StatusError{resp.Status, resp.StatusCode, resp.Header}
	}
	resp.Body = http.NoBody
	return resp, nil
}
