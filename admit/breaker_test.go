package admit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// steady is a gate whose breaker opens after n failures, for exact times.
func steady(n int, change func(*policy.Breaker)) *Gate {
	return gateOf(func(p *policy.Policy) {
		p.Breaker.Consecutive, p.Breaker.Jitter = n, -1
		p.Hints.JitterMax = -1
		if change != nil {
			change(&p.Breaker)
		}
	})
}

// opened is a gate whose breaker has just opened at start.
func opened(t *testing.T, change func(*policy.Breaker)) *Gate {
	t.Helper()
	g := steady(1, change)
	if told := exchange(t, g, start, failed); told.Breaker != Open || !told.Changed {
		t.Fatalf("got %v, changed %v, want it open now", told.Breaker, told.Changed)
	}
	return g
}

func TestTenFailuresInARowOpenTheBreaker(t *testing.T) {
	g := gateOf(nil)
	for i := range 10 {
		if g.breaker.state != Closed {
			t.Fatalf("open after %d failures", i)
		}
		exchange(t, g, start, failed)
	}
	if a := g.Admit(start, anyone); a.Kind != Wait || a.Source != policy.WaitBreaker || !a.Everyone || a.Breaker != Open {
		t.Errorf("got %+v, want a wait for the breaker", a)
	}
}

func TestASuccessEndsTheRowOfFailures(t *testing.T) {
	g := gateOf(nil)
	for i := range 50 {
		v := failed
		if i%10 == 9 {
			v = ok
		}
		exchange(t, g, start.Add(time.Duration(i)), v)
	}
	if g.breaker.state != Closed {
		t.Error("got open, want closed: never ten in a row")
	}
}

// Slow answers that were on their way when the server died come back well in
// between the failures.
func TestASuccessSentBeforeTheFirstFailureDoesNotEndTheRow(t *testing.T) {
	g := steady(10, nil)
	var old []Pass
	for range 9 {
		old = append(old, leave(t, g, start))
	}
	now := start.Add(time.Second)
	for _, p := range old {
		exchange(t, g, now, failed)
		answer(g, now, p, ok)
	}
	if told := exchange(t, g, now, failed); told.Breaker != Open {
		t.Errorf("got %v, want open", told.Breaker)
	}
}

func TestTheRatioNeedsTheLeastNumberOfCalls(t *testing.T) {
	g := steady(-1, func(b *policy.Breaker) { b.Ratio, b.MinCalls = 0.5, 10 })
	for i := range 9 {
		if told := exchange(t, g, start, failed); told.Breaker != Closed {
			t.Fatalf("open after %d calls", i+1)
		}
	}
	if told := exchange(t, g, start, failed); told.Breaker != Open {
		t.Errorf("got %v after 10 calls, want open", told.Breaker)
	}
}

func TestTheRatioCountsSuccessesToo(t *testing.T) {
	g := steady(-1, func(b *policy.Breaker) { b.Ratio, b.MinCalls = 0.5, 10 })
	for range 51 {
		exchange(t, g, start, ok)
	}
	for i := range 50 {
		if told := exchange(t, g, start, failed); told.Breaker != Closed {
			t.Fatalf("open at %d failures of %d calls", i+1, i+52)
		}
	}
	if told := exchange(t, g, start, failed); told.Breaker != Open {
		t.Errorf("got %v at half of all calls, want open", told.Breaker)
	}
}

func TestFailuresLeaveTheWindow(t *testing.T) {
	g := steady(-1, func(b *policy.Breaker) { b.Ratio, b.MinCalls, b.Window = 0.5, 10, 10*time.Second })
	for range 9 {
		exchange(t, g, start, failed)
	}
	if told := exchange(t, g, start.Add(11*time.Second), failed); told.Breaker != Closed {
		t.Errorf("got %v, want closed: nine of ten failures are past", told.Breaker)
	}
}

