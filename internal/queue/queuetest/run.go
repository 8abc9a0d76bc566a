// Package queuetest is the suite that every store of the queue must pass.
//
// Run holds one behaviour per subtest, and then lets a random walk compare the
// store with an oracle in memory. A store's own tests are for what is its own:
// files, crashes, several processes.
package queuetest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed/internal/queue"
)

// Options are what a test wants of a store.
type Options struct {
	Keys *queue.Keys
	Keep queue.Keep
	Most int // calls queued or running; 0: no bound
}

// Open makes a new, empty store and closes it when the test ends. again closes
// it and opens it once more, with another ring. Open is called many times.
type Open func(t testing.TB, o Options) (s queue.Store, again func(*queue.Keys) queue.Store)

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for _, group := range [][]fact{enqueueFacts, claimFacts, beginFacts, fairFacts, tenantFacts, settleFacts, gateFacts, readFacts, operatorFacts, keeperFacts, oddFacts} {
		for _, f := range group {
			t.Run(f.name, func(t *testing.T) { f.hold(newRig(t, open, Options{})) })
		}
	}
	t.Run("Bounds", func(t *testing.T) { testFull(t, open) })
	t.Run("Restart", func(t *testing.T) { testRestart(t, open) })
	t.Run("Rotation", func(t *testing.T) { testRotation(t, open) })
	t.Run("InterruptedRotation", func(t *testing.T) { testInterruptedRotation(t, open) })
	t.Run("LargeRotation", func(t *testing.T) { testLargeRotation(t, open) })
	t.Run("Model", func(t *testing.T) { testModel(t, open) })
}

// fact is one behaviour.
type fact struct {
	name string
	hold func(*rig)
}

// rig is a store, a clock that is set by hand, and short words.
type rig struct {
	testing.TB
	s     queue.Store
	again func(*queue.Keys) queue.Store
	keys  *queue.Keys
	now   time.Time
}

// dawn is when every test begins.
var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

const lease = 30 * time.Second

func newRig(t testing.TB, open Open, o Options) *rig {
	if o.Keys == nil {
		o.Keys = queue.NewKeys(queue.NewKey())
	}
	s, again := open(t, o)
	return &rig{TB: t, s: s, again: again, keys: o.Keys, now: dawn}
}

// restart ends the store and opens it again with a ring.
func (r *rig) restart(k *queue.Keys) {
	r.keys = k
	r.s = r.again(k)
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) { r.now = r.now.Add(d) }

// write is a call that must not be repeated blindly.
func write(id string) queue.Call {
	return queue.Call{
		Facts: queue.Facts{ID: id, Endpoint: "sierra", Gate: "k1", Method: "POST", Template: "/patrons/{id}", Priority: 5,
			Tenant: "t1", CorrelationID: "corr-" + id, TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Request: queue.Request{Path: "/patrons/17?fields=a", Header: http.Header{"X-One": {"a", "b"}}, Body: []byte("body of " + id)},
	}
}

// read is a call that may be repeated.
func read(id string) queue.Call {
	c := write(id)
	c.Method, c.Repeatable, c.Body = "GET", true, nil
	return c
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) isErr(got, want error) {
	r.Helper()
	if !errors.Is(got, want) {
		r.Errorf("error: got %v, want one that is %q", got, want)
	}
}

func (r *rig) same(what string, got, want any) {
	r.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		r.Errorf("%s (-got +want):\n%s", what, diff)
	}
}

func (r *rig) enqueue(calls ...queue.Call) []queue.Receipt {
	r.Helper()
	receipts, err := r.s.Enqueue(r.Context(), r.now, calls)
	r.ok(err)
	return receipts
}

// claim asks for up to n calls, eight of a gate.
func (r *rig) claim(n int) []queue.Claim {
	r.Helper()
	return r.ask(queue.Ask{Max: n, Share: 8, Lease: lease}).Claims
}

func (r *rig) ask(a queue.Ask) queue.Batch {
	r.Helper()
	b, err := r.s.Claim(r.Context(), r.now, a)
	r.ok(err)
	return b
}

// one claims the only call that is due.
func (r *rig) one() queue.Claim {
	r.Helper()
	c := r.claim(10)
	if len(c) != 1 {
		r.Fatalf("claimed: got %v, want one call", ids(c))
	}
	return c[0]
}

func (r *rig) settle(c queue.Claim, o queue.Outcome) {
	r.Helper()
	lost, err := r.s.Settle(r.Context(), r.now, []queue.Settlement{{ID: c.ID, Lease: c.Lease, Outcome: o}})
	r.ok(err)
	if len(lost) > 0 {
		r.Fatalf("settle %s: the lease is lost", c.ID)
	}
}

func (r *rig) get(id string) queue.Facts {
	r.Helper()
	f, err := r.s.Get(r.Context(), id)
	r.ok(err)
	return f
}

func (r *rig) state(id string, want queue.State) {
	r.Helper()
	if got := r.get(id).State; got != want {
		r.Errorf("state of %s: got %s, want %s", id, got, want)
	}
}

// end brings a new call to a state.
func (r *rig) end(c queue.Call, o queue.Outcome) {
	r.Helper()
	r.enqueue(c)
	r.settle(r.one(), o)
}

func (r *rig) list(f queue.Filter) []string {
	r.Helper()
	p, err := r.s.List(r.Context(), f)
	r.ok(err)
	return names(p.Calls)
}

func ids(claims []queue.Claim) []string {
	out := make([]string, len(claims))
	for i := range claims {
		out[i] = claims[i].ID
	}
	return out
}

func names(calls []queue.Facts) []string {
	out := make([]string, len(calls))
	for i := range calls {
		out[i] = calls[i].ID
	}
	return out
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// many makes n calls that differ in their id.
func many(n int, prefix string, change func(*queue.Call)) []queue.Call {
	calls := make([]queue.Call, n)
	for i := range calls {
		calls[i] = read(fmt.Sprintf("%s%04d", prefix, i))
		if change != nil {
			change(&calls[i])
		}
	}
	return calls
}
