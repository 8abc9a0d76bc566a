package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
)

func TestAClaimPassesOverSoManyCallsThatHaveExpired(t *testing.T) {
	o := options(t)
	s := open(t, o)
	c := get("a", "k")
	enqueue(t, s, c)
	gate := int64(number(t, o, "SELECT gate FROM due"))
	// Before it, three times as many that had expired at the first instant of all.
	rival := newRival(t, o)
	rival.must(fmt.Sprintf(`INSERT INTO due (gate, next_at, seq, expires, line)
		SELECT gate, 1, -n, 1, line FROM due, generate_series(1, %d) n`, 3*postgres.MaxPassed))
	rival.must("COMMIT")
	seen, read, err := s.Passed(t.Context(), gate, queue.LineOf(c.Tenant, c.Priority), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	// One more tells that there is something in the line.
	if seen != postgres.MaxPassed+1 || read != postgres.MaxPassed {
		t.Errorf("rows read of %d that have expired: got %d to see what there is, and %d to read it, want %d and %d",
			3*postgres.MaxPassed, seen, read, postgres.MaxPassed+1, postgres.MaxPassed)
	}
}
