// Package backoff computes how long to wait before the next attempt when the
// server says nothing about it.
//
// Every formula clamps to the cap before it draws, in whole nanoseconds, so
// that no attempt number overflows and jitter never leads above the cap. The
// generator is handed in: the same seed gives the same schedule.
//
// The package is pure.
package backoff

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heedproject/heed/policy"
)

// unset is the backoff of a policy that says nothing.
var unset = policy.Policy{}.WithDefaults().Backoff

// Wait returns the wait before the n-th retry of a call, counted from 0. Zero
// fields of b stand for their documented defaults. prev is the wait before
// that, which only the decorrelated formula looks at; 0 starts it at Base. rng
// may be nil for the exponential formula, which draws nothing.
//
// The result is never negative and never above the cap.
func Wait(b policy.Backoff, n int, prev time.Duration, rng *rand.Rand) time.Duration {
	base, top := max(cmp.Or(b.Base, unset.Base), 0), max(cmp.Or(b.Cap, unset.Cap), 0)
	v := step(base, top, n)
	switch cmp.Or(b.Formula, unset.Formula) {
	case policy.Exponential:
		return v
	case policy.Equal:
		half := v / 2
		return v - half + below(half, rng)
	case policy.Decorrelated:
		return decorrelated(base, top, prev, rng)
	case policy.Additive:
		j := below(base, rng)
		if v > top-min(j, top) {
			return top
		}
		return v + j
	}
	return below(v, rng)
}

// step is min(top, base·2ⁿ), exactly.
func step(base, top time.Duration, n int) time.Duration {
	n = max(n, 0)
	if n >= 63 || base > top>>n {
		if base == 0 {
			return 0
		}
		return top
	}
	return base << n
}

// decorrelated is uniform in [base, min(top, 3·prev)]. The bound is drawn from
// and not clamped to afterwards, because clamping would pile a part of all
// draws up on top itself.
func decorrelated(base, top, prev time.Duration, rng *rand.Rand) time.Duration {
	prev = max(prev, base)
	high := top
	if prev <= math.MaxInt64/3 {
		high = min(top, 3*prev)
	}
	if high <= base {
		return high
	}
	if span := high - base; span < math.MaxInt64 {
		return base + below(span+1, rng)
	}
	return below(high, rng)
}

// below is uniform in [0, v), and 0 for a v that leaves no room.
func below(v time.Duration, rng *rand.Rand) time.Duration {
	if v <= 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(v)))
}