func TestTheWindowRollsWithoutCountingTwice(t *testing.T) {
	var w window
	const span = 10 * time.Second
	for i := range 100 { // ten each second
		w.add(start.Add(time.Duration(i)*100*time.Millisecond), span, false, i%2 == 0)
	}
	if calls, failures := w.sum(start.Add(9900*time.Millisecond), span); calls != 100 || failures != 50 {
		t.Errorf("got %d failures of %d calls, want 50 of 100", failures, calls)
	}
	for at, most := range map[time.Duration]int{10: 100, 12: 80, 15: 50, 20: 10, 30: 0} {
		later := w
		if calls, _ := later.sum(start.Add(at*time.Second), span); calls > most {
			t.Errorf("after %d s: got %d calls, want at most %d", at, calls, most)
		}
	}
}

func TestAThousandGoroutinesGetOneProbe(t *testing.T) {
	g := opened(t, nil)
	now := start.Add(time.Second)
	var probes atomic.Int32
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if a := g.Admit(now, anyone); a.Kind == Go && a.Pass.Probe {
				probes.Add(1)
			}
		})
	}
	wg.Wait()
	if got := probes.Load(); got != 1 {
		t.Errorf("got %d probes, want 1", got)
	}
}

func TestNothingLeavesBeforeTheOpenTimeIsOver(t *testing.T) {
	g := opened(t, nil)
	a := g.Admit(start.Add(time.Second-1), anyone)
	if a.Kind != Wait || !a.At.Equal(start.Add(time.Second)) {
		t.Errorf("got %d until %v, want a wait until the probe", a.Kind, a.At)
	}
}

func TestAnUnansweredProbeLosesItsLease(t *testing.T) {
	g := opened(t, nil)
	lost := leave(t, g, start.Add(time.Second))
	if a := g.Admit(start.Add(31*time.Second-1), anyone); a.Kind != Wait || !a.At.Equal(start.Add(31*time.Second)) {
		t.Errorf("got %d until %v, want a wait until the lease ends", a.Kind, a.At.Sub(start))
	}
	second := leave(t, g, start.Add(31*time.Second))
	if !second.Probe {
		t.Error("got an ordinary attempt, want a second probe")
	}
	if told := answer(g, start.Add(32*time.Second), lost, ok); told.Breaker != HalfOpen {
		t.Errorf("the lost probe: got %v, want its answer ignored", told.Breaker)
	}
	if told := answer(g, start.Add(32*time.Second), second, ok); told.Breaker != Closed || !told.Changed {
		t.Errorf("the second probe: got %v, want closed", told.Breaker)
	}
}

// stages returns a gate, and the steps that bring its breaker through every
// change of state.
func stages(t *testing.T) (g *Gate, steps []func()) {
	g = steady(1, func(b *policy.Breaker) { b.Lease = time.Second })
	now := start
	later := func() time.Time { now = now.Add(time.Minute); return now }
	return g, []func(){
		func() { exchange(t, g, now, failed) },     // open
		func() { leave(t, g, later()) },            // half open
		func() { leave(t, g, later()) },            // half open: the lease is over
		func() { exchange(t, g, later(), failed) }, // open again
		func() { leave(t, g, later()) },            // half open
		func() { exchange(t, g, later(), ok) },     // closed
	}
}

func TestResultsOfAnOlderGenerationAreIgnoredInEveryState(t *testing.T) {
	g, steps := stages(t)
	passes := []Pass{{At: start}}
	gen := g.breaker.gen + 1
	var states []string
	for _, step := range steps {
		step()
		states = append(states, g.breaker.state.String())
		for _, p := range passes {
			if p.Gen == g.breaker.gen {
				t.Fatalf("generation %d is not new", p.Gen)
			}
			for _, v := range []classify.Verdict{ok, failed, overload, throttle, {Class: classify.Permanent}} {
				before := g.breaker
				g.breaker.observe(start.Add(time.Hour), &g.p.Breaker, &Result{Pass: p, Verdict: v, Status: 500}, g.rng)
				if g.breaker != before {
					t.Errorf("%v of generation %d changed the breaker (%v) of generation %d", v.Class, p.Gen, before.state, before.gen)
				}
			}
		}
		for ; gen < g.breaker.gen; gen++ {
			passes = append(passes, Pass{At: start, Gen: gen}, Pass{At: start, Gen: gen, Probe: true})
		}
	}
	if got := fmt.Sprint(states); got != "[open half_open half_open open half_open closed]" {
		t.Errorf("got %s, want every change of state", got)
	}
}

