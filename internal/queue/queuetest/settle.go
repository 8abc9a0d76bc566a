package queuetest

import (
	"net/http"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

var settleFacts = []fact{
	{"OfTwoClaimsOfACallOnlyTheLaterIsSettled", func(r *rig) {
		r.enqueue(read("a"))
		first := r.claim(1)[0]
		r.pass(2 * lease)
		second := r.claim(1)[0]
		lost, err := r.s.Settle(r.Context(), r.now, []queue.Settlement{
			{ID: "a", Lease: first.Lease, Outcome: queue.Outcome{State: queue.Dead, Reason: "r"}},
			{ID: "a", Lease: second.Lease, Outcome: queue.Outcome{State: queue.Done}},
		})
		r.ok(err)
		r.same("lost", lost, []string{"a"})
		counts, err := r.s.Counts(r.Context())
		r.ok(err)
		r.same("counts", counts, []queue.Count{{Endpoint: "sierra", State: queue.Done, N: 1}})
	}},
	{"ADoneCallKeepsItsAnswerAndLosesItsBody", func(r *rig) {
		answer := queue.Result{Status: 201, Header: http.Header{"Etag": {`"1"`}}, Body: []byte("made")}
		r.end(write("a"), queue.Outcome{State: queue.Done, Class: "ok", Answer: &answer,
			Attempts: []queue.Attempt{{At: r.now, Status: 201, Class: "ok"}}})
		f := r.get("a")
		r.same("status", []any{f.State.String(), f.Status, f.Class, f.Ladder.Attempts}, []any{"done", 201, "ok", 1})
		got, err := r.s.Answer(r.Context(), "a")
		r.ok(err)
		r.same("answer", []any{got.Status, got.Header, string(got.Body)}, []any{201, answer.Header, "made"})
		if !got.KeptUntil.Equal(r.now.Add(time.Hour)) {
			r.Errorf("kept until: got %v, want an hour from %v", got.KeptUntil, r.now)
		}
		_, err = r.s.Reveal(r.Context(), "a")
		r.isErr(err, queue.ErrErased)
	}},
	{"AWaitOfOneCallHoldsNoOther", func(r *rig) {
		r.enqueue(read("a"), read("b"))
		a := r.claim(1)[0]
		until := r.now.Add(time.Minute)
		r.settle(a, queue.Outcome{State: queue.Queued, Until: until, Source: "backoff", Delay: 40 * time.Second, Reason: "deferred",
			Attempts: []queue.Attempt{{At: r.now, Status: 503, Class: "overloaded"}}})
		r.settle(r.one(), queue.Outcome{State: queue.Done})
		r.state("b", queue.Done)
		f := r.get("a")
		r.same("next at", f.NextAt, until)
		r.same("reason", f.Reason, "deferred")
		want := queue.Ladder{Attempts: 1, Waits: 1, WaitSource: "backoff", Delay: 40 * time.Second, First: r.now, Last: r.now}
		r.same("ladder", f.Ladder, want)
		r.pass(time.Minute)
		r.same("after it", r.one().Ladder, want)
	}},
	{"AWaitWithoutAnAttemptBurnsNone", func(r *rig) {
		r.enqueue(read("a"))
		r.settle(r.one(), queue.Outcome{State: queue.Queued, Until: r.now.Add(time.Second), Source: "pace", Waited: 300 * time.Millisecond})
		f := r.get("a")
		r.same("ladder", f.Ladder, queue.Ladder{Waits: 1, WaitSource: "pace", Waited: 300 * time.Millisecond})
		r.same("trail", len(f.Trail), 0)
	}},
	{"ACallHandedBackIsDueAtOnce", func(r *rig) {
		r.enqueue(write("a"))
		r.settle(r.one(), queue.Outcome{State: queue.Queued, Reason: queue.ReasonHandedBack})
		r.same("ladder", r.get("a").Ladder, queue.Ladder{})
		r.one()
	}},
	{"AttemptsAreNumberedAcrossClaims", func(r *rig) {
		r.enqueue(read("a"))
		for range 3 {
			r.settle(r.one(), queue.Outcome{State: queue.Queued, Until: r.now.Add(time.Second),
				Attempts: []queue.Attempt{{At: r.now, Status: 500, Class: "transient", Waited: time.Second, WaitSource: "backoff"}}})
			r.pass(time.Second)
		}
		var got []int
		for _, a := range r.get("a").Trail {
			got = append(got, a.N)
		}
		r.same("numbers", got, []int{1, 2, 3})
	}},
	{"TheTrailIsBounded", func(r *rig) {
		r.enqueue(read("a"))
		r.settle(r.one(), queue.Outcome{State: queue.Dead, Reason: "attempts-exhausted", Attempts: make([]queue.Attempt, queue.MaxTrail+5)})
		f := r.get("a")
		r.same("attempts", f.Ladder.Attempts, queue.MaxTrail+5)
		r.same("trail", []int{len(f.Trail), f.Trail[0].N}, []int{queue.MaxTrail, 6})
	}},
	{"ADeadCallSaysWhatAPersonNeeds", func(r *rig) {
		r.enqueue(write("a"))
		first := r.now
		r.settle(r.one(), queue.Outcome{State: queue.Dead, Reason: "permanent", Class: "permanent",
			Attempts: []queue.Attempt{{At: first, Status: 422, Class: "permanent"}}})
		n := r.get("a").Note
		if n == nil {
			r.Fatal("note: got none")
		}
		r.same("facts", []any{n.First, n.Last, n.Attempts, n.Status, n.Replay}, []any{first, first, 1, 422, "heed calls replay a"})
		r.same("request is kept", reveal(r, "a"), raw(write("a").Request))
	}},
	{"TheNoteOfTheSenderIsKept", func(r *rig) {
		note := queue.Note{What: "w", Why: "y", First: r.now, Last: r.now, Attempts: 2, Status: 500, Do: "d", Replay: "p"}
		r.end(write("a"), queue.Outcome{State: queue.Unknown, Reason: "not-repeatable", Note: &note})
		r.same("note", r.get("a").Note, &note)
	}},
	{"AQuarantinedCallKeepsRequestAndAnswer", func(r *rig) {
		r.end(write("a"), queue.Outcome{State: queue.Quarantined, Reason: "invalid-answer", Answer: &queue.Result{Status: 200, Body: []byte("<html>")}})
		got, err := r.s.Answer(r.Context(), "a")
		r.ok(err)
		r.same("answer", string(got.Body), "<html>")
		r.same("request", reveal(r, "a"), raw(write("a").Request))
	}},
	{"ADeadCallKeepsItsAnswer", func(r *rig) {
		r.end(write("a"), queue.Outcome{State: queue.Dead, Reason: "permanent", Answer: &queue.Result{Status: 422, Body: []byte("no")}})
		got, err := r.s.Answer(r.Context(), "a")
		r.ok(err)
		r.same("answer", []any{got.Status, string(got.Body)}, []any{422, "no"})
	}},
	{"WhatTheSenderWantsToKnowAgainComesWithTheNextClaim", func(r *rig) {
		r.enqueue(read("a"))
		r.settle(r.one(), queue.Outcome{State: queue.Queued, Until: r.now.Add(time.Second), Attempts: []queue.Attempt{{At: r.now, Climbed: []byte(`{"n":1}`)}}})
		r.now = r.now.Add(2 * time.Second)
		c := r.one()
		r.same("climbed", string(c.Trail[len(c.Trail)-1].Climbed), `{"n":1}`)
	}},
	{"AClaimIsSettledOnce", func(r *rig) {
		r.enqueue(read("a"))
		c := r.one()
		r.settle(c, queue.Outcome{State: queue.Done})
		lost, err := r.s.Settle(r.Context(), r.now, []queue.Settlement{{ID: "a", Lease: c.Lease, Outcome: queue.Outcome{State: queue.Dead}}})
		r.ok(err)
		r.same("lost", lost, []string{"a"})
		r.state("a", queue.Done)
	}},
}

func reveal(r *rig, id string) rawRequest {
	r.Helper()
	c, err := r.s.Reveal(r.Context(), id)
	r.ok(err)
	return raw(c.Request)
}

var gateFacts = []fact{
	{"AClosedGateHoldsAllBehindItAndKeepsTheirPlace", func(r *rig) {
		r.enqueue(many(5, "a", nil)...)
		c := r.claim(1)[0]
		until := r.now.Add(time.Minute)
		r.settle(c, queue.Outcome{State: queue.Queued, Until: until, Scope: queue.ScopeGate, Source: "retry_after",
			Attempts: []queue.Attempt{{At: r.now, Status: 429, Class: "throttled"}}})
		b := r.ask(queue.Ask{Max: 10, Lease: lease})
		r.same("claims", ids(b.Claims), []string{})
		r.same("ask again", b.Next, until)
		r.same("next at of another", r.get("a0003").NextAt, until)
		r.pass(time.Minute)
		r.same("order", ids(r.claim(10)), []string{"a0000", "a0001", "a0002", "a0003", "a0004"})
	}},
	{"AClosedGateHoldsNoOtherGate", func(r *rig) {
		until := r.now.Add(time.Minute)
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Closed: &until, Source: "operator"}))
		other := read("b")
		other.Gate = "k2"
		r.enqueue(read("a"), other)
		r.same("claims", ids(r.claim(10)), []string{"b"})
	}},
	{"WhatIsToldLateDoesNotOpenAGate", func(r *rig) {
		r.enqueue(read("a"), read("b"))
		claims := r.claim(2)
		until := r.now.Add(time.Minute)
		r.settle(claims[0], queue.Outcome{State: queue.Queued, Until: until, Scope: queue.ScopeGate, Source: "retry_after"})
		r.settle(claims[1], queue.Outcome{State: queue.Queued, Until: r.now.Add(time.Second), Scope: queue.ScopeGate, Source: "pace"})
		r.pass(2 * time.Second)
		r.same("claims", ids(r.claim(10)), []string{})
	}},
	{"AnOperatorOpensAGate", func(r *rig) {
		until, open := r.now.Add(time.Hour), time.Time{}
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Closed: &until, Source: "operator"}))
		r.enqueue(read("a"))
		r.same("closed", ids(r.claim(10)), []string{})
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Closed: &open}))
		r.one()
	}},
	{"APausedEndpointPausesAllItsKeys", func(r *rig) {
		yes, no := true, false
		other := read("b")
		other.Gate = "k2"
		r.enqueue(read("a"))
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Paused: &yes}))
		r.enqueue(other) // a key that is made later is paused too
		b := r.ask(queue.Ask{Max: 10, Lease: lease})
		r.same("claims", ids(b.Claims), []string{})
		if !b.Next.IsZero() {
			r.Errorf("ask again: got %v, want never", b.Next)
		}
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Paused: &no}))
		r.same("resumed", sorted(ids(r.claim(10))), []string{"a", "b"})
	}},
	{"GatesTellWhatIsInThem", func(r *rig) {
		r.enqueue(many(3, "a", nil)...)
		since := r.now
		limit := 4
		r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Limit: &limit}))
		r.pass(time.Minute)
		r.claim(1)
		got, err := r.s.Gates(r.Context())
		r.ok(err)
		r.same("gates", got, []queue.Gate{{Endpoint: "sierra", Key: "k1", Limit: 4, Served: r.now, Queued: 2, Running: 1, Due: since}})
	}},
}
