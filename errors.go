package heed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/mask"
)

// Reason says why a call ended without the answer it was sent for. "We
// decided" and "the server said" are told apart: with an answer of the server
// in hand, RoundTrip returns that answer and no error.
type Reason = call.Reason

// The reasons; package call says what each means.
const (
	DeadlineExceeded  = call.DeadlineExceeded
	QuotaWait         = call.QuotaWait
	OverCeiling       = call.OverCeiling
	Deferred          = call.Deferred
	BreakerOpen       = call.BreakerOpen
	RetryBudget       = call.RetryBudget
	AttemptsExhausted = call.AttemptsExhausted
	NotRepeatable     = call.NotRepeatable
	BodyNotReplayable = call.BodyNotReplayable
	NotAllowed        = call.NotAllowed
	TokenFailed       = call.TokenFailed
	Canceled          = call.Canceled
	PermanentFailure  = call.PermanentFailure
	InvalidAnswer     = call.InvalidAnswer
	TruncatedAnswer   = call.TruncatedAnswer
	StaleAnswer       = call.StaleAnswer
	RetryOff          = call.RetryOff
	Abandoned         = call.Abandoned
)

// Error is what RoundTrip returns when it has no answer to hand over, and Read
// of a body that broke off. It tells operation, endpoint and what to do, and
// never a query, a credential, a body or an identifier in a path.
type Error struct {
	Endpoint string
	Method   string
	Path     mask.Path
	Reason   Reason
	Class    classify.Class    // of the last attempt; Unknown where none was made: see Reason
	Executed classify.Executed // in any attempt
	Status   int               // of the last answer; 0: none
	// RetryAt is the earliest instant at which trying again makes sense. Zero: unknown.
	RetryAt time.Time
	Report  Report
	// Err is the last transport error or the caller's context error, masked
	// when printed. errors.Is(err, context.DeadlineExceeded) holds for every
	// end by deadline.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("heed: %s %s%s: %s", e.Method, e.Endpoint, e.Path, e.Reason)
	if e.Report.Attempts > 0 {
		s += fmt.Sprintf(" after %d attempt(s)", e.Report.Attempts)
	}
	if e.Status != 0 {
		s += fmt.Sprintf(", last status %d", e.Status)
	}
	if e.Class != classify.Unknown {
		s += fmt.Sprintf(" (%s)", e.Class)
	}
	if e.Err != nil {
		s += ": " + mask.Error(e.Err)
	}
	if !e.RetryAt.IsZero() {
		s += "; try again at " + e.RetryAt.UTC().Format(time.RFC3339Nano)
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout tells that time ran out. With it the *url.Error that an http.Client
// puts around e is a timeout in the sense of net.Error, and os.IsTimeout holds,
// as for an http.Transport whose request came to its deadline.
func (e *Error) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }

// MarshalText returns the text of Error, so that no encoder looks at the cause.
func (e *Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }
