package admit

import (
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// wants asks g for a retry after v.
func wants(g *Gate, v classify.Verdict) Told {
	return g.Observe(start, Result{Pass: Pass{At: start}, Verdict: v, Status: 500, Retry: true})
}

func budgetOf(tokens int) *Gate {
	return gateOf(func(p *policy.Policy) { p.Retry.Tokens.Capacity, p.Breaker.Off = tokens, true })
}

func TestARetryCostsFiveAfterAThrottleAndFourteenOtherwise(t *testing.T) {
	g := budgetOf(100)
	for _, c := range []struct {
		v    classify.Verdict
		cost int
	}{{throttle, 5}, {failed, 14}, {overload, 14}} {
		before := g.budget
		if told := wants(g, c.v); !told.Retry || told.Cost != c.cost || before-g.budget != c.cost {
			t.Errorf("%v: got %+v and %d taken, want %d", c.v.Class, told, before-g.budget, c.cost)
		}
	}
}

func TestAnEmptyBudgetRefusesTheRetryAndTakesNothing(t *testing.T) {
	g := budgetOf(20)
	if told := wants(g, failed); !told.Retry {
		t.Fatal("got the first retry refused")
	}
	if told := wants(g, failed); told.Retry || told.Cost != 0 || g.budget != 6 {
		t.Errorf("got %+v with %d left, want it refused with 6 left", told, g.budget)
	}
	if told := wants(g, throttle); !told.Retry {
		t.Error("got the cheaper retry refused, want it let through")
	}
}

func TestFirstAttemptsAreNeverRefusedByTheBudget(t *testing.T) {
	g := budgetOf(1)
	for range 100 {
		if a := g.Admit(start, Ask{Group: -1, First: true}); a.Kind != Go {
			t.Fatalf("got %d, want go", a.Kind)
		}
		wants(g, failed)
	}
}

func TestASuccessGivesBackWhatItsRetryTook(t *testing.T) {
	g := budgetOf(100)
	g.budget = 50
	g.Observe(start, Result{Verdict: ok, Paid: 14})
	if g.budget != 64 {
		t.Errorf("after a paid retry: got %d, want 64", g.budget)
	}
	g.Observe(start, Result{Verdict: ok})
	if g.budget != 65 {
		t.Errorf("after a first attempt: got %d, want 65", g.budget)
	}
}

func TestTheBudgetIsCapped(t *testing.T) {
	g := budgetOf(100)
	g.budget = 95
	for range 10 {
		g.Observe(start, Result{Verdict: ok, Paid: 14})
	}
	if g.budget != 100 {
		t.Errorf("got %d, want the capacity of 100", g.budget)
	}
}

func TestACancelledRetryGivesItsTokensBackOnce(t *testing.T) {
	g := budgetOf(100)
	told := wants(g, failed)
	g.Observe(start, Result{Failure: classify.Canceled, Paid: told.Cost})
	if g.budget != 100 {
		t.Errorf("got %d, want 100", g.budget)
	}
	g.Observe(start, Result{Failure: classify.Canceled})
	if g.budget != 100 {
		t.Errorf("after a cancelled first attempt: got %d, want 100", g.budget)
	}
}

func TestAFailedRetryGivesNothingBack(t *testing.T) {
	g := budgetOf(100)
	g.budget = 50
	g.Observe(start, Result{Verdict: failed, Paid: 14})
	if g.budget != 50 {
		t.Errorf("got %d, want 50", g.budget)
	}
}

// The breaker bounds that load already.
func TestTheBudgetIsWaivedWhileTheBreakerIsOpen(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Retry.Tokens.Capacity, p.Breaker.Consecutive = 1, 1 })
	if told := wants(g, failed); !told.Retry || told.Cost != 0 || told.Breaker != Open {
		t.Errorf("got %+v, want a retry for nothing", told)
	}
}

func TestTheBudgetCanBeSwitchedOff(t *testing.T) {
	g := gateOf(func(p *policy.Policy) { p.Retry.Tokens = policy.Tokens{Off: true, Capacity: 1}; p.Breaker.Off = true })
	for range 100 {
		if told := wants(g, failed); !told.Retry || told.Cost != 0 {
			t.Fatalf("got %+v, want a retry for nothing", told)
		}
	}
}

func concurrent() *Gate {
	return gateOf(func(p *policy.Policy) {
		p.Limits.Concurrency = 3
		p.Limits.Groups = []policy.Group{{Name: "bibs", Concurrency: 1}, {Name: "items", Concurrency: 2}, {Name: "any"}}
		p.Breaker.Consecutive = 1
	})
}

func TestAPermitIsHeldUntilRelease(t *testing.T) {
	g := concurrent()
	var passes []Pass
	for range 3 {
		passes = append(passes, leave(t, g, start))
	}
	g.Observe(start, Result{Pass: passes[0], Verdict: ok, Status: 200}) // the head is there, the body is not
	if a := g.Admit(start, anyone); a.Kind != Wait || a.Source != policy.WaitConcurrency || !a.Everyone || !a.At.IsZero() {
		t.Errorf("got %+v, want everyone to wait to be woken", a)
	}
	g.Release(start, passes[0])
	leave(t, g, start)
}

func TestAGroupHasACapOfItsOwn(t *testing.T) {
	g := concurrent()
	first := g.Admit(start, Ask{Group: 0})
	if a := g.Admit(start, Ask{Group: 0}); a.Kind != Wait || a.Source != policy.WaitConcurrency || a.Everyone {
		t.Errorf("a second one of the group: got %+v, want it alone to wait", a)
	}
	for _, group := range []int{1, 2} {
		if a := g.Admit(start, Ask{Group: group}); a.Kind != Go {
			t.Errorf("group %d: got %d, want go", group, a.Kind)
		}
	}
	g.Release(start, first.Pass)
	if a := g.Admit(start, Ask{Group: 0}); a.Kind != Go {
		t.Errorf("after the release: got %d, want go", a.Kind)
	}
}

func TestAProbeNeedsNoPermit(t *testing.T) {
	g := concurrent()
	var passes []Pass
	for range 3 {
		passes = append(passes, leave(t, g, start)) // never answered: what went wrong
	}
	g.Observe(start, Result{Pass: passes[0], Verdict: failed, Failure: classify.HeaderTimeout})
	probe := leave(t, g, start.Add(2*time.Second))
	if !probe.Probe {
		t.Fatal("got an ordinary attempt, want a probe")
	}
	g.Release(start, probe)
	if got := g.Snapshot(start).InFlight; got != 3 {
		t.Errorf("got %d in flight, want the 3 that hold permits", got)
	}
}