func TestWhatIsNotTheDependencysFaultIsNeutral(t *testing.T) {
	for _, r := range []Result{
		{Failure: classify.Canceled, Verdict: failed},
		{Failure: classify.BadRequest, Verdict: classify.Verdict{Class: classify.Permanent}},
		{Failure: classify.Blocked, Verdict: classify.Verdict{Class: classify.Permanent}},
		{Status: 404, Verdict: classify.Verdict{Class: classify.Permanent}},
		{Status: 401, Verdict: classify.Verdict{Class: classify.Unauthorized}},
		{Status: 429, Verdict: throttle},
		{Status: 200, Verdict: classify.Verdict{Class: classify.Invalid}},
		{Status: 200, Verdict: classify.Verdict{Class: classify.Stale}},
	} {
		g := steady(2, func(b *policy.Breaker) { b.Ratio, b.MinCalls = 0.1, 1 })
		before := g.breaker
		for range 5 {
			r.Pass.At = start
			g.Observe(start, r)
		}
		if g.breaker != before {
			t.Errorf("%v, %v: got %+v, want no trace", r.Verdict.Class, r.Failure, g.breaker)
		}
	}
}

func TestWhatIsTheDependencysFaultIsAFailure(t *testing.T) {
	for _, r := range []Result{
		{Failure: classify.HeaderTimeout, Verdict: failed},
		{Failure: classify.Refused, Verdict: failed},
		{Failure: classify.TLSFailed, Verdict: classify.Verdict{Class: classify.Permanent}},
		{Status: 500, Verdict: failed},
		{Status: 503, Verdict: overload},
		{Status: 200, Failure: classify.BodyCut, Verdict: classify.Verdict{Class: classify.Truncated}},
	} {
		g := steady(1, nil)
		if told := g.Observe(start, r); told.Breaker != Open {
			t.Errorf("%v, %v: got %v, want open", r.Verdict.Class, r.Failure, told.Breaker)
		}
	}
}

func TestAnswersThatAreCutAfterALookOfSuccessOpenTheBreaker(t *testing.T) {
	g := steady(3, nil)
	for i := range 3 {
		now := start.Add(time.Duration(i) * time.Second)
		p := leave(t, g, now)
		answer(g, now, p, ok)
		g.Observe(now, Result{Pass: p, Verdict: classify.Verdict{Class: classify.Truncated}, Failure: classify.BodyCut, Status: 200, Late: true})
	}
	if g.breaker.state != Open {
		t.Errorf("got %v after three cut answers in a row, want open", g.breaker.state)
	}
}

func TestACutAnswerIsOneCallOfTheRatio(t *testing.T) {
	g := steady(-1, func(b *policy.Breaker) { b.Ratio, b.MinCalls = 1, 5 })
	for i := range 5 {
		if g.breaker.state != Closed {
			t.Fatalf("open after %d calls", i)
		}
		p := leave(t, g, start)
		answer(g, start, p, ok)
		g.Observe(start, Result{Pass: p, Verdict: classify.Verdict{Class: classify.Truncated}, Failure: classify.BodyCut, Late: true})
	}
	if g.breaker.state != Open {
		t.Error("got closed, want open: five of five calls were cut")
	}
}

