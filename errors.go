package heed

import (
	"fmt"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/mask"
)

// Reason says why a call ended without the answer it was sent for. The set is
// closed; the words are used in errors, logs, metrics and problem types alike.
type Reason string

// The reasons. "We decided" and "the server said" are told apart: with an
// answer of the server in hand, RoundTrip returns that answer and no error.
const (
	DeadlineExceeded   Reason = "deadline-exceeded"             // the budget or the caller's deadline is used up
	QuotaWait          Reason = "quota-wait-exceeds-deadline"   // the next permitted instant lies beyond it
	OverCeiling        Reason = "hint-over-ceiling"             // the server asks for more than retry.ceiling
	Deferred           Reason = "deferred"                      // as before, for a queue to keep
	BreakerOpen        Reason = "breaker-open"                  // the dependency is down
	RetryBudget        Reason = "retry-budget-exhausted"        // client-side retry budget
	AttemptsExhausted  Reason = "attempts-exhausted"            // retry.attempts
	NotRepeatable      Reason = "not-repeatable"                // a write whose outcome nobody knows
	BodyNotReplayable  Reason = "body-not-replayable"           // the body was too large to keep
	NotAllowed         Reason = "not-allowed"                   // the allow list
	TokenFailed        Reason = "token-failed"                  // no credential could be had
	Canceled           Reason = "canceled"                      // the caller gave up
	PermanentFailure   Reason = "permanent"                     // repeating cannot help
	InvalidAnswer      Reason = "invalid-answer"                // answered, and not what it claims to be
	TruncatedAnswer    Reason = "truncated-answer"              // answered, and cut short
	StaleAnswer        Reason = "stale-answer"                  // answered from an old copy
	RetryOff           Reason = "retry-off"                     // retrying is switched off for the call
)

// Error is what RoundTrip returns when it has no answer to hand over. It tells
// operation, endpoint and what to do, and never a query, a credential, a body
// or an identifier in a path.
type Error struct {
	Endpoint string
	Method   string
	Path     mask.Path
	Reason   Reason
	Class    classify.Class // of the last attempt
	Executed classify.Executed
	Status   int // of the last answer; 0: none
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
