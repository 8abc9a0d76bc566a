package queuetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

var claimFacts = []fact{
	{"ACallIsHandedOutOnce", func(r *rig) {
		r.enqueue(read("a"))
		r.one()
		r.same("second claim", ids(r.claim(10)), []string{})
		r.state("a", queue.Running)
	}},
	{"NothingIsHandedOutBeforeItsTime", func(r *rig) {
		c := read("a")
		c.NotBefore = r.now.Add(time.Minute)
		r.enqueue(c)
		b := r.ask(queue.Ask{Max: 10, Lease: lease})
		r.same("claims", ids(b.Claims), []string{})
		if !b.Next.Equal(c.NotBefore) {
			r.Errorf("when to ask again: got %v, want %v", b.Next, c.NotBefore)
		}
		r.pass(time.Minute)
		r.one()
	}},
	{"EqualsGoInTheOrderTheyCame", func(r *rig) {
		r.enqueue(many(5, "a", nil)...)
		r.pass(time.Second)
		r.enqueue(many(3, "b", nil)...)
		r.same("order", strings.Join(ids(r.claim(7)), " "), "a0000 a0001 a0002 a0003 a0004 b0000 b0001")
	}},
	{"AHigherPriorityGoesFirst", func(r *rig) {
		low, high := read("low"), read("high")
		low.Priority, high.Priority = 0, 9
		r.enqueue(low)
		r.pass(time.Second)
		r.enqueue(high)
		r.same("order", ids(r.claim(2)), []string{"high", "low"})
	}},
	{"AgeOutgrowsPriority", func(r *rig) {
		low := read("low")
		low.Priority = 0
		r.enqueue(low)
		r.pass(9*queue.AgeStep + time.Second)
		high := read("high")
		high.Priority = 9
		r.enqueue(high)
		r.same("order", ids(r.claim(2)), []string{"low", "high"})
	}},
	{"ACallThatWaitsForItsTimeHoldsNobodyUp", func(r *rig) {
		r.enqueue(many(300, "later", func(c *queue.Call) { c.Priority, c.NotBefore = 9, r.now.Add(time.Minute) })...)
		r.enqueue(read("now"))
		r.same("claims", ids(r.claim(10)), []string{"now"})
	}},
	{"AnExpiredCallIsNotHandedOut", func(r *rig) {
		c := read("a")
		c.Expires = r.now.Add(time.Minute)
		r.enqueue(c)
		r.pass(time.Minute)
		r.same("claims", ids(r.claim(10)), []string{})
		f := r.get("a")
		r.same("state and reason", []string{f.State.String(), f.Reason}, []string{"dead", queue.ReasonExpired})
		if f.Note == nil || f.Note.Replay == "" {
			r.Errorf("note: got %+v, want one that says how to replay", f.Note)
		}
	}},
	{"ACallBehindManyThatHaveExpiredIsHandedOut", func(r *rig) {
		r.enqueue(many(1000, "late", func(c *queue.Call) { c.Expires = r.now.Add(time.Second) })...)
		r.pass(time.Minute)
		r.enqueue(read("a"))
		var b queue.Batch
		for n := 0; len(b.Claims) == 0; n++ {
			b = r.ask(queue.Ask{Max: 64, Share: 8, Lease: lease})
			if len(b.Claims) == 0 && !b.Next.Equal(r.now) {
				r.Fatalf("ask again, at claim %d: got %v, want at once", n, b.Next)
			}
		}
		r.same("claims", ids(b.Claims), []string{"a"})
	}},
	{"WhoGotLessThanAskedForIsToldToAskAgainWhileMoreIsDueBehindWhatHasExpired", func(r *rig) {
		// What a store passes over in one claim ends between the first and the
		// last of those that are due: 4096 calls, when 256 were ended before.
		r.enqueue(many(4096+256-3, "late", func(c *queue.Call) { c.Expires = r.now.Add(time.Second) })...)
		r.pass(time.Minute)
		r.enqueue(many(12, "a", func(*queue.Call) {})...)
		for left := 12; left > 0; {
			b := r.ask(queue.Ask{Max: 16, Lease: lease})
			if left -= len(b.Claims); left > 0 && !b.Next.Equal(r.now) {
				r.Fatalf("ask again, while %d are due: got %v, want at once", left, b.Next)
			}
		}
	}},
	{"AClaimCarriesSoManyBytesAndTheRestIsToBeHadAtOnce", func(r *rig) {
		r.enqueue(many(7, "a", func(c *queue.Call) { c.Body = make([]byte, 10_000) })...)
		ask := queue.Ask{Max: 10, Lease: lease, Bytes: 35_000}
		var claims []int
		for range 3 {
			b := r.ask(ask)
			claims = append(claims, len(b.Claims))
			if !b.Next.Equal(r.now) && len(b.Claims) == 3 {
				r.Errorf("ask again: got %v, want at once", b.Next)
			}
		}
		r.same("claims", claims, []int{3, 3, 1})
	}},
	{"ACallThatIsLargerThanAClaimCarriesIsHandedOutAlone", func(r *rig) {
		r.enqueue(many(2, "a", func(c *queue.Call) { c.Body = make([]byte, 10_000) })...)
		ask := queue.Ask{Max: 10, Lease: lease, Bytes: 1}
		r.same("first", ids(r.ask(ask).Claims), []string{"a0000"})
		r.same("second", ids(r.ask(ask).Claims), []string{"a0001"})
	}},
	{"ALostLeaseOfARepeatableCallIsQueuedAgain", func(r *rig) {
		r.enqueue(read("a"))
		first := r.one()
		r.pass(lease)
		second := r.one()
		if first.Lease.Token == second.Lease.Token && first.Lease.Epoch == second.Lease.Epoch {
			r.Error("lease: got the lost one again, want a new one")
		}
	}},
	{"ALostLeaseOfAWriteIsUnknown", func(r *rig) {
		r.enqueue(write("a"))
		r.one()
		r.pass(lease)
		r.same("claims", ids(r.claim(10)), []string{})
		f := r.get("a")
		r.same("state and reason", []string{f.State.String(), f.Reason}, []string{"unknown", queue.ReasonLeaseLost})
		if f.Note == nil || f.Note.Do == "" {
			r.Errorf("note: got %+v, want one that says what to do", f.Note)
		}
	}},
	{"ALostLeaseOfAWriteTellsItsAttempt", func(r *rig) {
		r.enqueue(write("a"))
		r.pass(time.Minute) // it is due for a while
		c := r.one()
		if b, ok := r.s.(queue.Beginner); ok {
			_, err := b.Begin(r.Context(), []queue.Claim{c})
			r.ok(err)
		}
		r.pass(lease)
		r.claim(10)
		f := r.get("a")
		r.same("attempts", []int{f.Ladder.Attempts, len(f.Trail)}, []int{1, 1})
		r.same("reason", f.Trail[0].Reason, queue.ReasonLeaseLost)
		r.same("it has an instant", f.Trail[0].At.IsZero(), false)
	}},
	{"ALostLeaseSettlesNothing", func(r *rig) {
		r.enqueue(read("a"))
		first := r.one()
		r.pass(lease)
		second := r.one()
		lost, err := r.s.Settle(r.Context(), r.now, []queue.Settlement{
			{ID: "a", Lease: first.Lease, Outcome: queue.Outcome{State: queue.Dead, Reason: "permanent"}}})
		r.ok(err)
		r.same("lost", lost, []string{"a"})
		r.state("a", queue.Running)
		r.settle(second, queue.Outcome{State: queue.Done})
		r.state("a", queue.Done)
	}},
	{"ARenewedLeaseLasts", func(r *rig) {
		r.enqueue(write("a"))
		c := r.one()
		r.pass(lease - 1)
		lost, err := r.s.Renew(r.Context(), r.now.Add(lease), []queue.Claim{c})
		r.ok(err)
		r.same("lost", len(lost), 0)
		r.pass(lease - 1)
		r.same("claims", ids(r.claim(10)), []string{})
		r.settle(c, queue.Outcome{State: queue.Done})
	}},
	{"ALostLeaseIsNotRenewed", func(r *rig) {
		r.enqueue(read("a"))
		first := r.one()
		r.pass(lease)
		r.one()
		lost, err := r.s.Renew(r.Context(), r.now.Add(lease), []queue.Claim{first})
		r.ok(err)
		r.same("lost", lost, []string{"a"})
	}},
}