func TestTheOpenTimeGrowsToItsBound(t *testing.T) {
	g := opened(t, nil)
	now := start
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if got := g.breaker.until.Sub(now); got != want*time.Second {
			t.Errorf("got %v, want %v", got, want*time.Second)
		}
		now = g.breaker.until
		exchange(t, g, now, failed)
	}
}

func TestTheOpenTimeIsSpreadUpward(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seed := range uint64(1000) {
		g := NewGate(agreed(func(p *policy.Policy) { p.Breaker.Consecutive = 1 }), seeded(seed))
		exchange(t, g, start, failed)
		open := g.breaker.until.Sub(start)
		if open < time.Second || open > 1100*time.Millisecond {
			t.Fatalf("got %v, want within [1s, 1.1s]", open)
		}
		seen[open] = true
	}
	if len(seen) < 990 {
		t.Errorf("got %d different open times of 1,000, want nearly all", len(seen))
	}
}

func TestAnUnboundedOpenTimeDoesNotOverflow(t *testing.T) {
	g := gateOf(func(p *policy.Policy) {
		p.Breaker.Consecutive, p.Breaker.Open, p.Breaker.Jitter = 1, policy.Unlimited, 1
	})
	exchange(t, g, start, failed)
	if g.breaker.until.Before(start.AddDate(100, 0, 0)) {
		t.Errorf("got open until %v, want for a very long time", g.breaker.until)
	}
}

func TestARetryAfterExtendsTheOpenTime(t *testing.T) {
	g := steady(1, nil)
	told := exchange(t, g, start, overload, after(20*time.Second))
	if got := told.Until.Sub(start); got != 20*time.Second {
		t.Errorf("got %v, want 20s", got)
	}
	if a := g.Admit(start.Add(20*time.Second-1), anyone); a.Kind == Go {
		t.Error("a probe left before the Retry-After was over")
	}
	leave(t, g, start.Add(20*time.Second))
}

// What an attempt of the time before brings back still binds.
func TestARetryAfterThatComesLateExtendsTheOpenTime(t *testing.T) {
	g := steady(1, nil)
	slow := leave(t, g, start)
	exchange(t, g, start, failed)
	told := answer(g, start, slow, overload, after(20*time.Second))
	if a := g.Admit(start.Add(19*time.Second), anyone); a.Kind == Go || !a.At.Equal(told.Until) || told.Until.Sub(start) < 20*time.Second {
		t.Errorf("got %d until %v, told until %v, want a wait for 20s", a.Kind, a.At.Sub(start), told.Until.Sub(start))
	}
}

func TestAHintBindsTheProbeToo(t *testing.T) {
	g := steady(2, nil)
	exchange(t, g, start, failed)
	slow := leave(t, g, start)
	exchange(t, g, start, throttle, after(time.Minute))
	told := answer(g, start, slow, failed)
	if told.Breaker != Open || told.Source != policy.WaitRetryAfter || told.Until.Before(start.Add(time.Minute)) {
		t.Errorf("got %v until %v for %s, want open, and closed by the hint", told.Breaker, told.Until.Sub(start), told.Source)
	}
	if a := g.Admit(start.Add(time.Minute-1), anyone); a.Kind != Wait {
		t.Error("a probe left before the hint was over")
	}
	if !leave(t, g, start.Add(time.Minute)).Probe {
		t.Error("got an ordinary attempt, want a probe")
	}
}

func TestAProbe(t *testing.T) {
	for _, c := range []struct {
		what string
		r    Result
		want State
	}{
		{"that succeeds closes it", Result{Status: 200, Verdict: ok}, Closed},
		{"that is not found closes it", Result{Status: 404, Verdict: classify.Verdict{Class: classify.Permanent}}, Closed},
		{"that is not authorized closes it", Result{Status: 401, Verdict: classify.Verdict{Class: classify.Unauthorized}}, Closed},
		{"that is throttled never closes it", Result{Status: 429, Verdict: throttle}, Open},
		{"that fails opens it again", Result{Status: 503, Verdict: overload}, Open},
		{"that times out opens it again", Result{Failure: classify.HeaderTimeout, Verdict: failed}, Open},
		{"that the caller gave up says nothing", Result{Failure: classify.Canceled}, Open},
	} {
		g := opened(t, nil)
		now := start.Add(time.Second)
		c.r.Pass = leave(t, g, now)
		if told := g.Observe(now, c.r); told.Breaker != c.want {
			t.Errorf("a probe %s: got %v", c.what, told.Breaker)
		}
	}
}

