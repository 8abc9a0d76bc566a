package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
)

// number reads one of the database.
func number(t *testing.T, o postgres.Options, query string) (n int) {
	t.Helper()
	if err := newRival(t, o).QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func sweep(t *testing.T, s *postgres.Store, now time.Time) {
	t.Helper()
	for more := true; more; {
		swept, err := s.Sweep(t.Context(), now, 100)
		if err != nil {
			t.Fatal(err)
		}
		more = swept.More
	}
}

func TestCountsOfWhatIsGoneAreForgotten(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, everyLine()...)
	for claims := claim(t, s, time.Now()); len(claims) > 0; claims = claim(t, s, time.Now()) {
		var ends []queue.Settlement
		for _, c := range claims {
			ends = append(ends, done(c))
		}
		if _, err := s.Settle(t.Context(), time.Now(), ends); err != nil {
			t.Fatal(err)
		}
	}
	for number(t, o, "SELECT max(cardinality(n)) FROM arrivals") > postgres.Longest { // the stripe that it is of settles it
		enqueue(t, s, get("", "other"))
	}
	const ofGate = "SELECT count(*) FROM tallies JOIN gates USING (gate) WHERE key = 'k'"
	if before := number(t, o, ofGate); before < queue.Lines {
		t.Fatalf("counts of the gate before: got %d, want at least one of each line", before)
	}
	sweep(t, s, time.Now().Add(2*time.Hour))
	if got := number(t, o, ofGate); got != 0 {
		t.Errorf("counts of a gate without calls: got %d, want none", got)
	}
	if byGate, _ := queued(t, s); byGate["other"] == 0 {
		t.Error("the counts of the other gate are gone too")
	}
}

// TestCountsThatAreForgottenWhileOthersCountAreRight enqueues and cancels in
// two gateways, so that lines come and go, and sweeps in a third.
func TestCountsThatAreForgottenWhileOthersCountAreRight(t *testing.T) {
	o := options(t)
	sweeper := open(t, o)
	ended := make(chan struct{})
	var wg sync.WaitGroup
	for n, s := range []*postgres.Store{open(t, o), open(t, o)} {
		wg.Go(func() {
			for i := range 25 {
				calls := make([]queue.Call, 100)
				for j := range calls {
					calls[j] = get(fmt.Sprintf("%d-%d-%d", n, i, j), "k")
					calls[j].Tenant, calls[j].Priority = fmt.Sprint(j/10), j%10
				}
				enqueue(t, s, calls...)
				if i%10 == 9 {
					continue // these stay
				}
				for j := range calls[:20] {
					if err := s.Cancel(t.Context(), time.Now(), calls[j].ID); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	go func() {
		wg.Wait()
		close(ended)
	}()
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
		}
		sweep(t, sweeper, time.Now())
	}
	wrong := number(t, o, `SELECT count(*) FROM (SELECT gate, line, sum(n) AS n FROM live GROUP BY 1, 2) l
		FULL JOIN (SELECT gate, line, count(*) AS n FROM due GROUP BY 1, 2) d USING (gate, line) WHERE coalesce(l.n, 0) <> coalesce(d.n, 0)`)
	if wrong > 0 {
		t.Errorf("lines that are counted wrong: got %d, want none", wrong)
	}
}
