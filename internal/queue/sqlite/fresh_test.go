package sqlite_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

func TestACallIsSentThoughAllBeforeItWereErased(t *testing.T) {
	o := sqlite.Few(sqlite.Unsynced(options(t)))
	s := open(t, o)
	var ids []string
	for n := range 9 {
		ids = append(ids, fmt.Sprint("old", n))
		enqueue(t, s, get(ids[n]))
	}
	done := queue.Outcome{State: queue.Done}
	for _, c := range claim(t, s) {
		if _, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: c.ID, Lease: c.Lease, Outcome: done}}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Purge(t.Context(), ids); n != 9 || err != nil {
		t.Fatalf("purge: got %d, %v, want 9", n, err)
	}
	s.Close()
	s = open(t, o)
	enqueue(t, s, get("a"))
	s.Close()
	s = open(t, o)
	enqueue(t, s, get("b"))
	if got := claim(t, s); len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
		t.Errorf("claimed: got %d calls, want a and b", len(got))
	}
}

func TestWhatComesInLargeBatchesDoesNotStayInMemory(t *testing.T) {
	const batches, each = 10, 5
	o := sqlite.Few(sqlite.Unsynced(options(t)))
	s := open(t, o)
	for range batches {
		enqueue(t, s, slices.Repeat([]queue.Call{get("")}, each)...)
	}
	if got := s.InMemory(t); got > each {
		t.Errorf("not in the index: got %d of %d calls, want at most one batch", got, batches*each)
	}
	if got := len(claim(t, s)); got != batches*each {
		t.Errorf("claimed: got %d, want %d", got, batches*each)
	}
}

func keyed(n int, body string) queue.Call {
	c := get(fmt.Sprint("call", n))
	c.Key, c.Body = fmt.Sprint("key", n), []byte(body)
	return c
}

// TestAKeyIsKnownWhereverItLies has keys in the rows of calls, on their way,
// and filed.
func TestAKeyIsKnownWhereverItLies(t *testing.T) {
	const calls = 9
	o := sqlite.Few(sqlite.Unsynced(options(t)))
	s := open(t, o)
	for n := range calls {
		enqueue(t, s, keyed(n, "x"))
	}
	repeat := func(n int, body string) queue.Receipt {
		t.Helper()
		c := keyed(n, body)
		c.ID = "again"
		r, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{c})
		if err != nil {
			t.Fatal(err)
		}
		return r[0]
	}
	for range 2 {
		for n := range calls {
			if r := repeat(n, "x"); r.Admission != queue.Duplicate || r.ID != fmt.Sprint("call", n) {
				t.Errorf("key %d again: got %s of %s, want a duplicate of its call", n, r.Admission, r.ID)
			}
			if r := repeat(n, "y"); r.Admission != queue.Conflict {
				t.Errorf("key %d with another body: got %s, want a conflict", n, r.Admission)
			}
		}
		s.Close()
		s = open(t, o)
	}
}

func TestACancelledCallGivesItsKeyUpWhereverItLies(t *testing.T) {
	const calls = 9
	o := sqlite.Few(sqlite.Unsynced(options(t)))
	s := open(t, o)
	for n := range calls {
		enqueue(t, s, keyed(n, "x"))
	}
	for n := range calls {
		if err := s.Cancel(t.Context(), time.Now(), fmt.Sprint("call", n)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s = open(t, o)
	for n := range calls {
		c := keyed(n, "y")
		c.ID = fmt.Sprint("new", n)
		if r, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{c}); err != nil || r[0].Admission != queue.New {
			t.Errorf("key %d: got %v, %v, want a new call", n, r, err)
		}
	}
}

func TestFiledKeysAreErasedWhenTheirWindowIsOver(t *testing.T) {
	const calls = 9
	s := open(t, sqlite.Few(sqlite.Unsynced(options(t))))
	for n := range calls {
		enqueue(t, s, keyed(n, "x"))
	}
	erased, after := 0, time.Now().Add(queue.DefaultKeyWindow+2*time.Minute)
	for more := true; more; {
		got, err := s.Sweep(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		erased, more = erased+got.Keys, got.More
	}
	use, err := s.KeyUse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var left queue.Use
	for _, u := range use {
		left = u
	}
	if want := (queue.Use{Records: calls}); erased != calls || len(use) != 1 || left != want { // the requests of the calls
		t.Errorf("erased %d keys and left %+v, want %d and %+v under one key", erased, use, calls, want)
	}
}
