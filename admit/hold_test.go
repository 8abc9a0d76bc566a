package admit

import (
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

func plain(p *policy.Policy) { p.Hints.JitterMax = -1 }

func TestAHintClosesTheKeyForEverybody(t *testing.T) {
	g := gateOf(plain)
	told := exchange(t, g, start, throttle, after(5*time.Second))
	if got := told.Until.Sub(start); got != 5*time.Second || told.Source != policy.WaitRetryAfter {
		t.Errorf("told %v for %s, want 5s for retry_after", got, told.Source)
	}
	for at := range 5 {
		a := g.Admit(start.Add(time.Duration(at)*time.Second), anyone)
		if a.Kind != Wait || !a.Everyone || !a.At.Equal(told.Until) || a.Source != policy.WaitRetryAfter {
			t.Errorf("after %d s: got %+v, want everyone to wait until 5s", at, a)
		}
	}
	leave(t, g, told.Until)
}

func TestTheKeyNeverOpensBeforeTheHint(t *testing.T) {
	for seed := range uint64(10_000) {
		g := NewGate(agreed(nil), seeded(seed))
		told := exchange(t, g, start, throttle, after(2*time.Second))
		if wait := told.Until.Sub(start); wait < 2*time.Second || wait > 2200*time.Millisecond {
			t.Fatalf("got %v, want within [2s, 2.2s]", wait)
		}
	}
}

func TestAClusterOfThrottlesIsOneCut(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Limits.Rate, p.Limits.Burst = 100, 50 })
	var passes []Pass
	for range 40 {
		passes = append(passes, leave(t, g, start))
	}
	for i, p := range passes {
		answer(g, start.Add(time.Duration(i)*time.Microsecond+1), p, throttle)
	}
	if g.pace.rate != 95 || g.hold.misses != 1 {
		t.Errorf("got rate %v after %d misses, want 95 after 1", g.pace.rate, g.hold.misses)
	}
	if got := g.hold.until.Sub(start); got != blindHold+1 {
		t.Errorf("got closed for %v, want %v from the first throttle", got, blindHold)
	}
}

func TestALongerHintOfTheSameClusterCounts(t *testing.T) {
	g := gateOf(plain)
	a, b, c := leave(t, g, start), leave(t, g, start), leave(t, g, start)
	now := start.Add(time.Millisecond)
	answer(g, now, a, throttle, after(time.Second))
	answer(g, now, b, throttle, after(3*time.Second))
	answer(g, now, c, throttle, after(2*time.Second))
	if got := g.hold.until.Sub(now); got != 3*time.Second {
		t.Errorf("got %v, want the longest hint of 3s", got)
	}
}

func TestWithoutAHintTheHoldDoubles(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Backoff.Cap = 150 * time.Millisecond })
	now := start
	for _, want := range []time.Duration{25, 50, 100, 150, 150} {
		now = now.Add(time.Second)
		told := exchange(t, g, now, throttle)
		if got := told.Until.Sub(now); got != want*time.Millisecond || told.Source != policy.WaitPace {
			t.Errorf("got %v for %s, want %v for pace", got, told.Source, want*time.Millisecond)
		}
	}
	exchange(t, g, now.Add(time.Second), ok)
	now = now.Add(2 * time.Second)
	if got := exchange(t, g, now, throttle).Until.Sub(now); got != blindHold {
		t.Errorf("after a success: got %v, want %v", got, blindHold)
	}
}

func TestManyBlindThrottlesDoNotOverflow(t *testing.T) {
	h := hold{misses: 1 << 40}
	if got := h.blind(policy.Unlimited); got <= 0 {
		t.Errorf("got %v, want a long time", got)
	}
}

func TestEscalatingHintsCloseTheKeyEach(t *testing.T) {
	g := gateOf(plain)
	now := start
	for _, asked := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		told := exchange(t, g, now, throttle, after(asked))
		if got := told.Until.Sub(now); got != asked {
			t.Errorf("got %v, want %v", got, asked)
		}
		now = told.Until
	}
}

func TestAShorterHintDoesNotOpenTheKey(t *testing.T) {
	g := gateOf(plain)
	a, b := leave(t, g, start), leave(t, g, start)
	answer(g, start.Add(time.Second), a, throttle, after(time.Minute))
	told := answer(g, start.Add(2*time.Second), b, throttle, after(time.Second))
	if got := told.Until.Sub(start); got != 61*time.Second {
		t.Errorf("got %v, want 1m1s", got)
	}
}

func TestASuccessDoesNotOpenTheKey(t *testing.T) {
	g := gateOf(plain)
	slow := leave(t, g, start)
	exchange(t, g, start, throttle, after(time.Minute))
	if told := answer(g, start.Add(time.Second), slow, ok); told.Until.Sub(start) != time.Minute {
		t.Errorf("got until %v, want 1m", told.Until.Sub(start))
	}
}

func TestTheLongerOfRuleAndHeaderClosesTheKey(t *testing.T) {
	g := gateOf(plain)
	v := throttle
	v.Wait = 7 * time.Second
	if got := exchange(t, g, start, v, after(time.Second)).Until.Sub(start); got != 7*time.Second {
		t.Errorf("got %v, want 7s", got)
	}
}

