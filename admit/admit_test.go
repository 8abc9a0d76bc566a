package admit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func agreed(change func(*policy.Policy)) *policy.Policy {
	p := policy.Policy{Limits: policy.Limits{Learn: policy.Learn{Off: true}}}
	if change != nil {
		change(&p)
	}
	p = p.WithDefaults()
	return &p
}

func gateOf(change func(*policy.Policy)) *Gate { return NewGate(agreed(change), seeded(1)) }

var (
	anyone   = Ask{Group: -1}
	ok       = classify.Verdict{Class: classify.OK, Executed: classify.Yes}
	failed   = classify.Verdict{Class: classify.Transient, Retry: classify.Idempotent, Scope: classify.ScopeHost}
	throttle = classify.Verdict{Class: classify.Throttled, Executed: classify.No, Retry: classify.Any, Scope: classify.ScopeKey}
	overload = classify.Verdict{Class: classify.Overloaded, Executed: classify.No, Retry: classify.Any, Scope: classify.ScopeHost}
)

func after(d time.Duration) hint.Hint { return hint.Hint{Wait: d, HasWait: true} }

// leave lets one attempt out at now, which must be permitted.
func leave(t *testing.T, g *Gate, now time.Time) Pass {
	t.Helper()
	a := g.Admit(now, anyone)
	if a.Kind != Go {
		t.Fatalf("at %v: got %d until %v for %s, want go", now.Sub(start), a.Kind, a.At.Sub(start), a.Source)
	}
	return a.Pass
}

// answer tells g that the attempt p came to v, with status 200 or 500.
func answer(g *Gate, now time.Time, p Pass, v classify.Verdict, h ...hint.Hint) Told {
	r := Result{Pass: p, Verdict: v, Status: 500}
	if v.Class == classify.OK {
		r.Status = 200
	}
	if len(h) > 0 {
		r.Hint = h[0]
	}
	g.Release(now, p)
	return g.Observe(now, r)
}

// exchange sends one attempt at now that comes to v at once.
func exchange(t *testing.T, g *Gate, now time.Time, v classify.Verdict, h ...hint.Hint) Told {
	t.Helper()
	return answer(g, now, leave(t, g, now), v, h...)
}

func TestAGateIsCalmWhileASuccessWouldTeachItNothing(t *testing.T) {
	g := gateOf(nil)
	for i, c := range []struct {
		v    classify.Verdict
		calm bool
	}{{ok, true}, {failed, false}, {ok, true}, {overload, false}, {ok, true}, {throttle, false}} {
		now := start.Add(time.Duration(i) * time.Second)
		if exchange(t, g, now, c.v); g.Calm() != c.calm {
			t.Errorf("after %s: got calm %v, want %v", c.v.Class, g.Calm(), c.calm)
		}
	}
}

func TestOnlyASuccessWithoutAWordAboutTheQuotaIsPlain(t *testing.T) {
	quota, wait := quotaSaid(5, 10, 0), after(time.Second)
	for _, c := range []struct {
		v    classify.Verdict
		f    classify.Failure
		h    hint.Hint
		want bool
	}{
		{ok, classify.NoFailure, hint.Hint{}, true},
		{ok, classify.NoFailure, wait, true},
		{ok, classify.NoFailure, quota, false},
		{ok, classify.BodyCut, hint.Hint{}, false},
		{failed, classify.NoFailure, hint.Hint{}, false},
	} {
		if got := Plain(&c.v, c.f, &c.h); got != c.want {
			t.Errorf("%s, %s, %+v: got %v, want %v", c.v.Class, c.f, c.h, got, c.want)
		}
	}
}
