package policy

import (
	"math/rand/v2"
	"time"
)

// or returns v unless it is the zero value, else d.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// WithDefaults returns p with every zero field at its documented default.
func (p Policy) WithDefaults() Policy {
	p.Retry.Budget = or(p.Retry.Budget, 60*time.Second)
	p.Retry.MinAttempt = or(p.Retry.MinAttempt, 50*time.Millisecond)
	p.Retry.MinPause = or(p.Retry.MinPause, 10*time.Millisecond)
	p.Retry.Ceiling = or(p.Retry.Ceiling, 300*time.Second)
	p.Retry.OverCeiling = or(p.Retry.OverCeiling, Fail)
	p.Retry.Tokens.Capacity = or(p.Retry.Tokens.Capacity, 500)
	p.Retry.Tokens.Throttled = or(p.Retry.Tokens.Throttled, 5)
	p.Retry.Tokens.Transient = or(p.Retry.Tokens.Transient, 14)

	p.Backoff.Formula = or(p.Backoff.Formula, Full)
	p.Backoff.Base = or(p.Backoff.Base, time.Second)
	p.Backoff.Cap = or(p.Backoff.Cap, 30*time.Second)

	p.Hints.JitterMax = or(p.Hints.JitterMax, time.Second)
	p.Hints.JitterRatio = or(p.Hints.JitterRatio, 0.1)

	p.Limits.Burst = or(p.Limits.Burst, 1)
	p.Limits.Reserve = or(p.Limits.Reserve, 5)
	p.Limits.TenantShare = or(p.Limits.TenantShare, 1)

	p.Breaker = p.Breaker.withDefaults()

	p.Timeouts.Connect = or(p.Timeouts.Connect, 10*time.Second)
	p.Timeouts.Header = or(p.Timeouts.Header, 60*time.Second)
	p.Timeouts.Idle = or(p.Timeouts.Idle, 60*time.Second)

	p.Verify.Mode = or(p.Verify.Mode, VerifyHead)
	p.Verify.SpoolLimit = or(p.Verify.SpoolLimit, 1<<30)

	p.Key.From = or(p.Key.From, KeyGiven)
	p.Key.MaxLen = or(p.Key.MaxLen, 255)
	if p.Key.Methods == nil {
		p.Key.Methods = []string{"POST", "PATCH"}
	}
	return p
}

func (b Breaker) withDefaults() Breaker {
	b.Consecutive = or(b.Consecutive, 10)
	b.Window = or(b.Window, 30*time.Second)
	b.MinCalls = or(b.MinCalls, 20)
	b.Open = or(b.Open, time.Second)
	b.OpenMax = or(b.OpenMax, 30*time.Second)
	b.Growth = or(b.Growth, 2)
	b.Jitter = or(b.Jitter, 0.1)
	b.Lease = or(b.Lease, 30*time.Second)
	b.OnOpen = or(b.OnOpen, OnOpenWait)
	b.Health.Method = or(b.Health.Method, "GET")
	return b
}

// Jitter draws the positive extra above a wait that the server asked for. h
// has its defaults filled in, as WithDefaults does.
func (h Hints) Jitter(wait time.Duration, rng *rand.Rand) time.Duration {
	top := min(float64(h.JitterMax), h.JitterRatio*float64(wait))
	if !(top >= 1) {
		return 0
	}
	return time.Duration(rng.Float64() * top)
}

// Cost is how many tokens a retry after a throttle, or after anything else,
// takes. t has its defaults filled in, as WithDefaults does.
func (t Tokens) Cost(throttled bool) int {
	if throttled {
		return t.Throttled
	}
	return t.Transient
}