func TestAProbeThatSaidNothingIsFollowedByAnother(t *testing.T) {
	g := opened(t, nil)
	now := start.Add(time.Second)
	g.Observe(now, Result{Pass: leave(t, g, now), Failure: classify.Canceled})
	if !leave(t, g, now).Probe {
		t.Error("got an ordinary attempt, want another probe at once")
	}
}

func TestAThrottledProbeWaitsForItsHint(t *testing.T) {
	g := opened(t, nil)
	now := start.Add(time.Second)
	exchange(t, g, now, throttle, after(10*time.Second))
	if a := g.Admit(now.Add(10*time.Second-1), anyone); a.Kind != Wait {
		t.Error("the next probe left before the hint was over")
	}
	leave(t, g, now.Add(10*time.Second))
}

func TestABreakerThatClosesStartsAnew(t *testing.T) {
	g := steady(2, nil)
	exchange(t, g, start, failed)
	exchange(t, g, start, failed)
	exchange(t, g, start.Add(time.Second), failed) // open for 2 s now
	now := start.Add(3 * time.Second)
	exchange(t, g, now, ok)
	if told := exchange(t, g, now, failed); told.Breaker != Closed {
		t.Error("one failure after closing opened it: the row was not forgotten")
	}
	told := exchange(t, g, now, failed)
	if got := told.Until.Sub(now); told.Breaker != Open || got != time.Second {
		t.Errorf("got %v for %v, want open for the first open time of 1s", told.Breaker, got)
	}
}

func TestAnOpenBreakerEndsCallsWhereThePolicySaysSo(t *testing.T) {
	g := opened(t, func(b *policy.Breaker) { b.OnOpen = policy.OnOpenFail })
	a := g.Admit(start, anyone)
	if a.Kind != No || !a.At.Equal(start.Add(time.Second)) || a.Source != policy.WaitBreaker {
		t.Errorf("got %+v, want no, until the probe", a)
	}
	leave(t, g, start.Add(time.Second))
	if a := g.Admit(start.Add(time.Second), anyone); a.Kind != No {
		t.Errorf("got %d beside a probe, want no", a.Kind)
	}
}

func TestABreakerThatIsOffNeverOpens(t *testing.T) {
	g := steady(1, func(b *policy.Breaker) { b.Off = true })
	for range 100 {
		exchange(t, g, start, failed)
	}
}

func TestTheStateTurnsHalfOpenOnTimeWithoutTraffic(t *testing.T) {
	g := opened(t, nil)
	if got := g.Snapshot(start).Breaker; got != Open {
		t.Errorf("at once: got %v, want open", got)
	}
	if got := g.Snapshot(start.Add(time.Second)).Breaker; got != HalfOpen {
		t.Errorf("after the open time: got %v, want half_open", got)
	}
}

func TestASuccessCountsAfterAFailure(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Breaker.Consecutive = 2 })
	for i := range 5 { // successes that teach nothing, then one that does
		at := start.Add(time.Duration(i) * time.Second)
		exchange(t, g, at, ok)
		exchange(t, g, at, failed)
		exchange(t, g, at.Add(time.Millisecond), ok)
		if s := g.Snapshot(at); s.Breaker != Closed {
			t.Fatalf("round %d: the breaker is %v, want closed: no two failures came in a row", i, s.Breaker)
		}
	}
}
