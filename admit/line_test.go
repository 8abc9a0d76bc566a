package admit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

func lineOf(change func(*policy.Policy)) *Line {
	p := agreed(change)
	return NewLine(NewGate(p, seeded(1)), p, seeded(2))
}

// single is a line in front of a key that bears one request at a time, which
// is taken.
func single(t *testing.T, change func(*policy.Policy)) (*Line, *busy) {
	t.Helper()
	l := lineOf(func(p *policy.Policy) {
		p.Limits.Concurrency = 1
		if change != nil {
			change(p)
		}
	})
	b := &busy{l: l, t: first("somebody")}
	a := l.Ask(start, b.t)
	if a.Kind != Go {
		t.Fatalf("got %d, want go", a.Kind)
	}
	b.pass = a.Pass
	return l, b
}

// busy is what holds the permits of a key.
type busy struct {
	l    *Line
	t    *Ticket
	pass Pass
}

// next gives the permit back and lets the ticket go that is woken for it.
func (b *busy) next(t *testing.T, waiting []*Ticket) *Ticket {
	t.Helper()
	b.l.Release(start, b.pass, b.t)
	woken := awake(waiting)
	if len(woken) != 1 {
		t.Fatalf("%d tickets were woken, want one", len(woken))
	}
	a := b.l.Ask(start, woken[0])
	if a.Kind != Go {
		t.Fatalf("the woken ticket %v: got %d, want go", woken[0].Info, a.Kind)
	}
	woken[0].First = false
	b.t, b.pass = woken[0], a.Pass
	awake(waiting) // the next one is told to look, and there is nothing yet
	return b.t
}

// order is who goes, one after the other.
func (b *busy) order(t *testing.T, n int, waiting []*Ticket) (names []string) {
	t.Helper()
	for range n {
		names = append(names, fmt.Sprint(b.next(t, waiting).Info))
	}
	return names
}

func awake(tickets []*Ticket) (woken []*Ticket) {
	for _, x := range tickets {
		select {
		case <-x.Wake():
			woken = append(woken, x)
		default:
		}
	}
	return woken
}

func first(tenant string) *Ticket {
	return &Ticket{Tenant: tenant, Group: -1, First: true, Info: tenant}
}

// stand lets every ticket ask, which must wait.
func stand(t *testing.T, l *Line, tickets ...*Ticket) []*Ticket {
	t.Helper()
	for _, x := range tickets {
		if a := l.Ask(start, x); a.Kind != Wait {
			t.Fatalf("%v: got %d, want wait", x.Info, a.Kind)
		}
	}
	awake(tickets)
	return tickets
}

func named(name, tenant string, priority int) *Ticket {
	return &Ticket{Tenant: tenant, Priority: priority, Group: -1, First: true, Info: name}
}

