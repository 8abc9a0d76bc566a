package lines

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StatusError is an answer that is no success.
type StatusError struct {
	Status string
	Code   int
	Header http.Header
}

func (e *StatusError) Error() string { return "the answer is " + e.Status }

// Refused are the statuses below 500 by which a server says that it did nothing,
// and may do it at the next try (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4).
var Refused = []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}

// Passing tells whether the status is one that may be gone at the next try.
func Passing(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || slices.Contains(Refused, status)
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

// year is the longest wait: longer ones do not fit everywhere, and nobody waits
// for them.
const year = 365 * 24 * time.Hour

// RetryAfter is what a response asks its client to wait (RFC 9110 §10.2.3), for
// libraries that leave reading it to their users. 0: it says nothing of use.
func RetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if at, err := http.ParseTime(v); err == nil {
		now, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		return min(max(at.Sub(now), 0), year)
	}
	if v == "" || strings.Trim(v, "0123456789") != "" {
		return 0
	}
	seconds, err := strconv.ParseInt(v, 10, 64)
	if err != nil || seconds > int64(year/time.Second) { // out of range
		return year
	}
	return time.Duration(seconds) * time.Second
}
