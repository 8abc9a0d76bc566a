package queuetest

import (
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// oddFacts are of what nobody does on purpose.
var oddFacts = []fact{
	{"ACallIsNotReplayedBesideTheOneThatHasItsKeyNow", func(r *rig) {
		r.enqueue(keyed("a", "k", "x"))
		r.ok(r.s.Cancel(r.Context(), r.now, "a"))
		r.end(keyed("b", "k", "x"), queue.Outcome{State: queue.Done})
		r.isErr(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}), queue.ErrState)
		r.state("a", queue.Cancelled)
		r.ok(r.s.Edit(r.Context(), r.now, "a", keyed("a", "another", "x").Request))
		r.ok(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}))
	}},
	{"AReplayTakesTheKeyAgain", func(r *rig) {
		r.enqueue(keyed("a", "k", "x"))
		r.ok(r.s.Cancel(r.Context(), r.now, "a"))
		r.ok(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}))
		r.same("a repeat", r.enqueue(keyed("b", "k", "x")), []queue.Receipt{{Admission: queue.Duplicate, ID: "a", State: queue.Queued}})
	}},
	{"ADeadCallTakesItsKeyAgainWhenItsWindowHasEnded", func(r *rig) {
		r.end(keyed("a", "k", "x"), queue.Outcome{State: queue.Dead, Reason: "permanent"})
		r.pass(25 * time.Hour)
		r.ok(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}))
		r.same("a repeat", r.enqueue(keyed("b", "k", "x")), []queue.Receipt{{Admission: queue.Duplicate, ID: "a", State: queue.Queued}})
	}},
	{"AKeyOfAnotherTenantIsAConflict", func(r *rig) {
		r.end(keyed("a", "k", "x"), queue.Outcome{State: queue.Done})
		_, err := r.s.Purge(r.Context(), []string{"a"})
		r.ok(err)
		other := keyed("b", "k", "x")
		other.Tenant = "t2"
		r.same("another tenant", r.enqueue(other)[0].Admission, queue.Conflict)
		r.same("the same one", r.enqueue(keyed("c", "k", "x"))[0].Admission, queue.Duplicate)
	}},
	{"AnInstantThatIsFarAwayIsNotPast", func(r *rig) {
		far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		for id, at := range map[string]time.Time{"a": far, "b": time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)} {
			c := read(id)
			c.NotBefore, c.Expires = at, far
			r.enqueue(c)
		}
		r.same("due", ids(r.claim(10)), []string{})
		c := read("c")
		c.Expires = far
		r.enqueue(c)
		claimed := r.one()
		r.same("not expired", claimed.ID, "c")
		r.settle(claimed, queue.Outcome{State: queue.Queued, Until: far, Scope: queue.ScopeGate})
		r.same("of a closed gate", ids(r.claim(10)), []string{})
		_, err := r.s.Sweep(r.Context(), r.now, 10)
		r.ok(err)
		r.same("all wait", len(r.list(queue.Filter{States: []queue.State{queue.Queued}})), 3)
	}},
}
