package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/jackc/pgx/v5"
)

// rival is a session beside the store, in a transaction that locks rows of it.
type rival struct {
	testing.TB
	*pgx.Conn
}

func newRival(t testing.TB, o postgres.Options) rival {
	t.Helper()
	c, err := pgx.Connect(t.Context(), string(o.Address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	r := rival{t, c}
	r.must("SET search_path = " + o.Schema)
	r.must("BEGIN")
	return r
}

func (r rival) must(text string) {
	r.Helper()
	if _, err := r.Exec(r.Context(), text); err != nil {
		r.Fatalf("%s: %v", text, err)
	}
}

// meet waits until somebody waits for this session.
func (r rival) meet() {
	r.Helper()
	for waits := false; !waits; {
		err := r.QueryRow(r.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))").Scan(&waits)
		if err != nil {
			r.Fatal(err)
		}
	}
}

// everyLine is a call of each line of one gate.
func everyLine() []queue.Call {
	var all []queue.Call
	seen := map[queue.Line]bool{}
	for n := 0; len(seen) < queue.Lines; n++ {
		for p := range queue.Priorities {
			c := get("", "k")
			c.Tenant, c.Priority = fmt.Sprint("tenant", n), p
			if l := queue.LineOf(c.Tenant, p); !seen[l] {
				seen[l], all = true, append(all, c)
			}
		}
	}
	return all
}

// TestListsOfArrivalsAreSettledInTheOrderOfTheLedger holds the tally that a
// ledger writes first: whoever waits for it has not locked one behind it.
func TestListsOfArrivalsAreSettledInTheOrderOfTheLedger(t *testing.T) {
	o := options(t)
	s := open(t, o)
	lines := everyLine()
	for range 8 { // both stripes of it have tallies, and a list
		enqueue(t, s, lines...)
	}
	r := newRival(t, o)
	r.must("SELECT FROM tallies WHERE state = 0 AND reason = '10' FOR UPDATE")
	ended := make(chan error)
	go func() {
		_, err := s.Enqueue(t.Context(), time.Now(), lines)
		ended <- err
	}()
	r.meet()
	r.must("SELECT FROM tallies WHERE state = 0 AND reason = '9' FOR UPDATE NOWAIT")
	r.must("COMMIT")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestCallsAreTakenBackInTheOrderInWhichOthersLockThem lets the call that was
// enqueued last run out first.
func TestCallsAreTakenBackInTheOrderInWhichOthersLockThem(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, get("first", "k"), get("last", "k"))
	now := time.Now()
	claims := claim(t, s, now)
	for i, c := range claims {
		left := time.Hour
		if c.ID == "last" {
			left = time.Minute
		}
		if lost, err := s.Renew(t.Context(), now.Add(left), claims[i:i+1]); err != nil || len(lost) > 0 {
			t.Fatalf("renew %s: got lost %v, %v", c.ID, lost, err)
		}
	}
	r := newRival(t, o)
	r.must("SELECT FROM calls WHERE id = 'first' FOR UPDATE")
	ended := make(chan error)
	go func() {
		_, err := s.Claim(t.Context(), now.Add(2*time.Hour), queue.Ask{Max: 8})
		ended <- err
	}()
	r.meet()
	r.must("SELECT FROM calls WHERE id = 'last' FOR UPDATE NOWAIT")
	r.must("COMMIT")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
