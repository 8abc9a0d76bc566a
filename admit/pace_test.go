package admit

import (
	"math"
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// crowd asks for as many attempts as g lets out from now until end, as often
// as it says, and returns when they left. answer is told each.
func crowd(g *Gate, now, end time.Time, answered func(time.Time, Pass)) (left []time.Time) {
	for now.Before(end) {
		a := g.Admit(now, Ask{Group: -1, Waiting: 10})
		if a.Kind != Go {
			now = a.At
			continue
		}
		left = append(left, now)
		g.Release(now, a.Pass)
		answered(now, a.Pass)
	}
	return left
}

// bucket is a server with a token bucket that counts what it refused.
type bucket struct {
	*tank
	refused int
}

func newBucket(rate, burst float64) *bucket { return &bucket{tank: newTank(rate, burst)} }

func (b *bucket) verdict(now time.Time) classify.Verdict {
	if b.take(now.Sub(start)) {
		return ok
	}
	b.refused++
	return throttle
}

// serve tells g what came of each that it lets out.
func (b *bucket) serve(g *Gate) func(time.Time, Pass) {
	return func(now time.Time, p Pass) {
		g.Observe(now.Add(time.Microsecond), Result{Pass: p, Verdict: b.verdict(now)})
	}
}

func paced(rate float64, burst int) *Gate {
	return gateOf(func(p *policy.Policy) { p.Limits.Rate, p.Limits.Burst = rate, burst })
}

func TestNoWindowSeesMoreThanBurstPlusRate(t *testing.T) {
	const rate, burst = 20.0, 15
	g := paced(rate, burst)
	rng := seeded(3)
	var left []time.Time
	now := start
	for len(left) < 600 {
		if rng.IntN(40) == 0 { // now and then nobody asks for a while
			now = now.Add(time.Duration(rng.Int64N(int64(2 * time.Second))))
		}
		if a := g.Admit(now, anyone); a.Kind == Go {
			left = append(left, now)
			answer(g, now, a.Pass, ok)
		} else {
			now = now.Add(time.Duration(rng.Int64N(int64(a.At.Sub(now)) + 1)))
		}
	}
	for i := range left {
		for j := i; j < len(left); j++ {
			if n, most := j-i+1, burst+rate*left[j].Sub(left[i]).Seconds(); float64(n) > most+1e-6 {
				t.Fatalf("%d requests within %v, want at most %.2f", n, left[j].Sub(left[i]), most)
			}
		}
	}
}

func TestAKeyWithARateIsUsedInFull(t *testing.T) {
	g := paced(20, 1)
	left := crowd(g, start, start.Add(10*time.Second), func(now time.Time, p Pass) { g.Observe(now, Result{Pass: p, Verdict: ok}) })
	if got := len(left); got < 199 || got > 201 {
		t.Errorf("got %d requests in 10 s at 20/s, want 200", got)
	}
}

func TestAThrottleCutsAToldRateAndDemandBringsItBack(t *testing.T) {
	g := paced(100, 1)
	exchange(t, g, start, throttle)
	if g.pace.rate != 95 {
		t.Fatalf("got %v/s after a throttle, want 95", g.pace.rate)
	}
	most := 0.0
	crowd(g, g.hold.until, start.Add(time.Minute), func(now time.Time, p Pass) {
		g.Observe(now, Result{Pass: p, Verdict: ok})
		most = max(most, g.pace.rate)
	})
	if g.pace.rate != 100 || most > 100 {
		t.Errorf("got %v/s a minute later, and %v/s at most, want 100 and no more", g.pace.rate, most)
	}
}

func TestAToldRateIsNotCutToNothing(t *testing.T) {
	g := paced(100, 1)
	now := start
	for range 500 {
		exchange(t, g, now, ok)
		exchange(t, g, now.Add(time.Second), throttle)
		now = now.Add(time.Minute)
	}
	if g.pace.rate != 5 {
		t.Errorf("got %v/s, want a twentieth of what was published and no less", g.pace.rate)
	}
}

func exploringGate() *Gate {
	return gateOf(func(p *policy.Policy) { p.Limits.Learn = policy.Learn{Start: 10} })
}

func TestExploringGrowsUnderDemand(t *testing.T) {
	g := exploringGate()
	crowd(g, start, start.Add(5*time.Second), func(now time.Time, p Pass) { g.Observe(now, Result{Pass: p, Verdict: ok}) })
	if g.pace.rate < 100 || g.Snapshot(start).RateFrom != "exploring" {
		t.Errorf("got %v/s (%s) after 5 s under demand, want well above the start", g.pace.rate, g.Snapshot(start).RateFrom)
	}
}

func TestExploringDoesNotGrowWithoutDemand(t *testing.T) {
	g := exploringGate()
	for i := range 500 {
		exchange(t, g, start.Add(time.Duration(i)*time.Second), ok)
	}
	if g.pace.rate != 10 {
		t.Errorf("got %v/s although nobody ever waited, want 10", g.pace.rate)
	}
}

func TestLearningThatIsOffNeverPaces(t *testing.T) {
	g := gateOf(nil)
	exchange(t, g, start, throttle)
	for range 1000 {
		leave(t, g, g.hold.until)
	}
}

// learned lets a crowd find out about server for a minute.
func learned(t *testing.T, server *bucket, l policy.Learn) (g *Gate, cuts []float64) {
	t.Helper()
	g = gateOf(func(p *policy.Policy) { p.Limits.Learn = l })
	serve := server.serve(g)
	crowd(g, start, start.Add(time.Minute), func(now time.Time, p Pass) {
		before, refused := g.pace.current(), server.refused
		if serve(now, p); server.refused > refused {
			cuts = append(cuts, g.pace.rate/before)
		}
	})
	return g, cuts
}

func TestTwoThrottlesBracketTheRate(t *testing.T) {
	for _, rate := range []float64{5, 50, 300} {
		server := newBucket(rate, 10)
		g, cuts := learned(t, server, policy.Learn{Start: 2})
		if len(cuts) < 2 {
			t.Fatalf("%v/s: got %d throttles, want two at least", rate, len(cuts))
		}
		if off := math.Abs(g.pace.rate/rate - 1); off > 0.1 || g.Snapshot(start).RateFrom != "learned" {
			t.Errorf("learned %v/s (%s), want %v within 10 %%", g.pace.rate, g.Snapshot(start).RateFrom, rate)
		}
		if server.refused > 12 {
			t.Errorf("%v/s: got %d throttles in a minute, want a handful", rate, server.refused)
		}
	}
}

// The requests of a burst arrive in another order than they left, and the first
// refusal may be that of any of them.
func TestABurstMeasuresTheRateWhateverTheOrderOfItsRefusals(t *testing.T) {
	for seed := range uint64(50) {
		rng := seeded(seed)
		g := gateOf(func(p *policy.Policy) { p.Limits.Learn = policy.Learn{} })
		all := make([]Pass, 64)
		for i := range all {
			all[i] = leave(t, g, start.Add(time.Duration(i)*200*time.Microsecond)) // two slots
		}
		at := start.Add(15 * time.Millisecond)
		for _, i := range rng.Perm(len(all))[20:] { // the server takes 20, and 200 per second
			answer(g, at, all[i], throttle, after(time.Second))
		}
		if got := g.pace.rate; got < 130 || got > 210 || g.Snapshot(at).RateFrom != "learned" {
			t.Errorf("seed %d: learned %v/s (%s) from a burst, want about 200", seed, got, g.Snapshot(at).RateFrom)
		}
	}
}

// While a key is closed the server saves up no more than a burst.
func TestAPauseBetweenTwoThrottlesCountsForNoMoreThanABurst(t *testing.T) {
	server := newBucket(200, 3)
	g := gateOf(func(p *policy.Policy) { p.Limits.Learn = policy.Learn{Start: 100} })
	crowd(g, start, start.Add(3*time.Second), server.serve(g))
	was, throttles := g.pace.rate, server.refused
	opens := exchange(t, g, g.pace.next, overload, after(10*time.Second)).Until
	crowd(g, opens, opens.Add(time.Second), server.serve(g))
	if throttles == 0 || server.refused == throttles {
		t.Fatalf("got %d and %d throttles, want some before the pause and some after it", throttles, server.refused-throttles)
	}
	if g.pace.rate < 0.6*was {
		t.Errorf("got %v/s after a pause of ten seconds, want about the %v before it", g.pace.rate, was)
	}
}

// burst lets n requests out when the key opens. The server takes some and
// refuses the rest.
func burst(t *testing.T, g *Gate, n, taken int) {
	t.Helper()
	now := g.instant(start)
	if g.hold.until.After(now) {
		now = g.hold.until
	}
	all := make([]Pass, n)
	for i := range all {
		all[i] = leave(t, g, now)
	}
	for _, p := range all[taken:] {
		answer(g, now.Add(time.Millisecond), p, throttle, after(time.Second))
	}
}

func TestABurstOfWhichLittleGotThroughIsNoMeasurement(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Limits.Learn = policy.Learn{} })
	burst(t, g, 64, 3)
	if got := g.Snapshot(start).RateFrom; got == "learned" {
		t.Errorf("three requests that got through gave a rate of %v/s", g.pace.rate)
	}
}

