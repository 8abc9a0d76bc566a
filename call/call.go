// Package call follows one logical request from its first attempt to its one
// result. It knows the deadline budget, the attempts so far and whether the
// request may be repeated, and says after each attempt what comes next, and
// why. It does nothing itself: it is told the time and the verdicts, and
// answers with an instant or an end.
//
// The package is pure.
package call

import (
	"math/rand/v2"
	"time"

	"github.com/heedproject/heed/backoff"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// Reason says why a call ended without the answer it was sent for. The set is
// closed; errors, logs, metrics and problem types use these words alike.
type Reason string

// The reasons.
const (
	DeadlineExceeded  Reason = "deadline-exceeded"           // the budget or the caller's deadline is used up
	QuotaWait         Reason = "quota-wait-exceeds-deadline" // the next permitted instant lies beyond it
	OverCeiling       Reason = "hint-over-ceiling"           // the server asks for more than retry.ceiling
	Deferred          Reason = "deferred"                    // as before, for a queue to keep
	BreakerOpen       Reason = "breaker-open"                // the dependency is down
	RetryBudget       Reason = "retry-budget-exhausted"      // client-side retry budget
	AttemptsExhausted Reason = "attempts-exhausted"          // retry.attempts
	NotRepeatable     Reason = "not-repeatable"              // a write whose outcome nobody knows
	BodyNotReplayable Reason = "body-not-replayable"         // the body was too large to keep
	NotAllowed        Reason = "not-allowed"                 // the allow list
	TokenFailed       Reason = "token-failed"                // no credential could be had
	Canceled          Reason = "canceled"                    // the caller gave up
	PermanentFailure  Reason = "permanent"                   // repeating cannot help
	InvalidAnswer     Reason = "invalid-answer"              // answered, and not what it claims to be
	TruncatedAnswer   Reason = "truncated-answer"            // answered, and cut short
	StaleAnswer       Reason = "stale-answer"                // answered from an old copy
	RetryOff          Reason = "retry-off"                   // retrying is switched off for the call
	Abandoned         Reason = "body-abandoned"              // the caller let go of the answer and never closed its body
)

// Action is what comes next.
type Action uint8

// The actions.
const (
	End        Action = iota // hand over what there is
	Again                    // another attempt, not before Decision.At
	Refresh                  // renew the credential, then another attempt at once
	Revalidate               // another attempt at once, past the caches
)

// Decision is what Next says. With End and an empty Reason the call succeeded.
type Decision struct {
	Action Action
	Reason Reason
	// At is the earliest instant of the next attempt. With End it is when
	// trying again makes sense; zero: unknown.
	At     time.Time
	Source policy.WaitSource
	Delay  time.Duration // from now until At
}

// Call is the state of one call. Begin makes it; it is used by one goroutine.
type Call struct {
	Method string
	// Keyed tells that an idempotency key the provider honours is sent.
	Keyed bool
	// Replayable tells that the body can be sent again.
	Replayable bool
	// Renewable tells that the credential can be renewed.
	Renewable bool
	// Queued calls are deferred where a waiting one fails.
	Queued bool
	// Once sends a single attempt.
	Once bool

	Deadline time.Time // zero: none
	Attempts int       // begun so far

	p *policy.Policy
	climbed
}

// climbed is what the next decision depends on beyond the attempts.
type climbed struct {
	delay       time.Duration // the last own backoff, for the decorrelated formula
	retries     int
	refreshed   bool
	revalidated bool
	repeated    bool // a classify.Once was used
}

// Ladder is how far a call has come. A queue keeps it between the attempts, so
// that a restart of the process is none of the call.
type Ladder struct {
	Attempts    int           `json:"attempts,omitempty"` // begun so far
	Retries     int           `json:"retries,omitempty"`  // own backoffs so far
	Delay       time.Duration `json:"delay,omitempty"`    // the last of them, in nanoseconds
	Refreshed   bool          `json:"refreshed,omitempty"`
	Revalidated bool          `json:"revalidated,omitempty"`
	Repeated    bool          `json:"repeated,omitempty"`
}

// Ladder returns how far c has come.
func (c *Call) Ladder() Ladder {
	return Ladder{c.Attempts, c.retries, c.delay, c.refreshed, c.revalidated, c.repeated}
}

// Resume goes on where l was left.
func (c *Call) Resume(l Ladder) {
	c.Attempts = max(l.Attempts, 0)
	c.climbed = climbed{max(l.Delay, 0), max(l.Retries, 0), l.Refreshed, l.Revalidated, l.Repeated}
}

// Begin starts a call now that may take budget (0: the policy's) and must end
// by parent (zero: no such bound). p has its defaults filled in.
func Begin(p *policy.Policy, now time.Time, budget time.Duration, parent time.Time) (c Call) {
	c.p, c.Once, c.Replayable = p, p.Retry.Off, true
	if budget <= 0 || budget > p.Retry.Budget {
		budget = p.Retry.Budget
	}
	if budget != policy.Unlimited {
		c.Deadline = now.Add(budget)
	}
	if !parent.IsZero() && (c.Deadline.IsZero() || parent.Before(c.Deadline)) {
		c.Deadline = parent
	}
	return c
}

// Fits tells whether an attempt may start at t: at least MinAttempt must be
// left of the budget then. An exactly used-up remainder does not fit.
func (c *Call) Fits(t time.Time) bool {
	return c.Deadline.IsZero() || t.Add(c.p.Retry.MinAttempt).Before(c.Deadline)
}

// Next says what follows the attempt that ended in v at now.
func (c *Call) Next(now time.Time, v classify.Verdict, h hint.Hint, rng *rand.Rand) Decision {
	if v.Class == classify.OK {
		return Decision{}
	}
	if end := c.forbids(v); end != "" {
		return Decision{Reason: end, At: told(now, v, h)}
	}
	switch v.Retry {
	case classify.Refresh:
		c.refreshed = true
		return c.atOnce(now, Decision{Action: Refresh, At: now, Source: policy.WaitToken})
	case classify.Revalidate:
		c.revalidated = true
		return c.atOnce(now, Decision{Action: Revalidate, At: now})
	case classify.Once:
		c.repeated = true
	}
	return c.schedule(now, v, h, rng)
}

// atOnce is d, unless not even an attempt that need not wait fits.
func (c *Call) atOnce(now time.Time, d Decision) Decision {
	if !c.Fits(now) {
		return Decision{Reason: c.tooLate(d.Source)}
	}
	return d
}

// told is when the server said, or the rule says, that trying again makes sense.
func told(now time.Time, v classify.Verdict, h hint.Hint) time.Time {
	if floor := floorOf(v, h); floor > 0 {
		return now.Add(floor)
	}
	return time.Time{}
}

func floorOf(v classify.Verdict, h hint.Hint) time.Duration {
	if h.HasWait {
		return max(v.Wait, h.Wait)
	}
	return v.Wait
}

// forbids says why no further attempt may be made, or "".
func (c *Call) forbids(v classify.Verdict) Reason {
	final := finalReason(v.Class)
	switch {
	case v.Retry == classify.Never:
		return final
	case c.Once:
		return RetryOff
	case v.Retry == classify.Refresh && (!c.Renewable || c.refreshed),
		v.Retry == classify.Revalidate && c.revalidated,
		v.Retry == classify.Once && c.repeated:
		return final
	case !v.Repeatable(c.Method, c.Keyed):
		if final != PermanentFailure {
			return final
		}
		return NotRepeatable
	case !c.Replayable:
		return BodyNotReplayable
	case c.p.Retry.Attempts > 0 && c.Attempts >= c.p.Retry.Attempts:
		return AttemptsExhausted
	}
	return ""
}

// finalReason is the reason of a call that ends with class for good.
func finalReason(class classify.Class) Reason {
	switch class {
	case classify.Invalid:
		return InvalidAnswer
	case classify.Truncated:
		return TruncatedAnswer
	case classify.Stale:
		return StaleAnswer
	}
	return PermanentFailure
}

// schedule finds the instant of the next attempt. The server's hint is a
// floor: the wait is the larger of hint and own backoff, plus a positive
// jitter above the hint, so that a fleet does not wake in one instant.
func (c *Call) schedule(now time.Time, v classify.Verdict, h hint.Hint, rng *rand.Rand) Decision {
	r := &c.p.Retry
	own := backoff.Wait(c.p.Backoff, c.retries, c.delay, rng)
	c.delay = own
	c.retries++
	wait, source := max(own, r.MinPause), policy.WaitBackoff
	if floor := floorOf(v, h); floor > 0 {
		if floor > r.Ceiling {
			if r.OverCeiling != policy.Clamp {
				return Decision{Reason: c.overCeiling(), At: now.Add(floor), Source: policy.WaitRetryAfter, Delay: floor}
			}
			floor = r.Ceiling
		}
		if floor >= wait {
			source = policy.WaitRetryAfter
		}
		wait = max(wait, floor)
		wait += min(c.p.Hints.Jitter(floor, rng), policy.Unlimited-wait)
	}
	d := Decision{Action: Again, At: now.Add(wait), Source: source, Delay: wait}
	if !c.Fits(d.At) {
		d.Action, d.Reason = End, c.tooLate(source)
	}
	return d
}

// tooLate is the reason when a wait for source does not fit.
func (c *Call) tooLate(source policy.WaitSource) Reason {
	switch {
	case c.Queued:
		return Deferred
	case source == policy.WaitRetryAfter:
		return QuotaWait
	}
	return DeadlineExceeded
}

func (c *Call) overCeiling() Reason {
	if c.Queued || c.p.Retry.OverCeiling == policy.Defer {
		return Deferred
	}
	return OverCeiling
}
