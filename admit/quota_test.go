package admit

import (
	"math"
	"testing"
	"time"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// quotaSaid is a hint of what remains of limit; reset 0: not said.
func quotaSaid(remaining, limit int64, reset time.Duration) hint.Hint {
	return hint.Hint{
		Remaining: remaining, HasRemaining: true, Limit: limit, HasLimit: limit > 0,
		Reset: reset, HasReset: reset > 0,
	}
}

func TestAQuotaThatComesBackLittleByLittleSetsThePace(t *testing.T) {
	server := newBucket(20, 100)
	g := gateOf(func(p *policy.Policy) { p.Limits.Learn = policy.Learn{Start: 50} })
	left := crowd(g, start, start.Add(time.Minute), func(now time.Time, p Pass) {
		g.Observe(now, Result{Pass: p, Verdict: server.verdict(now), Hint: quotaSaid(int64(server.level), 100, 0)})
	})
	if off := math.Abs(g.quota.slope/20 - 1); off > 0.05 || !g.quota.refills() {
		t.Errorf("got a slope of %v/s, refills %v, want 20 within 5 %%", g.quota.slope, g.quota.refills())
	}
	if server.refused > 0 {
		t.Errorf("got %d throttles, want none: every answer told what remains", server.refused)
	}
	if got := len(left); got < 1200 {
		t.Errorf("got %d requests in a minute, want the rate of 20/s in full", got)
	}
	if s := g.Snapshot(start); s.RateFrom != "quota" || !s.HasQuota {
		t.Errorf("got a rate from %s, quota known %v, want it from the quota", s.RateFrom, s.HasQuota)
	}
}

func TestAWindowIsUsedUntilTheReserveAndThenHeldUntilItsReset(t *testing.T) {
	g := gateOf(nil)
	const limit = 100
	remaining, ends := int64(limit), start.Add(time.Minute)
	var now time.Time
	sent := 0
	for now = start; ; now = now.Add(100 * time.Millisecond) {
		a := g.Admit(now, anyone)
		if a.Kind != Go {
			if wait := a.At.Sub(ends); a.Source != policy.WaitQuota || wait < 0 || wait > time.Second {
				t.Errorf("got a wait for %s until %v after the reset, want up to a second", a.Source, wait)
			}
			now = a.At
			break
		}
		sent++
		remaining--
		answer(g, now, a.Pass, ok, quotaSaid(remaining, limit, ends.Sub(now)))
	}
	if remaining != 5 {
		t.Errorf("held with %d left, want the reserve of 5", remaining)
	}
	leave(t, g, now)
}

func TestTheReserveOfASmallQuotaIsATenth(t *testing.T) {
	for limit, want := range map[int64]float64{0: 5, 1000: 5, 50: 5, 49: 4, 20: 2, 10: 1, 3: 1} {
		q := quota{limit: limit}
		if got := q.reserve(&policy.Limits{Reserve: 5}); got != want {
			t.Errorf("limit %d: got %v, want %v", limit, got, want)
		}
	}
}

func TestRequestsOnTheirWayCountAgainstTheQuota(t *testing.T) {
	g := gateOf(nil)
	slow := leave(t, g, start)
	for range 10 {
		leave(t, g, start) // their answers are not there yet
	}
	answer(g, start.Add(time.Second), slow, ok, quotaSaid(20, 1000, time.Minute))
	for range 5 {
		leave(t, g, start.Add(time.Second))
	}
	if a := g.Admit(start.Add(time.Second), anyone); a.Kind != Wait || a.Source != policy.WaitQuota {
		t.Errorf("got %d for %s, want a wait for the quota: of 20, 10 were used and 5 are kept", a.Kind, a.Source)
	}
}

func TestNothingLeftWithAResetInThePastGoesOn(t *testing.T) {
	g := gateOf(nil)
	exchange(t, g, start, ok, hint.Hint{HasRemaining: true, HasReset: true, HasLimit: true, Limit: 100})
	leave(t, g, start.Add(time.Millisecond))
}

func TestNothingLeftWithoutAResetGoesOn(t *testing.T) {
	g := gateOf(nil)
	exchange(t, g, start, ok, quotaSaid(0, 100, 0))
	leave(t, g, start)
}

func TestANegativeReserveNeverHolds(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Limits.Reserve = -1 })
	exchange(t, g, start, ok, quotaSaid(0, 100, time.Minute))
	leave(t, g, start)
}

