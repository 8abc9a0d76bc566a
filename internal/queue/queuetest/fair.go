package queuetest

import (
	"fmt"

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
