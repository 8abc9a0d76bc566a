package queuetest

import (
	"context"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

var keeperFacts = []fact{
	{"WhatExpiresInTheQueueBecomesDead", func(r *rig) {
		c := read("a")
		c.Expires, c.NotBefore = r.now.Add(time.Minute), r.now.Add(time.Hour)
		r.enqueue(c, read("b"))
		r.pass(time.Minute)
		r.same("swept", r.sweep(10), queue.Swept{Expired: 1})
		f := r.get("a")
		r.same("state and reason", []string{f.State.String(), f.Reason}, []string{"dead", queue.ReasonExpired})
		r.state("b", queue.Queued)
	}},
	{"EndsAreErasedWhenTheirTimeIsOver", func(r *rig) {
		r.end(read("done"), queue.Outcome{State: queue.Done, Answer: &queue.Result{Status: 200}})
		r.end(write("dead"), queue.Outcome{State: queue.Dead, Reason: "permanent"})
		r.pass(time.Hour)
		r.same("after an hour", r.sweep(10).Erased, 1)
		_, err := r.s.Answer(r.Context(), "done")
		r.isErr(err, queue.ErrNotFound)
		r.pass(7 * 24 * time.Hour)
		r.same("after a week", r.sweep(10).Erased, 1)
		r.same("nothing is left", r.list(queue.Filter{}), []string{})
		got, err := r.s.Counts(r.Context())
		r.ok(err)
		r.same("counts", len(got), 0)
	}},
	{"ASweepIsBounded", func(r *rig) {
		r.enqueue(many(5, "a", func(c *queue.Call) { c.Expires = r.now.Add(time.Second) })...)
		r.pass(time.Second)
		r.same("first", r.sweep(3), queue.Swept{Expired: 3, More: true})
		r.same("second", r.sweep(3), queue.Swept{Expired: 2})
	}},
	{"KeysAreForgottenAfterTheirWindow", func(r *rig) {
		r.enqueue(keyed("a", "k", "x"))
		r.pass(queue.DefaultKeyWindow)
		r.same("swept", r.sweep(10).Keys, 1)
	}},
	{"AKeyCanBeAskedForWhileItIsTaken", func(r *rig) {
		asked := func(endpoint, key string) bool {
			taken, err := r.s.Taken(r.Context(), r.now, &queue.Call{Facts: queue.Facts{Endpoint: endpoint}, Request: queue.Request{Key: key}})
			r.ok(err)
			return taken
		}
		c := keyed("a", "k", "x")
		r.same("before", asked(c.Endpoint, "k"), false)
		r.enqueue(c)
		r.same("by its key, its endpoint and no key", []bool{asked(c.Endpoint, "k"), asked(c.Endpoint, "l"), asked("other", "k"), asked(c.Endpoint, "")},
			[]bool{true, false, false, false})
		r.pass(queue.DefaultKeyWindow)
		r.same("after its window", asked(c.Endpoint, "k"), false)
	}},
	{"OnlyEndedCallsArePurged", func(r *rig) {
		r.end(write("dead"), queue.Outcome{State: queue.Dead, Reason: "permanent"})
		r.enqueue(read("live"))
		n, err := r.s.Purge(r.Context(), []string{"dead", "live", "nobody"})
		r.ok(err)
		r.same("erased", n, 1)
		r.same("left", r.list(queue.Filter{}), []string{"live"})
	}},
}

func (r *rig) sweep(limit int) queue.Swept {
	r.Helper()
	s, err := r.s.Sweep(r.Context(), r.now, limit)
	r.ok(err)
	return s
}

func testRotation(t *testing.T, open Open) {
	old, fresh := queue.NewKey(), queue.NewKey()
	r := newRig(t, open, Options{Keys: queue.NewKeys(old)})
	r.end(write("edited"), queue.Outcome{State: queue.Quarantined, Reason: "invalid-answer", Answer: &queue.Result{Status: 200, Body: []byte("odd")}})
	r.ok(r.s.Edit(r.Context(), r.now, "edited", write("edited").Request))
	r.enqueue(keyed("a", "k", "x"))
	r.restart(queue.NewKeys(fresh, old))
	r.same("a key is still taken", r.enqueue(keyed("b", "k", "x"))[0], queue.Receipt{Admission: queue.Duplicate, ID: "a"})
	n, err := r.s.Reseal(r.Context(), nil)
	r.ok(err)
	r.same("resealed: two requests, an answer, a revision", n, 4)
	use, err := r.s.KeyUse(r.Context())
	r.ok(err)
	r.same("use", use, map[string]queue.Use{fresh.ID(): {Records: 4}, old.ID(): {Keys: 1}})
	r.same("request", reveal(r, "a"), raw(keyed("a", "k", "x").Request))
	answer, err := r.s.Answer(r.Context(), "edited")
	r.ok(err)
	r.same("answer", string(answer.Body), "odd")
	was, err := r.s.Revisions(r.Context(), "edited")
	r.ok(err)
	r.same("revision", raw(was[0]), raw(write("edited").Request))
	n, err = r.s.Reseal(r.Context(), nil)
	r.ok(err)
	r.same("nothing is left to do", n, 0)
}

func testInterruptedRotation(t *testing.T, open Open) {
	old, fresh := queue.NewKey(), queue.NewKey()
	r := newRig(t, open, Options{Keys: queue.NewKeys(old)})
	const calls = 600 // more than a batch
	r.enqueue(many(calls, "a", nil)...)
	r.restart(queue.NewKeys(fresh, old))
	ctx, stop := context.WithCancel(r.Context())
	first, err := r.s.Reseal(ctx, func(int) { stop() })
	r.isErr(err, context.Canceled)
	use, err := r.s.KeyUse(r.Context())
	r.ok(err)
	r.same("after one batch", use, map[string]queue.Use{fresh.ID(): {Records: first}, old.ID(): {Records: calls - first}})
	told := 0
	rest, err := r.s.Reseal(r.Context(), func(done int) { told = done })
	r.ok(err)
	r.same("in all", first+rest, calls)
	r.same("told last", told, rest)
	use, err = r.s.KeyUse(r.Context())
	r.ok(err)
	r.same("in the end", use, map[string]queue.Use{fresh.ID(): {Records: calls}})
}

func testLargeRotation(t *testing.T, open Open) {
	old, fresh := queue.NewKey(), queue.NewKey()
	r := newRig(t, open, Options{Keys: queue.NewKeys(old)})
	r.enqueue(many(3, "a", func(c *queue.Call) { c.Body = make([]byte, 3<<20) })...)
	r.restart(queue.NewKeys(fresh, old))
	var told []int
	_, err := r.s.Reseal(r.Context(), func(done int) { told = append(told, done) })
	r.ok(err)
	r.same("not all are in memory at once", told, []int{2, 3})
}

func testRestart(t *testing.T, open Open) {
	r := newRig(t, open, Options{})
	r.enqueue(keyed("a", "k", "x"), read("b"), read("c"))
	until := r.now.Add(time.Minute)
	limit := 2
	r.ok(r.s.SetGate(r.Context(), r.now, queue.GateChange{Endpoint: "sierra", Key: "k1", Limit: &limit}))
	claims := r.claim(2)
	r.settle(claims[0], queue.Outcome{State: queue.Done, Answer: &queue.Result{Status: 200, Body: []byte("ok")}})
	r.settle(claims[1], queue.Outcome{State: queue.Queued, Until: until, Scope: queue.ScopeGate, Source: "retry_after",
		Attempts: []queue.Attempt{{At: r.now, Status: 429}}})
	before, err := r.s.Counts(r.Context())
	r.ok(err)

	r.restart(r.keys)
	after, err := r.s.Counts(r.Context())
	r.ok(err)
	r.same("counts", after, before)
	r.same("the gate is still closed", ids(r.claim(10)), []string{})
	r.pass(time.Minute)
	next := r.claim(10)
	r.same("the limit and the places hold", ids(next), []string{"b", "c"})
	r.same("the ladder goes on", next[0].Ladder.Attempts, 1)
	answer, err := r.s.Answer(r.Context(), "a")
	r.ok(err)
	r.same("answer", string(answer.Body), "ok")
}