// Servers that know no limit send the largest number they have.
func TestABoundlessQuotaHoldsNobody(t *testing.T) {
	for _, remaining := range []int64{1 << 53, math.MaxInt64} {
		g := gateOf(nil)
		for i := range 50 {
			exchange(t, g, start.Add(time.Duration(i)*50*time.Millisecond), ok, quotaSaid(remaining, remaining, time.Minute))
		}
		if g.quota.window {
			t.Errorf("remaining %d: it is taken for a window that came back", remaining)
		}
	}
}

// Of a published bucket the headers tell what the pace knows better.
func TestHeadersAboutThePublishedBucketAreNotHeldFor(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Limits.Rate, p.Limits.Burst = 200, 20 })
	exchange(t, g, start, ok, quotaSaid(0, 20, time.Minute))
	leave(t, g, start.Add(time.Second))
	g = gateOf(func(p *policy.Policy) { p.Limits.Rate, p.Limits.Burst = 200, 20 })
	exchange(t, g, start, ok, quotaSaid(0, 5000, time.Minute)) // of a day, say
	if a := g.Admit(start.Add(time.Second), anyone); a.Source != policy.WaitQuota {
		t.Errorf("got %q, want a wait for the other quota", a.Source)
	}
}

func TestAnAnswerThatWasOvertakenIsIgnored(t *testing.T) {
	g := gateOf(nil)
	old, newer := leave(t, g, start), leave(t, g, start.Add(time.Millisecond))
	answer(g, start.Add(time.Second), newer, ok, quotaSaid(0, 100, time.Minute))
	answer(g, start.Add(2*time.Second), old, ok, quotaSaid(50, 100, time.Minute))
	if got := g.Snapshot(start).Remaining; got != 0 {
		t.Errorf("got %d remaining, want 0 from the later request", got)
	}
}

func TestTheAnswerThatTellsOfAnEmptyQuotaIsNotHeldBack(t *testing.T) {
	g := gateOf(nil)
	told := exchange(t, g, start, ok, quotaSaid(0, 100, time.Minute))
	if !told.Until.IsZero() {
		t.Errorf("told until %v, want nothing for a success", told.Until)
	}
	if a := g.Admit(start, anyone); a.Kind != Wait || a.At.Before(start.Add(time.Minute)) {
		t.Errorf("got %d until %v, want the next request to wait for the reset", a.Kind, a.At.Sub(start))
	}
}

func TestAnAnswerWithoutQuotaChangesNothing(t *testing.T) {
	g := gateOf(nil)
	exchange(t, g, start, ok, quotaSaid(50, 100, time.Minute))
	before := g.quota
	answer(g, start, leave(t, g, start), ok)
	before.level--
	if g.quota != before {
		t.Errorf("got %+v, want %+v", g.quota, before)
	}
}

func TestRetryAfterGoesBeforeTheResetOfTheQuota(t *testing.T) {
	g := gateOf(nil)
	a := g.Admit(start, anyone)
	said := quotaSaid(0, 0, time.Minute)
	said.Wait, said.HasWait = 2*time.Second, true
	g.Observe(start, Result{Pass: a.Pass, Verdict: throttle, Hint: said})
	g.Release(start, a.Pass)
	if got := g.Admit(start.Add(2*time.Second-1), anyone); got.Kind == Go {
		t.Error("got a request before Retry-After was over")
	}
	if got := g.Admit(start.Add(3*time.Second), anyone); got.Kind != Go {
		t.Errorf("got a wait for %s until %v, want a request: Retry-After and its jitter are over", got.Source, got.At.Sub(start))
	}
}

func TestAGateInheritsTheQuotaThatIsLeft(t *testing.T) {
	old := gateOf(nil)
	exchange(t, old, start, ok, quotaSaid(7, 100, time.Minute))
	g := gateOf(nil)
	g.Inherit(old)
	sent := 0
	for g.Admit(start.Add(time.Second), anyone).Kind == Go {
		sent++
	}
	if sent != 2 { // to the reserve of 5
		t.Errorf("got %d requests let through, want the 2 above the reserve", sent)
	}
}