// What is refused while the key is closed anyway does not lower the rate further.
func TestKnocksAtAClosedKeyCorrectNothing(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Limits.Learn = policy.Learn{} })
	burst(t, g, 64, 20)
	was := g.pace.rate
	for range 4 {
		burst(t, g, 3, 0)
	}
	if math.Abs(g.pace.rate/was-1) > 0.01 {
		t.Errorf("got %v/s after knocks, want the %v learned before them", g.pace.rate, was)
	}
}

func TestAPublishedRateThatIsTooHighIsNotInsistedOn(t *testing.T) {
	server := newBucket(50, 10)
	g := paced(100, 10)
	left := crowd(g, start, start.Add(time.Minute), server.serve(g))
	if share := float64(server.refused) / float64(len(left)); share > 0.03 || len(left) < 2500 {
		t.Errorf("got %d requests in a minute, %.1f %% of them refused, want most of 3,000 and few refused", len(left), 100*share)
	}
}

func TestARateNeverRisesAtACut(t *testing.T) {
	for _, rate := range []float64{0.5, 7, 80, 1000} {
		for _, first := range []float64{0, 1, 100} {
			_, cuts := learned(t, newBucket(rate, 5), policy.Learn{Start: first})
			for i, factor := range cuts {
				if factor > 1 || i > 0 && factor < keepBelow/4-1e-9 { // the first one has no rate to go by
					t.Errorf("%v/s from %v/s: cut %d changed the rate by %v", rate, first, i, factor)
				}
			}
		}
	}
}

