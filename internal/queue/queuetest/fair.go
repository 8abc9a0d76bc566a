package queuetest

import (
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// testFair lets 240 calls on 15 gates wait beside 2,160 that were there before
// them, all on one gate. In each round every call under way is done. Those of
// the 15 may need a fifth more rounds than if they were alone: there are 16
// gates instead of 15 to share the slots.
func testFair(r *rig) {
	others := func(prefix string) {
		for i := range 15 {
			gate := fmt.Sprintf("c%02d", i)
			r.enqueue(many(16, prefix+gate+"-", func(c *queue.Call) { c.Gate = gate })...)
		}
	}
	others("alone-")
	alone := r.rounds(240)
	for i := range 9 { // nine times as many
		r.enqueue(many(240, fmt.Sprintf("hot%d-", i), nil)...)
	}
	others("behind-")
	if got := r.rounds(240); 5*got > 6*alone {
		r.Errorf("rounds until the others are done: got %d, want at most a fifth more than the %d without the hot gate", got, alone)
	}
}

// rounds counts the rounds with 64 slots until n calls are done that are not
// of the hot gate.
func (r *rig) rounds(n int) int {
	r.Helper()
	for round := 1; ; round++ {
		claims := r.claim(64)
		if len(claims) == 0 {
			r.Fatalf("round %d: nothing is due, and %d calls are not done", round, n)
		}
		ends := make([]queue.Settlement, len(claims))
		for i, c := range claims {
			ends[i] = queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}}
			if c.Gate != "k1" {
				n--
			}
		}
		lost, err := r.s.Settle(r.Context(), r.now, ends)
		r.ok(err)
		r.same("lost", len(lost), 0)
		if n == 0 {
			return round
		}
		r.now = r.now.Add(1)
	}
}

// tenants are in lanes of their own.
var tenants = []string{"t1", "t2", "t3", "t4"}

// shortOf enqueues n calls of each tenant, by turns.
func (r *rig) shortOf(n int, of ...string) {
	for i := range n {
		for _, tenant := range of {
			r.enqueue(many(1, fmt.Sprintf("%s-%d-", tenant, i), func(c *queue.Call) { c.Tenant = tenant })...)
		}
	}
}

var tenantFacts = []fact{
	{"TheTestsTenantsHaveLanesOfTheirOwn", func(r *rig) {
		lanes := map[int]bool{}
		for _, tenant := range tenants {
			lanes[queue.LineOf(tenant, 0).Lane()] = true
		}
		r.same("lanes", len(lanes), len(tenants))
	}},
	{"ATenantWithABacklogHoldsNoOtherUp", func(r *rig) {
		r.enqueue(many(500, "hot", nil)...) // of t1
		r.pass(time.Hour)
		r.shortOf(8, tenants[1:]...)
		turns := map[string]int{}
		for range 4 { // 8 slots of the gate, 2 for each of the four
			for _, c := range r.claim(64) {
				turns[c.Tenant]++
				r.settle(c, queue.Outcome{State: queue.Done})
			}
		}
		r.same("turns", turns, map[string]int{"t1": 8, "t2": 8, "t3": 8, "t4": 8})
	}},
	{"TenantsTakeTurnsWhereOneCallRunsAtATime", func(r *rig) {
		limit := 1
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Limit: &limit}))
		r.enqueue(many(50, "hot", func(c *queue.Call) { c.Priority = 9 })...)
		r.pass(time.Hour)
		r.shortOf(3, tenants[1:]...)
		turns := map[string]int{}
		for range 12 {
			c := r.claim(64)[0]
			turns[c.Tenant]++
			r.settle(c, queue.Outcome{State: queue.Done})
		}
		r.same("turns", turns, map[string]int{"t1": 3, "t2": 3, "t3": 3, "t4": 3})
	}},
	{"WhatATenantLeavesTheOthersTake", func(r *rig) {
		r.enqueue(many(20, "hot", nil)...)
		r.shortOf(1, "t2")
		turns := map[string]int{}
		for _, c := range r.claim(64) {
			turns[c.Tenant]++
		}
		r.same("of 8 slots", turns, map[string]int{"t1": 7, "t2": 1})
	}},
	{"WhatHasExpiredTakesNoTurn", func(r *rig) {
		limit := 1
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Limit: &limit}))
		for _, tenant := range []string{"t1", "t3", "t4"} { // more than one claim ends
			r.enqueue(many(200, tenant, func(c *queue.Call) { c.Tenant, c.Expires = tenant, r.now.Add(time.Second) })...)
		}
		r.shortOf(1, "t2")
		r.pass(time.Minute)
		claims := r.claim(64)
		r.same("claimed", len(claims), 1)
		r.same("tenant", claims[0].Tenant, "t2")
	}},
	{"ACallKeepsTheLaneOfItsTenant", func(r *rig) {
		r.enqueue(many(10, "hot", nil)...)
		r.shortOf(2, "t2")
		for _, c := range r.claim(2) {
			r.settle(c, queue.Outcome{State: queue.Queued, Until: r.now.Add(time.Second)})
		}
		r.pass(time.Minute)
		r.restart(r.keys)
		turns := map[string]int{}
		for _, c := range r.claim(4) {
			turns[c.Tenant]++
		}
		r.same("turns after a wait and a restart", turns, map[string]int{"t1": 2, "t2": 2})
	}},
}
