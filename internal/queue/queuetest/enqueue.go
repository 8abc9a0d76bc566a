package queuetest

import (
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

var enqueueFacts = []fact{
	{"ACallComesBackAsItWasHandedIn", func(r *rig) {
		c := write("a")
		c.Key, c.Callback, c.NotBefore, c.Expires = "key-1", "https://hooks.example/x", r.now.Add(-time.Second), r.now.Add(time.Hour)
		r.enqueue(c)
		got := r.one().Call
		want := c
		want.KeyWindow = 0
		want.Created, want.State, want.Revision, want.NextAt, want.Size = r.now, queue.Running, 1, r.now, len(c.Body)
		r.same("call facts", got.Facts, want.Facts)
		r.same("request", raw(got.Request), raw(want.Request))
	}},
	{"ACallWithoutIDGetsOne", func(r *rig) {
		receipts := r.enqueue(write(""), write(""))
		if a, b := receipts[0].ID, receipts[1].ID; a == "" || a == b {
			r.Errorf("ids: got %q and %q, want two different ones", a, b)
		}
		r.state(receipts[0].ID, queue.Queued)
	}},
	{"TheSameIDIsADuplicate", func(r *rig) {
		r.enqueue(write("a"))
		got := r.enqueue(write("a"))
		r.same("receipts", got, []queue.Receipt{{Admission: queue.Duplicate, ID: "a", State: queue.Queued}})
		r.same("calls", r.list(queue.Filter{}), []string{"a"})
	}},
	{"TheSameIDWithAnotherBodyIsAConflict", func(r *rig) {
		r.enqueue(write("a"))
		other := write("a")
		other.Body = []byte("another")
		got := r.enqueue(other)
		r.same("receipts", got, []queue.Receipt{{Admission: queue.Conflict, ID: "a", State: queue.Queued}})
		r.same("what is kept", reveal(r, "a"), raw(write("a").Request))
	}},
	{"TheSameKeyAndBodyIsADuplicateOfTheFirst", func(r *rig) {
		r.enqueue(keyed("a", "k", "x"))
		r.settle(r.one(), queue.Outcome{State: queue.Done, Reason: ""})
		got := r.enqueue(keyed("b", "k", "x"))
		r.same("receipts", got, []queue.Receipt{{Admission: queue.Duplicate, ID: "a", State: queue.Done}})
		r.same("calls", r.list(queue.Filter{}), []string{"a"})
	}},
	{"TheSameKeyWithAnotherBodyIsAConflict", func(r *rig) {
		r.enqueue(keyed("a", "k", "x"))
		got := r.enqueue(keyed("b", "k", "y"))
		r.same("receipts", got, []queue.Receipt{{Admission: queue.Conflict, ID: "a", State: queue.Queued}})
	}},
	{"TwinsInOneBatchAreFound", func(r *rig) {
		got := r.enqueue(keyed("a", "k", "x"), keyed("b", "k", "x"), keyed("c", "k", "y"))
		r.same("receipts", got, []queue.Receipt{{ID: "a"}, {Admission: queue.Duplicate, ID: "a"}, {Admission: queue.Conflict, ID: "a"}})
	}},
	{"AKeyBelongsToItsEndpoint", func(r *rig) {
		other := keyed("b", "k", "y")
		other.Endpoint = "alma"
		got := r.enqueue(keyed("a", "k", "x"), other)
		r.same("receipts", got, []queue.Receipt{{ID: "a"}, {ID: "b"}})
	}},
	{"AKeyIsFreeAfterItsWindow", func(r *rig) {
		c := keyed("a", "k", "x")
		c.KeyWindow = time.Hour
		r.enqueue(c)
		r.pass(time.Hour - 1)
		r.same("inside", r.enqueue(keyed("b", "k", "y"))[0].Admission, queue.Conflict)
		r.pass(1)
		r.same("after", r.enqueue(keyed("c", "k", "y"))[0].Admission, queue.New)
		r.same("the newer one has it", r.enqueue(keyed("d", "k", "y"))[0].ID, "c")
	}},
	{"AKeyOutlivesTheCallThatTookIt", func(r *rig) {
		r.end(keyed("a", "k", "x"), queue.Outcome{State: queue.Done})
		_, err := r.s.Purge(r.Context(), []string{"a"})
		r.ok(err)
		got := r.enqueue(keyed("b", "k", "x"))
		r.same("receipts", got, []queue.Receipt{{Admission: queue.Duplicate, ID: "a", State: queue.Done}})
	}},
	{"ACancelledCallFreesItsKey", func(r *rig) {
		r.enqueue(keyed("a", "k", "x"))
		r.ok(r.s.Cancel(r.Context(), r.now, "a"))
		r.same("receipts", r.enqueue(keyed("b", "k", "y")), []queue.Receipt{{ID: "b"}})
	}},
	{"NothingOfABatchIsStoredIfOneIsInvalid", func(r *rig) {
		bad := write("b")
		bad.Priority = 10
		_, err := r.s.Enqueue(r.Context(), r.now, []queue.Call{write("a"), bad})
		r.isErr(err, queue.ErrInvalid)
		r.same("calls", r.list(queue.Filter{}), []string{})
	}},
}

// keyed is a write with an idempotency key.
func keyed(id, key, body string) queue.Call {
	c := write(id)
	c.Key, c.Body, c.Repeatable = key, []byte(body), true
	return c
}

// raw is a request that cmp shows: as a Request it would print its sizes.
type rawRequest struct {
	Path, Key, Callback, Body string
	Header                    map[string][]string
}

func raw(q queue.Request) rawRequest {
	return rawRequest{q.Path, q.Key, q.Callback, string(q.Body), q.Header}
}

func testFull(t *testing.T, open Open) {
	r := newRig(t, open, Options{Most: 2})
	r.same("receipts", r.enqueue(read("a"), read("b"), read("c")),
		[]queue.Receipt{{ID: "a"}, {ID: "b"}, {Admission: queue.Full}})
	c := r.claim(1)[0]
	r.same("while one runs", r.enqueue(read("d"))[0].Admission, queue.Full)
	r.settle(c, queue.Outcome{State: queue.Done})
	r.same("after one is done", r.enqueue(read("e"))[0].Admission, queue.New)
}