// beginFacts hold for a store that is a Beginner.
var beginFacts = []fact{
	{"AClaimedWriteThatWasNotBegunIsQueuedAgain", func(r *rig) {
		r.beginner()
		r.enqueue(write("a"))
		ask := queue.Ask{Max: 10, Share: 8, Lease: lease, Begins: true}
		r.same("claims", ids(r.ask(ask).Claims), []string{"a"})
		r.pass(lease)
		r.same("again", ids(r.ask(ask).Claims), []string{"a"})
		r.same("no attempt was made", r.get("a").Ladder, queue.Ladder{})
	}},
	{"WhatMayBeRepeatedIsNotCalledUnsentWhenItsLeaseIsLost", func(r *rig) {
		r.beginner()
		r.enqueue(read("a"), write("b"))
		ask := queue.Ask{Max: 10, Share: 8, Lease: lease, Begins: true}
		r.same("claims", len(r.ask(ask).Claims), 2)
		r.pass(lease)
		again := r.ask(ask).Claims
		reasons := map[string]string{}
		for _, c := range again {
			reasons[c.ID] = c.Reason
		}
		r.same("reasons", reasons, map[string]string{"a": queue.ReasonLeaseLost, "b": queue.ReasonHandedBack})
	}},
	{"ABegunWriteIsUnknownWhenItsLeaseIsLost", func(r *rig) {
		b := r.beginner()
		r.enqueue(write("a"))
		ask := queue.Ask{Max: 10, Share: 8, Lease: lease, Begins: true}
		lost, err := b.Begin(r.Context(), r.ask(ask).Claims)
		r.ok(err)
		r.same("lost", len(lost), 0)
		begun := r.get("a").Begun
		r.same("it is told since when it may have been sent", begun.IsZero(), false)
		r.pass(lease)
		r.same("again", ids(r.ask(ask).Claims), []string{})
		r.state("a", queue.Unknown)
		r.same("its attempt began", r.get("a").Ladder.Last, begun)
	}},
	{"WhatWasTakenBackIsNotBegun", func(r *rig) {
		b := r.beginner()
		r.enqueue(write("a"))
		ask := queue.Ask{Max: 10, Share: 8, Lease: lease, Begins: true}
		first := r.ask(ask).Claims
		r.pass(lease)
		second := r.ask(ask).Claims
		lost, err := b.Begin(r.Context(), first)
		r.ok(err)
		r.same("lost", lost, []string{"a"})
		lost, err = b.Begin(r.Context(), second)
		r.ok(err)
		r.same("lost by the second", len(lost), 0)
	}},
}

