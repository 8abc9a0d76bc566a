package observe

import (
	"log/slog"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
)

// How long the strings may be that a caller chooses.
const (
	maxID     = 128
	maxTenant = 64
)

const (
	adviceOpen  = "no call leaves until the health check passes: look at the provider's status page; calls wait, fail or are queued as the policy says"
	adviceToken = "no new credential could be had: check the token endpoint and the secret; a credential that is still valid goes on being used"
)

// Which lines Options.Attempts and Options.Calls ask for.
const (
	All     = "all"
	Retried = "retried"
	None    = "none"
)

// wanted tells whether which asks for a line about a step that was, or was
// not, part of a retry.
func wanted(which string, retried bool) bool {
	return which == All || which == Retried && retried
}

// wants tells whether e gets a line at all.
func (o *Observer) wants(e *heed.Event, level slog.Level) bool {
	if o.sink == nil || level < o.level {
		return false
	}
	switch e.Kind {
	case heed.AttemptDone:
		return wanted(o.attempts, e.Retry || e.Attempt > 1)
	case heed.CallDone:
		return wanted(o.calls, e.Attempt > 1)
	}
	return true
}

// title returns level and message of the line about e.
func title(e *heed.Event) (slog.Level, string) {
	switch e.Kind {
	case heed.AttemptDone:
		return outcome(e), "attempt done"
	case heed.CallDone:
		return outcome(e), "call done"
	case heed.WaitBegun:
		return slog.LevelInfo, "call waits"
	case heed.BreakerChanged:
		switch {
		case e.Reason == heed.ProbeFailed:
			return slog.LevelWarn, "breaker stays open"
		case e.Breaker == open:
			return slog.LevelError, "breaker opened"
		}
		return slog.LevelInfo, "breaker changed"
	case heed.TokenRenewed:
		if e.Reason != "" {
			return slog.LevelWarn, "token not renewed"
		}
		return slog.LevelInfo, "token renewed"
	case heed.HintInvalid:
		return slog.LevelWarn, "retry-after not readable"
	}
	return slog.LevelDebug, "unknown step"
}

// outcome is warn for what did not get its answer, unless nobody waits for it:
// an attempt of which nobody knows is one that the caller cancelled.
func outcome(e *heed.Event) slog.Level {
	switch {
	case e.Class == classify.OK && e.Reason == "", e.Kind == heed.CallDone && goesOn(e), e.Reason == string(call.Canceled),
		e.Class == classify.Unknown && e.Kind == heed.AttemptDone:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// put writes e as the keys of Fields, in that order.
func (l *line) put(e *heed.Event, level slog.Level, msg string) {
	l.begin(e.Time.UTC(), level, msg)
	l.str("kind", e.Kind.String())
	l.str("endpoint", bound(e.Endpoint, maxID))
	l.some("method", bound(e.Method, maxTenant))
	if e.Path != "" {
		l.str("path", e.Path.String())
	}
	if e.Attempt > 0 {
		l.num("attempt", int64(e.Attempt))
	}
	step := e.Kind == heed.AttemptDone || e.Kind == heed.CallDone
	if step || e.Kind == heed.BreakerChanged || e.Kind == heed.TokenRenewed {
		l.num("status_code", int64(e.Status))
	}
	if step {
		l.str("class", e.Class.String())
		l.str("executed", e.Executed.String())
	}
	if step || e.Kind == heed.TokenRenewed {
		l.some("rule", e.Rule)
	}
	l.waits(e)
	if e.HasRetry {
		l.secs("retry_after", e.RetryAfter)
	}
	if e.HasRemain {
		l.num("rate_limit_remaining", e.Remaining)
	}
	l.some("correlation_id", bound(e.CorrelationID, maxID))
	l.some("call_id", e.CallID.String())
	l.some("tenant", bound(e.Tenant, maxTenant))
	if step {
		l.secs("elapsed", e.Elapsed)
		l.num("wire_attempts", int64(e.WireAttempts))
	}
	l.some("breaker", e.Breaker)
	l.some("reason", e.Reason)
	if e.Kind == heed.CallDone {
		l.num("bytes", e.Bytes)
	}
	l.some("advice", advice(e))
}

func (l *line) waits(e *heed.Event) {
	if e.Kind == heed.AttemptDone {
		l.flag("retry", e.Retry)
	}
	switch e.Kind {
	case heed.AttemptDone, heed.WaitBegun:
		l.secs("delay", e.Delay)
		l.secs("waited", e.Waited)
	case heed.BreakerChanged:
		l.secs("delay", e.Delay)
	case heed.CallDone:
		l.secs("waited", e.Waited)
	default:
		return
	}
	l.some("wait_source", string(e.WaitSource))
}

func advice(e *heed.Event) string {
	switch {
	case e.Kind == heed.BreakerChanged && e.Breaker == open && e.Reason != heed.ProbeFailed:
		return adviceOpen
	case e.Kind == heed.TokenRenewed && e.Reason != "":
		return adviceToken
	}
	return ""
}
