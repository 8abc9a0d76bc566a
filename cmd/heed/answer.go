package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
)

// readError is a failure of the answer, not of the place it is written to.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// source marks the errors of a body, so that they can be told from a full disk.
type source struct{ io.Reader }

func (s source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}

// deliver streams the answer to stdout or into the file.
func deliver(resp *http.Response, out *output, w *watch) error {
	defer resp.Body.Close()
	_, err := io.Copy(out, io.TeeReader(source{resp.Body}, w))
	if err != nil || codeOfAnswer(resp) != exitOK || resp.StatusCode == http.StatusNotModified {
		return err
	}
	return out.keep()
}

// redirected tells whether resp only says where the answer is.
func redirected(resp *http.Response) bool { return redirects(resp.StatusCode) }

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirection says where to, as a host: path and query of a Location often
// hold what lets its bearer in.
func redirection(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil || to.Host == "" {
		return "heed: redirected, and not told where to; look for the URL of today"
	}
	return fmt.Sprintf("heed: redirected to %s, which heed call does not follow; give that URL (it is the Location of the answer)", to.Host)
}

// success tells a status that by itself means that all is well (RFC 9110 §15.3).
func success(status int) bool { return status/100 == 2 }

func codeOfAnswer(resp *http.Response) int {
	if redirected(resp) {
		return exitPermanent
	}
	if rep, ok := heed.ReportOf(resp); ok {
		return codeOfClass(rep.Class)
	}
	return exitOutage
}

// ending is how a call ended, for programs.
type ending struct {
	Exit     int        `json:"exit"`
	Class    string     `json:"class"`
	Reason   string     `json:"reason,omitempty"`
	Executed string     `json:"executed,omitempty"`
	Endpoint string     `json:"endpoint,omitempty"`
	Status   int        `json:"status,omitempty"`
	Attempts int        `json:"attempts"`
	Waited   float64    `json:"waited_seconds"`
	Bytes    int64      `json:"bytes"`
	Rule     string     `json:"rule,omitempty"` // what decided the class
	RetryAt  *time.Time `json:"retry_at,omitempty"`
	Message  string     `json:"message,omitempty"`
	Doubts   []doubt    `json:"unverified,omitempty"`
}

// report tells how the call ended and sets the exit code.
func (c *callCmd) report(sh *shell, resp *http.Response, err error, w *watch) error {
	w.close()
	end := ending{Bytes: w.bytes, RetryAt: w.retryAt(), Doubts: w.doubts}
	if resp != nil {
		end.answered(resp, w.write)
	}
	if err != nil {
		end.failed(sh, err, w.write)
	}
	if end.Exit == exitOK || end.Exit == exitUnknown { // whoever looks first knows when
		end.RetryAt = nil
	}
	sh.code = end.Exit
	if c.Output == "" && (c.JSON || end.Exit != exitOK || end.Doubts != nil) {
		w.newline()
	}
	if !c.JSON {
		w.sayDoubts()
	}
	switch {
	case c.JSON:
		return json.NewEncoder(sh.err).Encode(end)
	case end.Exit == exitOK:
		return nil
	case end.Message != "":
		sh.say("heed: %s", strings.TrimPrefix(end.Message, "heed: "))
	default:
		sh.say("heed: ended with status %d (%s) after %d attempt(s)", end.Status, end.Class, end.Attempts)
	}
	if end.Rule != "" && (end.Exit == exitBadAnswer || success(end.Status)) {
		sh.say("heed: what shows it is the rule %q", end.Rule)
	}
	if end.Exit == exitUnknown {
		sh.say("heed: nobody knows whether the write was done: look there before it is sent again, or send it with --key where the API honours keys")
	}
	if end.RetryAt != nil {
		sh.say("try again at %s", end.RetryAt.Format(time.RFC3339))
	}
	return nil
}

// answered fills in what an answer tells, of a write that must not be repeated
// or of another call.
func (e *ending) answered(resp *http.Response, write bool) {
	e.Status, e.Exit = resp.StatusCode, codeOfAnswer(resp)
	rep, ok := heed.ReportOf(resp)
	e.Class, e.Rule, e.Attempts, e.Waited = rep.Class.String(), rep.Rule, rep.Attempts, rep.Waited.Seconds()
	switch {
	case redirected(resp): // it has to be asked for elsewhere, so that nothing is said of executed
		e.Class, e.Message = classify.Permanent.String(), redirection(resp)
		return
	case ok:
		e.Executed = rep.Executed.String()
	}
	if write {
		e.Exit = codeOfWrite(e.Exit, rep.Executed)
	}
}

// failed fills in what an error tells. That an answer broke off, or could not
// be kept, says nothing more about a write than its status did.
func (e *ending) failed(sh *shell, err error, write bool) {
	if doubt := *e; doubt.Exit == exitUnknown {
		defer func() {
			if e.Exit != exitCanceled {
				e.Exit = exitUnknown
			}
			e.Executed = doubt.Executed
		}()
	}
	e.Message = err.Error()
	if he, ok := errors.AsType[*heed.Error](err); ok {
		e.Exit = codeOfError(he)
		if write {
			e.Exit = codeOfWrite(e.Exit, he.Executed)
		}
		e.Class, e.Reason, e.Executed = he.Class.String(), string(he.Reason), he.Executed.String()
		e.Endpoint, e.Status, e.Rule = he.Endpoint, he.Status, he.Report.Rule
		e.Attempts, e.Waited = he.Report.Attempts, he.Report.Waited.Seconds()
		if !he.RetryAt.IsZero() {
			e.RetryAt = whole(he.RetryAt)
			told := *he
			told.RetryAt = time.Time{} // has a line, or a member, of its own
			e.Message = strings.Replace(e.Message, he.Error(), told.Error(), 1)
		}
		return
	}
	e.Exit = exitFailure
	if _, ok := errors.AsType[*readError](err); ok {
		e.Exit, e.Class = exitBadAnswer, classify.Truncated.String()
		e.Message = fmt.Sprintf("heed: the answer broke off after %d bytes; do not use it", e.Bytes)
	}
	if sh.ctx.Err() != nil {
		e.Exit, e.Reason = exitCanceled, string(heed.Canceled)
	}
}

// whole rounds t up to the second, so that trying again then is not too early.
func whole(t time.Time) *time.Time {
	up := t.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second)
	return &up
}