func TestAThrottleOfOneCallClosesNothing(t *testing.T) {
	g := gateOf(plain)
	v := throttle
	v.Scope = classify.ScopeCall
	exchange(t, g, start, v, after(time.Minute))
	leave(t, g, start)
}

func TestAUsedUpQuotaClosesTheKeyUntilItsReset(t *testing.T) {
	g := gateOf(plain)
	h := hint.Hint{HasRemaining: true, HasReset: true, Reset: 9 * time.Second}
	told := exchange(t, g, start, throttle, h)
	if got := told.Until.Sub(start); got != 9*time.Second || told.Source != policy.WaitQuota {
		t.Errorf("got %v for %s, want 9s for quota", got, told.Source)
	}
}

func TestAnOverloadedServerClosesTheKeyForAsLongAsItAsked(t *testing.T) {
	g := gateOf(plain)
	told := exchange(t, g, start, overload, after(5*time.Second))
	if got := told.Until.Sub(start); got != 5*time.Second || told.Breaker != Closed {
		t.Errorf("got %v with the breaker %v, want 5s with it closed", got, told.Breaker)
	}
}

func TestAnOverloadedServerThatAsksForNothingClosesNothing(t *testing.T) {
	g := gateOf(plain)
	exchange(t, g, start, overload)
	leave(t, g, start)
}

func TestAPolicyThatClampsClampsForEveryone(t *testing.T) {
	for what, send := range map[string]func(*Gate) Told{
		"throttled":  func(g *Gate) Told { return exchange(t, g, start, throttle, after(time.Hour)) },
		"overloaded": func(g *Gate) Told { return exchange(t, g, start, overload, after(time.Hour)) },
		"tripped": func(g *Gate) Told {
			for range 9 {
				exchange(t, g, start, failed)
			}
			return exchange(t, g, start, overload, after(time.Hour))
		},
		"quota": func(g *Gate) Told {
			return exchange(t, g, start, throttle, hint.Hint{HasRemaining: true, HasReset: true, Reset: time.Hour})
		},
	} {
		g := gateOf(func(p *policy.Policy) {
			plain(p)
			p.Retry.OverCeiling, p.Retry.Ceiling = policy.Clamp, 30*time.Second
		})
		if got := send(g).Until.Sub(start); got != 30*time.Second {
			t.Errorf("%s: got %v, want the ceiling of 30s", what, got)
		}
	}
}

func TestOneAnswerShutsAKeyForADayAtMost(t *testing.T) {
	g := gateOf(nil)
	v := throttle
	v.Wait = policy.Unlimited
	told := exchange(t, g, start, v, after(hint.MaxWait))
	if from, to := start.Add(24*time.Hour), start.Add(25*time.Hour); told.Until.Before(from) || told.Until.After(to) {
		t.Errorf("got closed until %v, want between %v and %v", told.Until, from, to)
	}
}

func TestTheSnapshotTellsUntilWhenTheKeyIsClosed(t *testing.T) {
	g := gateOf(plain)
	told := exchange(t, g, start, throttle, after(5*time.Second))
	if got := g.Snapshot(start).ClosedUntil; !got.Equal(told.Until) {
		t.Errorf("got %v, want %v", got, told.Until)
	}
	if got := g.Snapshot(told.Until).ClosedUntil; !got.IsZero() {
		t.Errorf("got %v after it opened, want none", got)
	}
}

func TestAGateInheritsWhatTheServerSaid(t *testing.T) {
	old := gateOf(plain)
	told := exchange(t, old, start, throttle, after(5*time.Second))
	g := gateOf(func(p *policy.Policy) { plain(p); p.Limits.Rate = 10 })
	g.Inherit(old)
	if a := g.Admit(start.Add(time.Second), anyone); a.Kind != Wait || !a.At.Equal(told.Until) || a.Source != policy.WaitRetryAfter {
		t.Errorf("got %+v, want a wait for retry_after until %v", a, told.Until)
	}
	g.Inherit(gateOf(plain))
	if a := g.Admit(start.Add(time.Second), anyone); !a.At.Equal(told.Until) {
		t.Errorf("a gate that was told nothing opened the key: %+v", a)
	}
}

func TestASuccessBetweenTwoThrottlesEndsTheRowThoughItComesHomeLate(t *testing.T) {
	g := gateOf(nil)
	exchange(t, g, start, throttle)
	exchange(t, g, g.hold.until, throttle) // two in a row
	now := g.hold.until
	early, late := leave(t, g, now), leave(t, g, now)
	answer(g, now.Add(time.Millisecond), late, throttle)
	answer(g, now.Add(2*time.Millisecond), early, ok)
	now = g.hold.until
	told := exchange(t, g, now, throttle)
	if got := told.Until.Sub(now); got != 2*blindHold {
		t.Errorf("closed for %v, want %v: it is the second throttle in a row", got, 2*blindHold)
	}
}
