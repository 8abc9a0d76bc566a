package queuetest

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"pgregory.net/rapid"
)

// model is the queue as it is meant, in memory and without any index.
type model struct {
	*rapid.T
	r     *rig
	now   time.Time
	calls []*kept
	gates map[string]time.Time // closed until
	keys  map[string]string    // idempotency key → id
	n     int
}

// kept is a call of the model.
type kept struct {
	id, gate, key string
	lane          int // of its tenant
	priority      int
	state         queue.State
	due           time.Time
	expires       time.Time
	repeatable    bool
	claim         queue.Claim
	order         int
}

// share is what one gate may have running in the model.
const share = 3

// testModel walks at random and compares the store with the oracle after each
// step.
func testModel(t *testing.T, open Open) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		flag.Set("rapid.checks", "10") // each opens a store; ask for more by the flag
		defer flag.Set("rapid.checks", f.DefValue)
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{T: rt, r: newRig(t, open, Options{}), now: dawn, gates: map[string]time.Time{}, keys: map[string]string{}}
		defer m.r.s.Close()
		rt.Repeat(map[string]func(*rapid.T){
			"enqueue": m.enqueue, "claim": m.claimSome, "settle": m.settleOne, "pass": m.pass,
			"cancel": m.cancel, "replay": m.replay, "close": m.closeGate, "": m.check,
		})
	})
}

func (m *model) enqueue(t *rapid.T) {
	m.n++
	c := read(fmt.Sprintf("c%04d", m.n))
	c.Gate = rapid.SampledFrom([]string{"g1", "g2", "g3"}).Draw(t, "gate")
	c.Tenant = rapid.SampledFrom([]string{"", "t1", "t2"}).Draw(t, "tenant")
	c.Priority = rapid.IntRange(0, 9).Draw(t, "priority")
	c.Repeatable = rapid.Bool().Draw(t, "repeatable")
	c.Key = rapid.SampledFrom([]string{"", "k1", "k2", "k3"}).Draw(t, "key")
	if c.Key != "" {
		c.Tenant = "t" + c.Key[1:] // another tenant's call under it would be a conflict
	}
	k := &kept{id: c.ID, gate: c.Gate, lane: queue.LineOf(c.Tenant, 0).Lane(), key: c.Key, priority: c.Priority, due: m.now, repeatable: c.Repeatable, order: m.n}
	if d := rapid.IntRange(0, 3).Draw(t, "delay"); d > 0 {
		c.NotBefore = m.now.Add(time.Duration(d) * time.Second)
		k.due = c.NotBefore
	}
	if rapid.IntRange(0, 4).Draw(t, "expiring") == 0 {
		c.Expires = m.now.Add(20 * time.Second)
		k.expires = c.Expires
	}
	got, err := m.r.s.Enqueue(t.Context(), m.now, []queue.Call{c})
	m.ok(err)
	if id := m.keys[c.Key]; c.Key != "" && id != "" {
		if got[0].Admission != queue.Duplicate || got[0].ID != id {
			t.Fatalf("enqueue %s: got %+v, want a duplicate of %s", c.ID, got[0], id)
		}
		return
	}
	if got[0].Admission != queue.New {
		t.Fatalf("enqueue %s: got %+v, want new", c.ID, got[0])
	}
	if c.Key != "" {
		m.keys[c.Key] = c.ID
	}
	m.calls = append(m.calls, k)
}

func (m *model) ok(err error) {
	if err != nil {
		m.Fatal(err)
	}
}

func (m *model) pass(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 12000).Draw(t, "ms")) * time.Millisecond)
}

// expire does in the model what Sweep and the next Claim do in the store.
func (m *model) expire(t *rapid.T) {
	_, err := m.r.s.Sweep(t.Context(), m.now, 1000)
	m.ok(err)
	for _, k := range m.calls {
		if k.state == queue.Queued && !k.expires.IsZero() && !k.expires.After(m.now) {
			k.state = queue.Dead
		}
	}
}

func (m *model) rescue() {
	for _, k := range m.calls {
		if k.state == queue.Running && !k.claim.Lease.Until.After(m.now) {
			if k.state = queue.Unknown; k.repeatable {
				k.state = queue.Queued
			}
		}
	}
}

func (m *model) claimSome(t *rapid.T) {
	m.expire(t)
	m.rescue()
	for _, k := range m.calls { // a rescued call may have expired meanwhile
		if k.state == queue.Queued && !k.expires.IsZero() && !k.expires.After(m.now) {
			t.Skip("an expired call is rescued")
		}
	}
	ask := queue.Ask{Max: rapid.IntRange(1, 8).Draw(t, "max"), Share: share, Lease: lease}
	want := 0
	for _, g := range []string{"g1", "g2", "g3"} {
		want += min(len(m.due(g)), share-m.running(g))
	}
	b, err := m.r.s.Claim(t.Context(), m.now, ask)
	m.ok(err)
	if want = min(want, ask.Max); len(b.Claims) != want {
		t.Fatalf("claimed: got %v, want %d calls", ids(b.Claims), want)
	}
	for _, c := range b.Claims {
		lane := queue.LineOf(c.Tenant, 0).Lane()
		due := m.due(c.Gate)
		first := slices.IndexFunc(due, func(k *kept) bool { return k.lane == lane })
		if first < 0 || due[first].id != c.ID {
			t.Fatalf("claimed %s of tenant %q in gate %s, where %v are due", c.ID, c.Tenant, c.Gate, due)
		}
		due[first].state, due[first].claim = queue.Running, c
	}
}

