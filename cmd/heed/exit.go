package main

import (
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
)

// The exit codes. Those from 65 on are the ones of sysexits.h where it has a
// fitting one, so that schedulers that know 75 (EX_TEMPFAIL) do the right thing.
const (
	exitOK           = 0
	exitFailure      = 1   // heed itself could not do its work
	exitUsage        = 2   // command line or configuration
	exitBadAnswer    = 65  // invalid, truncated or stale: do not use what came
	exitOutage       = 69  // transient, overloaded, breaker open, no connection
	exitUnknown      = 74  // a write was sent and nobody knows whether it was done
	exitTryLater     = 75  // throttled or deferred: reschedule
	exitPermanent    = 76  // repeating cannot help
	exitUnauthorized = 77  // the credential was not accepted, or could not be had
	exitCanceled     = 130 // interrupted
)

const exitHelp = `Exit codes:

     0  ok
     1  heed itself could not do its work
     2  command line or configuration is wrong
    65  the answer is invalid, truncated or stale: do not use it
    69  outage: transient failure, overload, breaker open, no connection; of a write: it was not done
    74  unknown: a write was sent, and nobody knows whether it took effect; also one without a key that was answered 500, 502, 504, or 503 without a Retry-After
    75  try again later: throttled, or deferred
    76  permanent: repeating cannot help; also a redirect (not followed) and a host name that does not exist
    77  the credential was not accepted, or could not be had
   130  interrupted

When it is known from when on another try makes sense, stderr ends in a line "try again at 2026-01-02T15:04:05Z".`

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{exitUsage, err} }

// codeOfClass is the exit code of a call that ended in an answer.
func codeOfClass(c classify.Class) int {
	switch c {
	case classify.OK:
		return exitOK
	case classify.Throttled:
		return exitTryLater
	case classify.Unauthorized:
		return exitUnauthorized
	case classify.Permanent:
		return exitPermanent
	case classify.Invalid, classify.Stale, classify.Truncated:
		return exitBadAnswer
	}
	return exitOutage // overloaded, transient, unknown
}

// codeOfWrite is the exit code of a write whose repetition might do it twice,
// in place of one that asks a scheduler to repeat it, or says that it failed.
func codeOfWrite(code int, done classify.Executed) int {
	switch code {
	case exitOutage, exitTryLater:
		if done != classify.No {
			return exitUnknown
		}
	case exitPermanent, exitUnauthorized:
		if done == classify.Maybe {
			return exitUnknown
		}
	}
	return code
}

// codeOfError is the exit code of a call that ended without an answer. What
// we decided counts first, then what the last attempt meant.
func codeOfError(e *heed.Error) int {
	switch e.Reason {
	case heed.Canceled:
		return exitCanceled
	case heed.QuotaWait, heed.OverCeiling, heed.Deferred:
		return exitTryLater
	case heed.BreakerOpen:
		return exitOutage
	case heed.NotRepeatable:
		if e.Executed == classify.No {
			return exitOutage
		}
		return exitUnknown
	case heed.NotAllowed:
		return exitUsage
	case heed.TokenFailed:
		return exitUnauthorized
	case heed.InvalidAnswer, heed.TruncatedAnswer, heed.StaleAnswer:
		return exitBadAnswer
	case heed.PermanentFailure:
		return exitPermanent
	}
	return codeOfClass(e.Class)
}
