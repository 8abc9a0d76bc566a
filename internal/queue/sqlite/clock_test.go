package sqlite_test

import (
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

func TestWhatIsDueStaysDueWhenTheClockIsSetBack(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		o := options(t)
		s := open(t, o)
		now := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
		back := now.Add(-time.Hour)
		enqueue := func(id string, change func(*queue.Call)) {
			t.Helper()
			c := get(id)
			c.Gate = id
			if change != nil {
				change(&c)
			}
			if _, err := s.Enqueue(t.Context(), now, []queue.Call{c}); err != nil {
				t.Fatal(err)
			}
		}
		enqueue("due", nil)
		enqueue("on the wall", func(c *queue.Call) { c.NotBefore = now.Add(-time.Minute) })
		enqueue("waits", func(c *queue.Call) { c.NotBefore = now.Add(time.Minute) })
		enqueue("was closed", nil)
		enqueue("was held", nil)
		was := now.Add(-time.Minute)
		for gate, source := range map[string]string{"was closed": "retry_after", "was held": "operator"} {
			if err := s.SetGate(t.Context(), now, queue.GateChange{Endpoint: "sierra", Key: gate, Closed: &was, Source: source}); err != nil {
				t.Fatal(err)
			}
		}
		if restarted {
			s.Close()
			s = open(t, o)
		}
		got := map[string]bool{}
		for range 2 {
			b, err := s.Claim(t.Context(), back, queue.Ask{Max: 10, Lease: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range b.Claims {
				got[c.ID] = true
			}
		}
		if len(got) != 2 || !got["due"] || !got["was closed"] {
			t.Errorf("after a restart %v: claimed %v, want what was due, but not what is bound to an instant of the wall", restarted, got)
		}
	}
}
