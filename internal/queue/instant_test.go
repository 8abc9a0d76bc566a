package queue_test

import (
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

func TestNoInstantTurnsIntoOneOnTheOtherSideOfNow(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{
		time.Unix(0, 0), now.Add(-1), now, now.Add(1), now.AddDate(0, 0, 1), now.AddDate(234, 0, 0), now.AddDate(237, 0, 0), now.AddDate(300, 0, 0),
		now.AddDate(1000, 0, 0), now.AddDate(7973, 0, 0), now.AddDate(-347, 0, 0), now.AddDate(-400, 0, 0), now.AddDate(-2024, 0, 0), {},
	} {
		n := queue.Nanos(at)
		if got, want := n > queue.Nanos(now), at.After(now); got != want {
			t.Errorf("%v is kept as %d: to come is %v, want %v", at, n, got, want)
		}
		if (n == 0) != at.IsZero() {
			t.Errorf("%v is kept as %d, which says that there is none: %v", at, n, n == 0)
		}
	}
}
