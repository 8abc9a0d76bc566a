package token

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/mask"
)

// The errors of a Source that does not fetch.
var (
	// ErrFixed says that a credential that was set by hand was rejected.
	ErrFixed = errors.New("token source: the credential is fixed and cannot be renewed: check it")
	// ErrClosed says that the Source was closed before it had a credential.
	ErrClosed = errors.New("token source: the source is closed")

	errNoFetcher       = errors.New("token source: no fetcher: set Source.Fetcher")
	errExpired   error = why("the issuer gave a credential that has already expired: check the clocks")
	errSlow      error = why("no answer in time")
	errRefused   error = why("the issuer refuses: check the credential and the url")
	errExit      error = why("the fetcher ended its goroutine")
)

// why is a cause in words of our own, in which nothing has to be masked.
type why string

func (w why) Error() string { return string(w) }

// Error is a fetch that failed. It tells the issuer's host and path template
// and the status, never a credential, a query or the body of the answer.
type Error struct {
	Op   string // what was tried, such as "folio login"
	Host string
	Path mask.Path
	// Status is that of the answer. 0: there was none.
	Status int
	// Code is the error code of RFC 6749 §5.2, where the issuer sent one.
	Code string
	// Refused tells that the issuer understood and said no: the same request
	// will not succeed until a person corrects the credential.
	Refused bool
	// RetryAt is when the Source will ask the issuer again.
	RetryAt time.Time
	Err     error
}

// Error implements error. The cause is masked: net/http quotes what it cannot
// read, and an issuer that echoes the request has the credential quoted.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("token source: ")
	b.WriteString(e.Op)
	if e.Host != "" {
		fmt.Fprintf(&b, " at %s%s", e.Host, e.Path)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Why())
	}
	if !e.RetryAt.IsZero() {
		b.WriteString("; not tried again before " + e.RetryAt.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Why is the cause without the place and the status, for those who need not
// know them: our own words, or the masked text of another error.
func (e *Error) Why() string {
	if w, ok := errors.AsType[why](e.Err); ok {
		return string(w)
	}
	return mask.Error(e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MarshalText returns the text of Error, so that no encoder looks at the cause.
func (e *Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// withRetry returns err as an Error of its own that carries the instant.
func withRetry(err error, at time.Time) *Error {
	own := &Error{Op: "fetch", Err: err}
	if e, ok := errors.AsType[*Error](err); ok {
		*own = *e
	}
	own.RetryAt = at
	return own
}

// panicked tells of a panic in a Fetcher. What was thrown may hold anything,
// so that only the runtime's own messages are repeated.
func panicked(thrown any) error {
	if err, ok := thrown.(runtime.Error); ok {
		return fmt.Errorf("the fetcher panicked: %w", err)
	}
	return fmt.Errorf("the fetcher panicked with a %T", thrown)
}

// bare strips the request URL that an http.Client puts around an error.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// codes is the closed set of RFC 6749 §5.2. Nothing else that an issuer writes
// is repeated.
var codes = []string{
	"invalid_request", "invalid_client", "invalid_grant",
	"unauthorized_client", "unsupported_grant_type", "invalid_scope",
}

// Answered returns the Error of an issuer that answered op with status, for
// Fetchers outside this package. A code that RFC 6749 does not know is dropped.
func Answered(op string, status int, code string) *Error {
	e := &Error{Op: op, Status: status}
	if slices.Contains(codes, code) {
		e.Code = code
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return e
	}
	if status >= 300 && status < 500 {
		e.Refused = true
		e.Err = errRefused
	}
	return e
}
