package sqlite_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// damages are what a bad disk may leave in the row of call "bad".
var damages = []struct{ name, text string }{
	{"attempts", "UPDATE calls SET trail = x'7b7b' WHERE id = 'bad'"},
	{"a number", "UPDATE calls SET created = 'x', line = 5 WHERE id = 'bad'"},
	{"the request", "UPDATE requests SET sealed = x'00' WHERE seq = (SELECT seq FROM calls WHERE id = 'bad')"},
	{"the request is gone", "DELETE FROM requests WHERE seq = (SELECT seq FROM calls WHERE id = 'bad')"},
}

// damaged is a store in which one of three calls is damaged.
func damaged(t *testing.T, damage string, change func(*queue.Call)) *sqlite.Store {
	o := sqlite.Unsynced(options(t))
	s := open(t, o)
	calls := []queue.Call{get("a"), get("bad"), get("c")}
	for i := range calls {
		change(&calls[i])
	}
	enqueue(t, s, calls...)
	s.Close()
	meddle(t, o.Path, damage)
	return open(t, o)
}

func TestADamagedCallIsDeadAndHoldsNoOtherUp(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			s := damaged(t, tt.text, func(*queue.Call) {})
			var got []string
			for _, c := range claim(t, s) {
				got = append(got, c.ID)
			}
			if !slices.Equal(got, []string{"a", "c"}) {
				t.Errorf("claimed: got %v, want a and c", got)
			}
			f, err := s.Get(t.Context(), "bad")
			if err != nil || f.State != queue.Dead || f.Reason != queue.ReasonUnreadable {
				t.Errorf("the damaged one: got %s %q, %v, want dead, unreadable", f.State, f.Reason, err)
			}
			p, err := s.List(t.Context(), queue.Filter{States: []queue.State{queue.Dead}})
			if err != nil || len(p.Calls) != 1 || p.Calls[0].ID != "bad" {
				t.Errorf("list of the dead: got %v, %v, want bad", p.Calls, err)
			}
		})
	}
}

// oddLines are what a bad disk may leave as the line of a call.
var oddLines = []string{"-7", "320", "9223372036854775807", "'x'", "x'00'", "3.5"}

// TestACallWhoseLineIsDamagedIsHeldUpByNothing has it in the index at the start,
// and entered there when its gate is known.
func TestACallWhoseLineIsDamagedIsHeldUpByNothing(t *testing.T) {
	for _, before := range []int{0, 3} {
		for _, odd := range oddLines {
			t.Run(fmt.Sprintf("%d behind it, %s", before, odd), func(t *testing.T) {
				o := sqlite.Few(sqlite.Unsynced(options(t)))
				s, later := open(t, o), time.Now().Add(time.Minute)
				bad := get("bad")
				bad.NotBefore = later
				enqueue(t, s, bad)
				enqueue(t, s, slices.Repeat([]queue.Call{get("")}, before)...)
				s.Close()
				meddle(t, o.Path, "UPDATE calls SET line = "+odd+" WHERE id = 'bad'")
				s = open(t, o)
				claim(t, s)
				enqueue(t, s, get(""), get(""), get(""))
				claimAt(t, s, later, 100)
				if f, err := s.Get(t.Context(), "bad"); err != nil || f.State == queue.Queued {
					t.Errorf("got %s, %v, want that it is claimed, or dead", f.State, err)
				}
			})
		}
	}
}

func TestACallWhoseLineWasDamagedWhileItRanGoesAgain(t *testing.T) {
	for _, odd := range []string{"-7", "320"} {
		t.Run(odd, func(t *testing.T) {
			o := sqlite.Few(sqlite.Unsynced(options(t)))
			s := open(t, o)
			enqueue(t, s, get("bad"))
			claim(t, s)
			enqueue(t, s, get("b"), get("c"), get("d"))
			s.Close()
			meddle(t, o.Path, "UPDATE calls SET line = "+odd+" WHERE id = 'bad'")
			s = open(t, o)
			if got := claim(t, s); len(got) != 4 || !slices.ContainsFunc(got, func(c queue.Claim) bool { return c.ID == "bad" }) {
				t.Errorf("claimed: got %d, want all 4", len(got))
			}
		})
	}
}

func TestADamagedCallExpiresLikeAnyOther(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now()
			s := damaged(t, tt.text, func(c *queue.Call) { c.Expires = now.Add(time.Minute) })
			got, err := s.Sweep(t.Context(), now.Add(time.Hour), 10)
			if err != nil || got.Expired != 3 || got.More {
				t.Errorf("sweep: got %+v, %v, want 3 expired", got, err)
			}
			got, err = s.Sweep(t.Context(), now.Add(1000*time.Hour), 10)
			if err != nil || got.Erased != 3 || got.More {
				t.Errorf("sweep a month later: got %+v, %v, want 3 erased", got, err)
			}
		})
	}
}

func TestACallOfAGateThatIsGoneEndsNobodyElse(t *testing.T) {
	s := damaged(t, "UPDATE calls SET gate = 99 WHERE id = 'bad'", func(*queue.Call) {})
	if _, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("bad")}); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("its id again: got %v, want ErrInvalid", err)
	}
	if got := len(claim(t, s)); got != 2 {
		t.Errorf("claimed: got %d, want the 2 others", got)
	}
}

func TestAnOperationThatBreaksIsAloneInThat(t *testing.T) {
	o := options(t)
	open(t, o).Close()
	meddle(t, o.Path, `CREATE TRIGGER refuse BEFORE INSERT ON calls WHEN NEW.tenant = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END`)
	s := open(t, o)
	var wg sync.WaitGroup
	for i := range 32 { // they come together in a few transactions
		wg.Go(func() {
			c := get("")
			bad := i%8 == 3
			if bad {
				c.Tenant = "bad"
			}
			_, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{c})
			if bad != errors.Is(err, queue.ErrInvalid) || !bad && err != nil {
				t.Errorf("enqueue, refused %v: got %v", bad, err)
			}
		})
	}
	wg.Wait()
	counts, err := s.Counts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].N != 28 {
		t.Errorf("counts: got %v, %v, want the 28 that are good", counts, err)
	}
	if got := len(claim(t, s)); got != 28 {
		t.Errorf("claimed: got %d, want 28", got)
	}
}