func (r *rig) beginner() queue.Beginner {
	r.Helper()
	b, ok := r.s.(queue.Beginner)
	if !ok {
		r.Skip("this store counts every claimed call as begun")
	}
	return b
}

var fairFacts = []fact{
	{"AHotGateHoldsNoOtherUp", testFair},
	{"AGateHasItsShareOfTheSlots", func(r *rig) {
		r.enqueue(many(20, "a", nil)...)
		r.same("first", len(r.claim(64)), 8)
		r.same("while they run", len(r.claim(64)), 0)
	}},
	{"ALimitHoldsWhateverTheShare", func(r *rig) {
		limit := 3
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Limit: &limit}))
		r.enqueue(many(20, "a", nil)...)
		claims := r.claim(64)
		r.same("first", len(claims), 3)
		r.settle(claims[0], queue.Outcome{State: queue.Done})
		r.same("after one is done", len(r.claim(64)), 1)
	}},
	{"AHotGateAheadHoldsNoOtherUp", func(r *rig) {
		r.enqueue(many(500, "hot", nil)...)
		r.pass(time.Second)
		for _, gate := range []string{"c1", "c2", "c3"} {
			r.enqueue(many(10, gate, func(c *queue.Call) { c.Gate = gate })...)
		}
		// Four slots, each free again at once: 30 cold calls need 30 of the
		// 40 turns in which every gate is served as often as the hot one.
		cold := 0
		for range 10 {
			for _, c := range r.claim(4) {
				if c.Gate != "k1" {
					cold++
				}
				r.settle(c, queue.Outcome{State: queue.Done})
			}
			r.pass(time.Millisecond)
		}
		r.same("cold calls done", cold, 30)
	}},
	{"AGateOrATenantWhoseCallDidNotFitKeepsItsTurn", func(r *rig) {
		for i := range 3 {
			for _, gate := range []string{"g1", "g2"} {
				r.enqueue(many(1, fmt.Sprint(gate, "-1-", i), func(c *queue.Call) { c.Gate = gate })...)
				r.enqueue(many(1, fmt.Sprint(gate, "-2-", i), func(c *queue.Call) { c.Gate, c.Tenant = gate, "t2" })...)
			}
		}
		turns := map[string]int{}
		for range 4 {
			c := r.ask(queue.Ask{Max: 10, Lease: lease, Bytes: 1}).Claims[0]
			turns[c.Gate+" "+c.Tenant]++
			r.pass(time.Millisecond)
		}
		r.same("turns", turns, map[string]int{"g1 t1": 1, "g1 t2": 1, "g2 t1": 1, "g2 t2": 1})
	}},
	{"TheGateServedLongestAgoIsNext", func(r *rig) {
		for _, gate := range []string{"g1", "g2", "g3"} {
			r.enqueue(many(4, gate, func(c *queue.Call) { c.Gate = gate })...)
		}
		var served []string
		for range 6 {
			served = append(served, r.claim(1)[0].Gate)
			r.pass(time.Millisecond)
		}
		r.same("in turn", strings.Join(served[:3], " "), strings.Join(served[3:], " "))
		r.same("each once", sorted(served[:3]), []string{"g1", "g2", "g3"})
	}},
}
