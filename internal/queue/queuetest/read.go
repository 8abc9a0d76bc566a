package queuetest

import (
	"time"

	"github.com/heedproject/heed/internal/queue"
)

var readFacts = []fact{
	{"AnUnknownIDIsNotFound", func(r *rig) {
		_, err := r.s.Get(r.Context(), "nobody")
		r.isErr(err, queue.ErrNotFound)
		_, err = r.s.Reveal(r.Context(), "nobody")
		r.isErr(err, queue.ErrNotFound)
		_, err = r.s.Answer(r.Context(), "nobody")
		r.isErr(err, queue.ErrNotFound)
	}},
	{"IDsAreFoundByTheirBeginning", func(r *rig) {
		for _, id := range []string{"ab", "ab2~late", "a", "ab1", "b", "aB1", "a_b1", "abé"} {
			r.enqueue(read(id))
		}
		for _, tt := range []struct {
			prefix string
			limit  int
			want   []string
		}{
			{"ab", 9, []string{"ab", "ab1", "ab2~late", "abé"}},
			{"ab", 2, []string{"ab", "ab1"}},
			{"a_", 9, []string{"a_b1"}},
			{"a%", 9, nil},
			{"ab1", 9, []string{"ab1"}},
			{"c", 9, nil},
			{"a\xff", 9, nil},
		} {
			got, err := r.s.IDs(r.Context(), tt.prefix, tt.limit)
			r.ok(err)
			r.same(tt.prefix, got, tt.want)
		}
	}},
	{"AListIsReadInPages", func(r *rig) {
		r.enqueue(many(5, "a", nil)...)
		var got []string
		f := queue.Filter{Limit: 2}
		for range 3 {
			p, err := r.s.List(r.Context(), f)
			r.ok(err)
			got, f.After = append(got, names(p.Calls)...), p.Next
		}
		r.same("calls", got, []string{"a0000", "a0001", "a0002", "a0003", "a0004"})
		r.same("no more", f.After, "")
	}},
	{"AForeignCursorIsRefused", func(r *rig) {
		_, err := r.s.List(r.Context(), queue.Filter{After: "x' OR 1"})
		r.isErr(err, queue.ErrInvalid)
	}},
	{"EveryFilterSelects", func(r *rig) {
		r.end(write("dead"), queue.Outcome{State: queue.Dead, Reason: "permanent", Class: "permanent"})
		r.pass(time.Minute)
		other := read("other")
		other.Endpoint, other.Gate, other.Tenant = "alma", "k9", "t9"
		r.enqueue(other)
		r.enqueue(read("live"))
		for _, tt := range []struct {
			name string
			f    queue.Filter
			want []string
		}{
			{"nothing", queue.Filter{}, []string{"dead", "other", "live"}},
			{"state", queue.Filter{States: []queue.State{queue.Dead}}, []string{"dead"}},
			{"states", queue.Filter{States: []queue.State{queue.Dead, queue.Queued}}, []string{"dead", "other", "live"}},
			{"endpoint", queue.Filter{Endpoint: "alma"}, []string{"other"}},
			{"gate", queue.Filter{Gate: "k9"}, []string{"other"}},
			{"tenant", queue.Filter{Tenant: "t9"}, []string{"other"}},
			{"correlation", queue.Filter{CorrelationID: "corr-live"}, []string{"live"}},
			{"reason", queue.Filter{Reason: "permanent"}, []string{"dead"}},
			{"class", queue.Filter{Class: "permanent"}, []string{"dead"}},
			{"from", queue.Filter{CreatedFrom: r.now}, []string{"other", "live"}},
			{"before", queue.Filter{CreatedBefore: r.now}, []string{"dead"}},
			{"soon erased", queue.Filter{KeptBefore: r.now.Add(8 * 24 * time.Hour)}, []string{"dead"}},
			{"both", queue.Filter{Endpoint: "sierra", States: []queue.State{queue.Queued}}, []string{"live"}},
		} {
			r.same(tt.name, r.list(tt.f), tt.want)
		}
	}},
	{"CountsFollowEveryMove", func(r *rig) {
		other := read("other")
		other.Endpoint = "alma"
		r.enqueue(write("a"), write("b"), write("c"), other)
		r.settle(r.claim(1)[0], queue.Outcome{State: queue.Dead, Reason: "permanent"})
		r.ok(r.s.Cancel(r.Context(), r.now, r.list(queue.Filter{States: []queue.State{queue.Queued}, Endpoint: "sierra"})[0]))
		r.claim(1)
		got, err := r.s.Counts(r.Context())
		r.ok(err)
		total := map[string]int{}
		for _, c := range got {
			total[c.State.String()+" "+c.Reason] += c.N
		}
		r.same("by state", total, map[string]int{"queued ": 1, "running ": 1, "dead permanent": 1, "cancelled canceled": 1})
	}},
}