// due lists what may be claimed of a gate in the order in which each tenant's goes.
func (m *model) due(gate string) []*kept {
	var all []*kept
	for _, k := range m.calls {
		if k.gate == gate && k.state == queue.Queued && !k.due.After(m.now) && !m.gates[gate].After(m.now) {
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, func(a, b *kept) int {
		if d := queue.Rank(a.due, a.priority) - queue.Rank(b.due, b.priority); d != 0 {
			return int(max(-1, min(1, d)))
		}
		return a.order - b.order
	})
	return all
}

func (k *kept) String() string { return k.id }

func (m *model) running(gate string) (n int) {
	for _, k := range m.calls {
		if k.gate == gate && k.state == queue.Running {
			n++
		}
	}
	return n
}

// pick draws a call in one of the states.
func (m *model) pick(t *rapid.T, states ...queue.State) *kept {
	var all []*kept
	for _, k := range m.calls {
		if slices.Contains(states, k.state) {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(all).Draw(t, "call")
}

func (m *model) settleOne(t *rapid.T) {
	k := m.pick(t, queue.Running)
	o := queue.Outcome{State: rapid.SampledFrom(queue.States).Draw(t, "state"), Reason: "r"}
	switch o.State {
	case queue.Running, queue.Cancelled:
		o.State = queue.Queued
		fallthrough
	case queue.Queued:
		o.Until = m.now.Add(time.Duration(rapid.IntRange(-1, 5).Draw(t, "wait")) * time.Second)
		o.Scope = rapid.SampledFrom([]queue.Scope{queue.ScopeCall, queue.ScopeGate}).Draw(t, "scope")
	}
	lost, err := m.r.s.Settle(t.Context(), m.now, []queue.Settlement{{ID: k.id, Lease: k.claim.Lease, Outcome: o}})
	m.ok(err)
	if len(lost) > 0 {
		t.Fatalf("settle %s: the lease is lost, though nobody took it back", k.id)
	}
	k.state = o.State
	switch {
	case o.State != queue.Queued || !o.Until.After(m.now):
	case o.Scope == queue.ScopeCall:
		k.due = o.Until
	case o.Until.After(m.gates[k.gate]):
		m.gates[k.gate] = o.Until
	}
}

func (m *model) cancel(t *rapid.T) {
	k := m.pick(t, queue.Queued)
	m.ok(m.r.s.Cancel(t.Context(), m.now, k.id))
	k.state = queue.Cancelled
	if m.keys[k.key] == k.id {
		delete(m.keys, k.key)
	}
}

func (m *model) replay(t *rapid.T) {
	k := m.pick(t, queue.Dead, queue.Quarantined, queue.Unknown, queue.Cancelled)
	err := m.r.s.Replay(t.Context(), m.now, queue.Replay{ID: k.id, EvenUnknown: true})
	if id := m.keys[k.key]; k.key != "" && id != "" && id != k.id {
		if !errors.Is(err, queue.ErrState) {
			t.Fatalf("replay %s, whose key %s has: got %v, want %v", k.id, id, err, queue.ErrState)
		}
		return
	}
	m.ok(err)
	if k.key != "" {
		m.keys[k.key] = k.id
	}
	k.state, k.due, k.expires = queue.Queued, m.now, time.Time{}
}

func (m *model) closeGate(t *rapid.T) {
	g := rapid.SampledFrom([]string{"g1", "g2", "g3"}).Draw(t, "gate")
	until := m.now.Add(time.Duration(rapid.IntRange(-1, 5).Draw(t, "for")) * time.Second)
	m.ok(m.r.s.SetGate(t.Context(), m.now, queue.GateChange{Endpoint: "sierra", Key: g, Closed: &until}))
	m.gates[g] = until
}

// check compares what both hold.
func (m *model) check(t *rapid.T) {
	p, err := m.r.s.List(t.Context(), queue.Filter{Limit: 10000})
	m.ok(err)
	if len(p.Calls) != len(m.calls) {
		t.Fatalf("calls: got %d, want %d", len(p.Calls), len(m.calls))
	}
	tally := map[queue.State]int{}
	for i, k := range m.calls {
		if got := p.Calls[i]; got.ID != k.id || got.State != k.state {
			t.Fatalf("call %d: got %s %s, want %s %s", i, got.ID, got.State, k.id, k.state)
		}
		tally[k.state]++
	}
	counts, err := m.r.s.Counts(t.Context())
	m.ok(err)
	for _, c := range counts {
		tally[c.State] -= c.N
	}
	for s, n := range tally {
		if n != 0 {
			t.Fatalf("count of %s: got %d fewer than the list", s, n)
		}
	}
}