func TestTheHigherPriorityGoesFirst(t *testing.T) {
	l, b := single(t, nil)
	w := stand(t, l, named("low", "a", 0), named("high", "a", 9), named("middle", "b", 5), named("high too", "a", 9))
	if diff := cmp.Diff(b.order(t, 4, w), []string{"high", "high too", "middle", "low"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestTenantsTakeTurns(t *testing.T) {
	l, b := single(t, nil)
	w := stand(t, l, named("a1", "a", 0), named("a2", "a", 0), named("a3", "a", 0), named("b1", "b", 0), named("b2", "b", 0), named("c1", "c", 0))
	if diff := cmp.Diff(b.order(t, 6, w), []string{"a1", "b1", "c1", "a2", "b2", "a3"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestATenantWithFortyFiveThousandCallsDelaysNobodyElse(t *testing.T) {
	l, b := single(t, nil)
	job := make([]*Ticket, 45_000)
	for i := range job {
		job[i] = first("job")
	}
	stand(t, l, job...)
	others := stand(t, l, first("b"), first("c"), first("b"))
	near := append(others, job[:10]...) // who may be woken for the next six permits
	got := b.order(t, 6, near)
	slices.Sort(got)
	if diff := cmp.Diff(got, []string{"b", "b", "c", "job", "job", "job"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestCallsThatWereGivenUpCountForNothing(t *testing.T) {
	l, b := single(t, nil)
	var job []*Ticket
	for range 100 {
		job = append(job, first("job"))
	}
	stand(t, l, job...)
	w := stand(t, l, named("b1", "b", 0), named("b2", "b", 0), named("b3", "b", 0))
	for _, x := range job {
		l.Leave(x)
	}
	w = append(w, stand(t, l, named("new job", "job", 0))...)
	awake(w)
	if got := b.order(t, 2, w); !slices.Contains(got, "new job") {
		t.Errorf("got %v first, want the new job among them", got)
	}
}

func TestARetryKeepsItsAge(t *testing.T) {
	l, b := single(t, nil)
	old := named("old", "a", 0)
	w := stand(t, l, old, named("a2", "a", 0), named("b1", "b", 0))
	if got := b.next(t, w); got != old {
		t.Fatalf("got %v, want the old one", got.Info)
	}
	b.next(t, w) // it came to nothing, and somebody else holds the permit
	w = append(w, stand(t, l, old)...)
	if got := b.next(t, w); got != old {
		t.Errorf("got %v, want the retry before those that were younger", got.Info)
	}
}

func TestRetriesOfCallsThatNeverWaitedGoByAge(t *testing.T) {
	l := lineOf(func(p *policy.Policy) { p.Limits.Concurrency = 4 })
	var all []*Ticket
	var passes []Pass
	for i := range 4 {
		x := named(fmt.Sprint(i), "a", 0)
		a := l.Ask(start, x)
		x.First = false
		all, passes = append(all, x), append(passes, a.Pass)
	}
	stand(t, l, all...)
	var got []string
	for i := range all {
		l.Release(start, passes[i], all[i])
		for _, x := range awake(all) {
			l.Ask(start, x)
			got = append(got, fmt.Sprint(x.Info))
		}
	}
	if diff := cmp.Diff(got, []string{"0", "1", "2", "3"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestWhoLeavesMovesTheNextUp(t *testing.T) {
	l, b := single(t, nil)
	w := stand(t, l, named("1", "a", 0), named("2", "a", 0), named("3", "a", 0))
	l.Leave(w[0])
	if woken := awake(w); len(woken) != 1 || woken[0] != w[1] {
		t.Fatalf("got %d woken, want the second one", len(woken))
	}
	l.Leave(w[1])
	if got := b.next(t, w); got != w[2] {
		t.Errorf("got %v, want 3", got.Info)
	}
}

func TestWhoIsWokenAndGivesUpLosesNothing(t *testing.T) {
	l, b := single(t, nil)
	w := stand(t, l, named("1", "a", 0), named("2", "a", 0))
	l.Release(start, b.pass, b.t)
	if woken := awake(w); len(woken) != 1 {
		t.Fatalf("got %d woken, want 1", len(woken))
	}
	l.Leave(w[0]) // cancelled instead of asking
	if woken := awake(w); len(woken) != 1 || woken[0] != w[1] {
		t.Error("the next one was not woken for the free permit")
	}
	if a := l.Ask(start, w[1]); a.Kind != Go {
		t.Errorf("got %d, want go", a.Kind)
	}
}

func TestACallThatNeverAskedTakesNothing(t *testing.T) {
	l, _ := single(t, nil)
	l.Leave(first("a"))
	if l.waiting != 0 || len(l.tenants) != 0 {
		t.Errorf("got %d waiting and %d tenants, want none", l.waiting, len(l.tenants))
	}
}

func TestLeavingTwiceIsLeavingOnce(t *testing.T) {
	l, _ := single(t, nil)
	w := stand(t, l, first("a"), first("b"))
	l.Leave(w[0])
	l.Leave(w[0])
	if l.waiting != 1 {
		t.Errorf("got %d waiting, want 1", l.waiting)
	}
}

func TestANewcomerDoesNotOvertake(t *testing.T) {
	l, b := single(t, nil)
	w := stand(t, l, named("1", "a", 0))
	l.Release(start, b.pass, b.t) // free, but the first one has not asked yet
	if a := l.Ask(start, named("2", "a", 0)); a.Kind != Wait {
		t.Errorf("got %d, want wait", a.Kind)
	}
	if a := l.Ask(start, w[0]); a.Kind != Go {
		t.Errorf("got %d for the first one, want go", a.Kind)
	}
}

func TestTheStaggerSpreadsFirstAttemptsOverTheWindow(t *testing.T) {
	l := lineOf(func(p *policy.Policy) { p.Limits.Stagger = 10 * time.Second })
	var tenths [10]int
	for range 1000 {
		x := first("a")
		a := l.Ask(start, x)
		wait := a.At.Sub(start)
		if a.Kind != Wait || wait < 0 || wait >= 10*time.Second {
			t.Fatalf("got %d for %v, want a wait within the window", a.Kind, wait)
		}
		tenths[wait/time.Second]++
		if a := l.Ask(a.At, x); a.Kind != Go {
			t.Fatalf("at its instant: got %d, want go", a.Kind)
		}
	}
	for i, n := range tenths {
		if n < 70 || n > 130 {
			t.Errorf("got %d of 1,000 in tenth %d, want about 100", n, i)
		}
	}
}

func TestTheStaggerEndsWithItsWindow(t *testing.T) {
	l := lineOf(func(p *policy.Policy) { p.Limits.Stagger = 10 * time.Second })
	l.Ask(start, first("a"))
	if a := l.Ask(start.Add(9*time.Second), first("a")); a.At.After(start.Add(10 * time.Second)) {
		t.Errorf("got until %v, want within the window", a.At.Sub(start))
	}
	if a := l.Ask(start.Add(10*time.Second), first("a")); a.Kind != Go {
		t.Errorf("after the window: got %d, want go", a.Kind)
	}
}

func TestARetryIsNotStaggered(t *testing.T) {
	l := lineOf(func(p *policy.Policy) { p.Limits.Stagger = 10 * time.Second })
	if a := l.Ask(start, &Ticket{Group: -1}); a.Kind != Go {
		t.Errorf("got %d, want go", a.Kind)
	}
}

func TestWaitersWhoseDeadlineComesFirstAreWoken(t *testing.T) {
	l, b := single(t, plain)
	soon, late, never := named("soon", "a", 0), named("late", "b", 0), named("never", "c", 0)
	soon.Deadline, late.Deadline = start.Add(5*time.Second), start.Add(time.Hour)
	w := stand(t, l, never, late, soon)
	l.Observe(start, Result{Pass: b.pass, Verdict: throttle, Hint: after(time.Minute)})
	woken := awake(w)
	if !slices.Contains(woken, soon) || slices.Contains(woken, late) {
		t.Errorf("got %d woken, want the one whose deadline is near", len(woken))
	}
	if a := l.Ask(start, soon); a.Kind != Wait || a.At.Sub(start) != time.Minute {
		t.Errorf("got %d until %v, want it told that the key is closed for 1m", a.Kind, a.At.Sub(start))
	}
}

func TestABreakerThatFailsCallsEmptiesTheLine(t *testing.T) {
	l, b := single(t, func(p *policy.Policy) { p.Breaker.Consecutive, p.Breaker.OnOpen = 1, policy.OnOpenFail })
	w := stand(t, l, first("a"), first("b"), first("a"))
	l.Observe(start, Result{Pass: b.pass, Verdict: failed, Status: 500})
	refused := map[*Ticket]bool{}
	for woken := awake(w); len(woken) > 0; woken = awake(w) {
		for _, x := range woken {
			if !refused[x] && l.Ask(start, x).Kind == No {
				refused[x] = true
			}
		}
	}
	if len(refused) != 3 || l.waiting != 0 {
		t.Errorf("got %d refused and %d waiting, want all 3 refused", len(refused), l.waiting)
	}
}

func TestANewcomerIsToldUntilWhenTheKeyIsClosed(t *testing.T) {
	l := lineOf(plain)
	a := l.Ask(start, first("a"))
	l.Observe(start, Result{Pass: a.Pass, Verdict: throttle, Hint: after(time.Minute)})
	for _, x := range []*Ticket{first("a"), first("b"), first("c")} {
		if a := l.Ask(start, x); a.Kind != Wait || a.At.Sub(start) != time.Minute || a.Source != policy.WaitRetryAfter {
			t.Errorf("%s: got %+v, want a wait of 1m for retry_after", x.Tenant, a)
		}
	}
}

func TestAFullGroupBlocksNobodyElse(t *testing.T) {
	l := lineOf(func(p *policy.Policy) {
		p.Limits.Groups = []policy.Group{{Name: "bibs", Concurrency: 1}, {Name: "items", Concurrency: 1}}
	})
	bib := &Ticket{Group: 0, First: true, Info: "bib"}
	held := l.Ask(start, bib).Pass
	stuck := stand(t, l, &Ticket{Group: 0, First: true, Priority: 9, Info: "stuck"}, &Ticket{Group: 0, First: true})
	for _, group := range []int{1, -1} {
		if a := l.Ask(start, &Ticket{Group: group, First: true}); a.Kind != Go {
			t.Errorf("group %d: got %d, want go beside the full group", group, a.Kind)
		}
	}
	l.Release(start, held, bib)
	if woken := awake(stuck); len(woken) != 1 || woken[0] != stuck[0] {
		t.Fatal("the first of the group was not woken")
	}
	if a := l.Ask(start, stuck[0]); a.Kind != Go {
		t.Errorf("got %d, want go", a.Kind)
	}
}

// shared is a line whose tenants may hold half of four permits; a holds two
// and b one.
func shared(t *testing.T) (*Line, map[string]Pass) {
	l := lineOf(func(p *policy.Policy) {
		p.Limits.Concurrency, p.Limits.TenantShare = 4, 0.5
		p.Limits.Groups = []policy.Group{{Name: "any"}}
	})
	held := map[string]Pass{}
	for _, tenant := range []string{"a", "a", "b", "c"} {
		held[tenant] = l.Ask(start, first(tenant)).Pass
	}
	return l, held
}

func TestATenantBeyondItsShareLetsOthersGo(t *testing.T) {
	for _, group := range []int{-1, 0} {
		l, held := shared(t)
		a, b := named("a", "a", 9), named("b", "b", 0)
		b.Group = group
		w := stand(t, l, a, b)
		l.Release(start, held["c"], first("c"))
		if woken := awake(w); len(woken) != 1 || woken[0] != b {
			t.Errorf("group %d: got %d woken, want b, because a holds its share", group, len(woken))
		}
		if got := l.Ask(start, named("a", "a", 9)); got.Kind != Wait {
			t.Errorf("group %d: a newcomer of a: got %d, want wait", group, got.Kind)
		}
	}
}

func TestATenantMayHoldMoreThanItsShareWhileNobodyElseWaits(t *testing.T) {
	l, held := shared(t)
	w := stand(t, l, first("a"))
	l.Release(start, held["c"], first("c"))
	if woken := awake(w); len(woken) != 1 {
		t.Fatal("a was not woken for the free permit")
	}
	if a := l.Ask(start, w[0]); a.Kind != Go {
		t.Errorf("got %d, want go", a.Kind)
	}
}

func TestTheMemoryOfTenantsIsBounded(t *testing.T) {
	for _, share := range []float64{1, 0.5} {
		l, b := single(t, func(p *policy.Policy) { p.Limits.TenantShare = share })
		last := first("waits for ever")
		last.Priority = 0
		stand(t, l, last)
		for i := range 1000 { // the line is never empty
			x := named("x", fmt.Sprint("tenant ", i), 9)
			stand(t, l, x)
			if i%2 == 0 {
				l.Leave(x)
				awake([]*Ticket{last})
				continue
			}
			b.next(t, []*Ticket{x, last})
		}
		if got := len(l.tenants); got > 2 {
			t.Errorf("share %v: got %d tenants remembered, want those who wait or hold a permit", share, got)
		}
	}
}

func TestWaitingTellsWhoWaitsForWhatSinceWhen(t *testing.T) {
	l, _ := single(t, nil)
	a, c := named("a", "a", 0), named("c", "c", 5)
	stand(t, l, a)
	l.Ask(start.Add(time.Second), c)
	rests := first("r")
	l.Rest(start, rests, start.Add(time.Minute), policy.WaitBackoff)
	got := l.Waiting()
	want := []Waiting{
		{c, 0, policy.WaitConcurrency, start.Add(time.Second), time.Time{}, 0},
		{a, 0, policy.WaitConcurrency, start, time.Time{}, 1},
		{rests, 0, policy.WaitBackoff, start, start.Add(time.Minute), 0},
	}
	if diff := cmp.Diff(got, want, cmp.Comparer(func(x, y *Ticket) bool { return x == y })); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	l.Leave(rests)
	if got := len(l.Waiting()); got != 2 {
		t.Errorf("got %d after one gave up, want 2", got)
	}
}

func TestAPassWithoutALineDoesNotAllocate(t *testing.T) {
	l := lineOf(nil)
	var x Ticket
	got := testing.AllocsPerRun(100, func() {
		x = Ticket{Group: -1, First: true}
		a := l.Ask(start, &x)
		l.Observe(start, Result{Pass: a.Pass, Verdict: ok, Status: 200})
		l.Release(start, a.Pass, &x)
	})
	if got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func TestWhoGoesWakesTheNext(t *testing.T) {
	l := lineOf(func(p *policy.Policy) { p.Limits.Rate = 1 })
	l.Ask(start, first("a"))
	w := stand(t, l, named("1", "a", 0), named("2", "a", 0))
	if a := l.Ask(start.Add(1005*time.Millisecond), w[0]); a.Kind != Go {
		t.Fatalf("got %d, want go", a.Kind)
	}
	if woken := awake(w); len(woken) != 1 || woken[0] != w[1] {
		t.Error("the next one was not woken, and does not know when it is due")
	}
}

func TestATenantSavesNothingUpWhileItIsAway(t *testing.T) {
	l, b := single(t, nil)
	var w []*Ticket
	for range 20 {
		w = append(w, named("a", "a", 0))
	}
	stand(t, l, w...)
	b.order(t, 10, w)
	w = append(w, stand(t, l, named("b", "b", 0), named("b", "b", 0), named("b", "b", 0))...)
	awake(w)
	if diff := cmp.Diff(b.order(t, 5, w), []string{"a", "b", "a", "b", "a"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestWhoStandsBehindAProbeIsToldOfTheBreaker(t *testing.T) {
	l := lineOf(func(p *policy.Policy) { p.Breaker.Consecutive, p.Breaker.Jitter = 1, -1 })
	trips := first("trips")
	a := l.Ask(start, trips)
	l.Observe(start, Result{Pass: a.Pass, Verdict: classify.Verdict{Class: classify.Transient}})
	l.Release(start, a.Pass, trips)
	later := start.Add(2 * time.Second)
	if a := l.Ask(later, first("probes")); a.Kind != Go || !a.Pass.Probe {
		t.Fatalf("got %+v, want a probe", a)
	}
	l.Ask(later, first("asks the gate"))
	if a := l.Ask(later, first("stands behind")); a.Breaker != HalfOpen || !a.Everyone {
		t.Errorf("got %+v, want half open for everyone", a)
	}
}
