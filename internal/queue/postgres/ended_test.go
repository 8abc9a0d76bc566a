package postgres_test

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/jackc/pgx/v5"
)

// slowly makes commits of a store take a tenth of a second.
func slowly(t *testing.T, o *postgres.Options) {
	o.Address = postgres.Address(with(t, string(o.Address), func(_ *url.URL, q url.Values) {
		q.Set("commit_delay", "100000") // microseconds, the most there may be
		q.Set("commit_siblings", "0")
	}))
}

// endCommitting ends the next session of a store while it commits, as a server
// does that is stopped: the commit is carried out, and the session's last word
// is that it was ended. It returns a function that waits for that.
func endCommitting(t *testing.T) (wait func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), private.address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		defer c.Close(t.Context())
		for ended := 0; ended == 0; {
			err := c.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE application_name = 'heed' AND state = 'active' AND query LIKE '%COMMIT'`).Scan(&ended)
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatWasCommittedWhenTheServerStoppedIsNotLost(t *testing.T) {
	o := breakable(t)
	slowly(t, &o)
	s := open(t, o)

	enqueue(t, s, get("", "k"))
	ended := endCommitting(t)
	r := enqueue(t, s, get("", "k"))
	ended()
	if p, err := s.List(t.Context(), queue.Filter{}); err != nil || len(p.Calls) != 2 || r[0].Admission != queue.New {
		t.Errorf("enqueue: got %s and %d calls in all, %v, want it new and 2 calls", r[0].Admission, len(p.Calls), err)
	}

	ended = endCommitting(t)
	got := claim(t, s, time.Now())
	ended()
	got = append(got, claim(t, s, time.Now())...)
	if len(got) != 2 {
		t.Fatalf("claim: got %v, want both calls within the lease", ids(got))
	}

	ended = endCommitting(t)
	var all []queue.Settlement
	for _, c := range got {
		all = append(all, queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}})
	}
	lost, err := s.Settle(t.Context(), time.Now(), all)
	ended()
	if err != nil || len(lost) != 0 || slices.ContainsFunc(got, func(c queue.Claim) bool { return state(t, s, c.ID) != queue.Done }) {
		t.Errorf("settle: got lost %v, %v, want both done", lost, err)
	}
}