func TestAfterAnOutageTheBacklogLeavesAtAGrowingRate(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Limits.Learn = policy.Learn{} })
	now := start
	for range 400 { // 100 per second
		exchange(t, g, now, ok)
		now = now.Add(10 * time.Millisecond)
	}
	opens := exchange(t, g, now, overload, after(3*time.Second)).Until
	left := crowd(g, opens, opens.Add(5*time.Second), func(now time.Time, p Pass) {
		g.Observe(now, Result{Pass: p, Verdict: ok})
		if g.pace.rate == 0 {
			g.hold.until = opens.Add(time.Hour) // unpaced again: the crowd would never end
		}
	})
	count := func(from, to time.Duration) (n int) {
		for _, at := range left {
			if d := at.Sub(opens); d >= from && d < to {
				n++
			}
		}
		return n
	}
	if got := count(0, 100*time.Millisecond); got > 10 {
		t.Errorf("got %d requests in the first 100 ms, want no more than before the outage", got)
	}
	if first, second := count(0, 500*time.Millisecond), count(500*time.Millisecond, time.Second); second <= first {
		t.Errorf("got %d and then %d requests per half second, want growth", first, second)
	}
	if got := g.Snapshot(now).RateFrom; got != "none" {
		t.Errorf("got a pace that is %s at the end, want none again", got)
	}
}

func TestAKnockAtAClosedKeySaysNothingOfItsRate(t *testing.T) {
	g := paced(100, 1)
	exchange(t, g, start, ok)
	exchange(t, g, start.Add(time.Second), throttle)
	for range 3 {
		exchange(t, g, g.hold.until, throttle)
	}
	if g.pace.rate != 95 {
		t.Errorf("got %v/s, want the one cut to 95: nothing got through since", g.pace.rate)
	}
}

// Few requests at one instant measure a high rate.
func TestAMeasurementAboveTheRateInForceDoesNotRaiseIt(t *testing.T) {
	p := pace{tempo: tempo{rate: 10, mode: measured, damping: 1}}
	for range 9 {
		p.note(start)
	}
	p.cut(start)
	p.tempo = p.event.was
	if got := p.measure(); got <= 10 {
		t.Fatalf("measured %v/s, want a case above the rate of 10", got)
	}
	p.lower()
	if p.rate > 10 {
		t.Errorf("got %v/s after a throttle at 10/s", p.rate)
	}
}

func TestAfterTheBreakerTheBacklogLeavesAtAGrowingRate(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Limits.Learn, p.Breaker.Consecutive = policy.Learn{}, 1 })
	now := start
	for range 400 { // 100 per second
		exchange(t, g, now, ok)
		now = now.Add(10 * time.Millisecond)
	}
	now = exchange(t, g, now, failed).Until
	exchange(t, g, now, ok) // the probe
	leave(t, g, now)
	if a := g.Admit(now, anyone); a.Kind != Wait || a.Source != policy.WaitPace {
		t.Errorf("got %d for %s, want the second of the backlog to be paced", a.Kind, a.Source)
	}
}