var operatorFacts = []fact{
	{"AnEditIsARevisionAndKeepsTheOriginal", func(r *rig) {
		r.end(write("a"), queue.Outcome{State: queue.Dead, Reason: "permanent"})
		edited := write("a").Request
		edited.Body = []byte("mended")
		r.ok(r.s.Edit(r.Context(), r.now, "a", edited))
		r.same("now", reveal(r, "a"), raw(edited))
		was, err := r.s.Revisions(r.Context(), "a")
		r.ok(err)
		r.same("revisions", len(was), 1)
		r.same("original", raw(was[0]), raw(write("a").Request))
		r.same("number", r.get("a").Revision, 2)
		r.ok(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}))
		r.same("sent", raw(r.one().Request), raw(edited))
	}},
	{"AnEditedPathHasATemplateOfItsOwn", func(r *rig) {
		r.enqueue(write("a"))
		edited := write("a").Request
		r.ok(r.s.Edit(r.Context(), r.now, "a", edited))
		r.same("of one that stays", r.get("a").Template, write("a").Template)
		edited.Path, edited.PathTemplate = "/refunds/7", "/refunds/{id}"
		r.ok(r.s.Edit(r.Context(), r.now, "a", edited))
		r.same("of the new one", r.get("a").Template, "/refunds/{id}")
	}},
	{"WhoRepeatsWhatWasEditedIsToldOfIt", func(r *rig) {
		r.end(keyed("a", "k", "x"), queue.Outcome{State: queue.Dead, Reason: "permanent"})
		r.ok(r.s.Edit(r.Context(), r.now, "a", keyed("a", "k", "mended").Request))
		want := []queue.Receipt{{Admission: queue.Duplicate, ID: "a", State: queue.Dead}}
		r.same("by key", r.enqueue(keyed("b", "k", "x")), want)
		r.same("by ID", r.enqueue(keyed("a", "k", "x")), want)
		r.ok(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}))
		r.same("sent", string(r.one().Body), "mended")
	}},
	{"AKeyThatAnEditGivesIsTaken", func(r *rig) {
		r.enqueue(keyed("a", "k", "x"), keyed("b", "l", "y"))
		r.isErr(r.s.Edit(r.Context(), r.now, "a", keyed("a", "l", "x").Request), queue.ErrState)
		r.same("unchanged", reveal(r, "a"), raw(keyed("a", "k", "x").Request))
		r.ok(r.s.Edit(r.Context(), r.now, "a", keyed("a", "m", "x").Request))
		r.same("taken", r.enqueue(keyed("c", "m", "x"))[0].ID, "a")
		r.same("and the one before", r.enqueue(keyed("d", "k", "x"))[0].ID, "a")
		r.ok(r.s.Cancel(r.Context(), r.now, "a"))
		r.same("both are free", r.enqueue(keyed("e", "k", "z"), keyed("f", "m", "z")), []queue.Receipt{{ID: "e"}, {ID: "f"}})
	}},
	{"WhatRunsOrIsDoneIsNotEdited", func(r *rig) {
		r.enqueue(write("a"))
		c := r.one()
		r.isErr(r.s.Edit(r.Context(), r.now, "a", queue.Request{Path: "/"}), queue.ErrState)
		r.settle(c, queue.Outcome{State: queue.Done})
		r.isErr(r.s.Edit(r.Context(), r.now, "a", queue.Request{Path: "/"}), queue.ErrState)
		r.isErr(r.s.Edit(r.Context(), r.now, "b", queue.Request{Path: "/"}), queue.ErrNotFound)
	}},
	{"AReplayBeginsAnew", func(r *rig) {
		r.end(write("a"), queue.Outcome{State: queue.Dead, Reason: "attempts-exhausted", Delay: time.Minute,
			Attempts: []queue.Attempt{{At: r.now, Status: 500}, {At: r.now, Status: 502}}})
		at := r.now.Add(time.Minute)
		r.ok(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a", At: at, Expires: at.Add(time.Hour)}))
		f := r.get("a")
		r.same("facts", []any{f.State.String(), f.Reason, f.NextAt, f.Expires, f.Ladder, f.Note == nil, f.KeptUntil.IsZero(), len(f.Trail)},
			[]any{"queued", "", at, at.Add(time.Hour), queue.Ladder{}, true, true, 2})
		r.same("too early", ids(r.claim(10)), []string{})
		r.pass(time.Minute)
		r.settle(r.one(), queue.Outcome{State: queue.Done, Attempts: []queue.Attempt{{At: r.now, Status: 200}}})
		f = r.get("a")
		r.same("trail goes on", f.Trail[len(f.Trail)-1].N, 3)
	}},
	{"WhatLivesOrIsDoneIsNotReplayed", func(r *rig) {
		r.enqueue(read("a"))
		r.isErr(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}), queue.ErrState)
		r.settle(r.one(), queue.Outcome{State: queue.Done})
		r.isErr(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}), queue.ErrState)
		r.isErr(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "b"}), queue.ErrNotFound)
	}},
	{"ManyAreReplayedAtARate", func(r *rig) {
		r.enqueue(many(3, "a", nil)...)
		for _, c := range r.claim(3) {
			r.settle(c, queue.Outcome{State: queue.Dead, Reason: "permanent"})
		}
		bulk := queue.Bulk{Filter: queue.Filter{Endpoint: "sierra", Limit: 2}, Every: time.Second, Dry: true}
		n, _, err := queue.ReplayMany(r.Context(), r.s, r.now, bulk)
		r.ok(err)
		r.same("dry run", []int{n, len(r.list(queue.Filter{States: []queue.State{queue.Dead}}))}, []int{3, 3})
		bulk.Dry = false
		n, _, err = queue.ReplayMany(r.Context(), r.s, r.now, bulk)
		r.ok(err)
		r.same("replayed", n, 3)
		r.same("at once", len(r.claim(10)), 1)
		r.pass(time.Second)
		r.same("a second later", len(r.claim(10)), 1)
	}},
	{"AnUnknownWriteIsReplayedOnlyWhenAskedFor", func(r *rig) {
		r.end(write("a"), queue.Outcome{State: queue.Unknown, Reason: "not-repeatable"})
		for _, states := range [][]queue.State{nil, {queue.Unknown}} {
			for _, dry := range []bool{true, false} {
				n, left, err := queue.ReplayMany(r.Context(), r.s, r.now, queue.Bulk{Filter: queue.Filter{States: states}, Dry: dry})
				r.ok(err)
				r.same("replayed and left out", []int{n, left}, []int{0, 1})
			}
		}
		r.isErr(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a"}), queue.ErrDoubtful)
		r.state("a", queue.Unknown)
		n, left, err := queue.ReplayMany(r.Context(), r.s, r.now, queue.Bulk{EvenUnknown: true})
		r.ok(err)
		r.same("when asked for", []int{n, left}, []int{1, 0})
		r.state("a", queue.Queued)
	}},
	{"AnUnknownWriteIsReplayedByItsIDWhenAskedFor", func(r *rig) {
		r.end(write("a"), queue.Outcome{State: queue.Unknown, Reason: "not-repeatable"})
		r.ok(r.s.Replay(r.Context(), r.now, queue.Replay{ID: "a", EvenUnknown: true}))
		r.state("a", queue.Queued)
	}},
	{"AnUnknownCallThatCanBeRepeatedIsReplayedWithTheOthers", func(r *rig) {
		r.end(read("a"), queue.Outcome{State: queue.Unknown, Reason: "not-repeatable"})
		n, left, err := queue.ReplayMany(r.Context(), r.s, r.now, queue.Bulk{})
		r.ok(err)
		r.same("replayed and left out", []int{n, left}, []int{1, 0})
	}},
	{"ACancelledCallIsNotSent", func(r *rig) {
		r.enqueue(read("a"))
		r.ok(r.s.Cancel(r.Context(), r.now, "a"))
		r.same("claims", ids(r.claim(10)), []string{})
		r.state("a", queue.Cancelled)
		r.isErr(r.s.Cancel(r.Context(), r.now, "a"), queue.ErrState)
	}},
	{"WhatRunsIsNotCancelled", func(r *rig) {
		r.enqueue(read("a"))
		r.one()
		r.isErr(r.s.Cancel(r.Context(), r.now, "a"), queue.ErrState)
		r.state("a", queue.Running)
	}},
}