func TestWhoReadTheClockEarlyDoesNotWaitForASlotThatIsFree(t *testing.T) {
	read := start // by a goroutine that is then kept from asking
	g := gateOf(func(p *policy.Policy) { p.Limits.Rate, p.Limits.Burst = 1000, 10 })
	leave(t, g, start.Add(time.Second)) // the bucket is full but for one
	if a := g.Admit(read, anyone); a.Kind != Go {
		t.Errorf("got %d until %v, want go: nine are left", a.Kind, a.At.Sub(start))
	}
}

// The quota that set the pace may stop telling; the key is not left at its last word.
func TestARateThatAQuotaToldGrowsLikeOneThatWasLearned(t *testing.T) {
	for _, m := range []mode{unpaced, exploring} {
		p := pace{tempo: tempo{mode: m, damping: 1}}
		p.follow(10)
		p.grown = start
		p.grow(start.Add(time.Second), true)
		if p.rate < 10.02 || p.rate > 10.1 {
			t.Errorf("%s before: got %v/s after a second, want little more than 10", m, p.rate)
		}
	}
}

func TestRequestsAtAConfiguredRateLeaveHalfAPercentFurtherApart(t *testing.T) {
	g := paced(100, 1)
	leave(t, g, start)
	if got, want := g.Admit(start, anyone).At.Sub(start).Round(time.Microsecond), 10050*time.Microsecond; got != want {
		t.Errorf("got %v between two requests at 100/s, want %v", got, want)
	}
}

// refuse lets n requests get through within a second, and one not.
func (p *pace) refuse(now time.Time, n int) {
	for i := range n {
		p.note(now.Add(time.Duration(i) * time.Second / time.Duration(n)))
	}
	p.note(now.Add(time.Second))
	p.cut(now.Add(time.Second))
}

// grows is by what part p grows in a second under demand.
func (p *pace) grows(now time.Time) float64 {
	was := p.rate
	p.grown = now
	p.grow(now.Add(time.Second), true)
	return p.rate/was - 1
}

func TestARateThatIsRefusedAgainWhereItWasGrowsHalfAsFast(t *testing.T) {
	for _, p := range []*pace{
		{configured: 100, tempo: tempo{mode: configured, rate: 100, damping: 1}},
		{tempo: tempo{mode: measured, rate: 100, damping: 1}},
	} {
		p.refuse(start, 100)
		first := p.grows(start.Add(2 * time.Second))
		p.rate, p.probed = 100, 0
		p.refuse(start.Add(time.Minute), 100)
		second := p.grows(start.Add(time.Minute + 2*time.Second))
		if got := second / first; got < 0.45 || got > 0.55 {
			t.Errorf("%s: grows by %v after one throttle and by %v after two, want half", p.mode, first, second)
		}
	}
}

func TestTheDescentOfAConfiguredRateDoesNotSlowItsReturn(t *testing.T) {
	p := pace{configured: 100, tempo: tempo{mode: configured, rate: 100, damping: 1}}
	p.refuse(start, 50)
	p.refuse(start.Add(time.Minute), 50)
	if got := p.grows(start.Add(2 * time.Minute)); got < regrowth {
		t.Errorf("grows by %v after two steps down, want %v at least", got, regrowth)
	}
}

func TestARateThatOutgrewWhatWasKnownGrowsAtFullSpeed(t *testing.T) {
	p := pace{tempo: tempo{mode: measured, rate: 109.9, estimate: 100, damping: maxDamping}}
	if got := p.grows(start); got > probeGrowth/10 {
		t.Fatalf("grows by %v before, want a damped growth", got)
	}
	p.rate = 110.1
	p.grows(start)
	if got := p.grows(start); got < probeGrowth {
		t.Errorf("grows by %v a tenth above the estimate, want %v at least", got, probeGrowth)
	}
}

func TestOneRequestDoublesARateAtMost(t *testing.T) {
	p := pace{tempo: tempo{mode: exploring, rate: minRate}, wanted: start, grown: start}
	if p.grow(start.Add(time.Hour), false); p.rate != 2*minRate {
		t.Errorf("got %v times the rate after an hour's wait, want twice", p.rate/minRate)
	}
}

func TestProbingSpeedsUpToAQuarterASecond(t *testing.T) {
	p := pace{tempo: tempo{mode: measured, rate: 100, damping: 1, probed: time.Hour}}
	if p.grows(start); p.rate != 125 {
		t.Errorf("got %v/s a second after 100/s, an hour after the last throttle, want 125", p.rate)
	}
}
