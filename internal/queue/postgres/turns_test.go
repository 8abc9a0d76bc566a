package postgres_test

import (
	"math"
	"slices"
	"testing"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
)

// inLane is a line of a lane.
func inLane(lane, priority int) queue.Line { return queue.Line(lane*queue.Priorities + priority) }

func TestOfMoreLanesThanTurnsThoseBehindTheLastAreRead(t *testing.T) {
	due := map[queue.Line]int64{}
	for lane := range queue.Lanes {
		due[inLane(lane, 0)] = 5
	}
	lines, each, rest, _ := postgres.Part(due, 9, 3, 30)
	if want := []queue.Line{inLane(31, 0), inLane(0, 0), inLane(1, 0)}; !slices.Equal(lines, want) || each != 1 || !rest {
		t.Errorf("read: got lines %v, %d calls of each, others left: %v, want %v, 1, true", lines, each, rest, want)
	}
}

func TestOfFewerLanesThanTurnsSoMuchIsReadThatOneMayFillThem(t *testing.T) {
	lines, each, rest, _ := postgres.Part(map[queue.Line]int64{inLane(3, 0): 5, inLane(3, 9): 5, inLane(7, 0): 5}, 9, 8, 0)
	if slices.Sort(lines); len(lines) != 3 || each != 7 || rest {
		t.Errorf("read: got lines %v, %d calls of each, others left: %v, want 3 lines, 7, false", lines, each, rest)
	}
}

func TestALineOfWhichNothingIsDueIsNotReadAndTellsWhenItGoesOn(t *testing.T) {
	due := map[queue.Line]int64{inLane(1, 0): 5, inLane(2, 0): 12, inLane(3, 0): 11, inLane(4, 0): 0}
	lines, _, _, soon := postgres.Part(due, 9, 8, 0)
	if !slices.Equal(lines, []queue.Line{inLane(1, 0)}) || soon != 11 {
		t.Errorf("read: got lines %v, and the next is due at %d, want line 10, and 11", lines, soon)
	}
}

// A shelf is empty though not all turns were had: others took of it since it
// was seen.
func TestAnEmptyShelfTellsWhenItMayGiveSomething(t *testing.T) {
	for _, c := range []struct {
		name  string
		shelf postgres.Shelf
		want  int64
	}{
		{"when others are due that were not read", postgres.Shelf{Each: 1, Rest: true, Soon: 12}, 9},
		{"when a line has more than was read", postgres.Shelf{Due: map[queue.Line]int{1: 3, 2: 1}, Each: 2, Soon: 12}, 9},
		{"when all was read", postgres.Shelf{Due: map[queue.Line]int{1: 2, 2: 1}, Each: 2, Soon: 12}, 12},
		{"when nothing is left", postgres.Shelf{Due: map[queue.Line]int{1: 2}, Each: 2}, math.MaxInt64},
	} {
		if got := c.shelf.Next(9); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestTheTurnsOfGatesInWhichNothingWaitsAreForgotten(t *testing.T) {
	var turns postgres.Turns
	waiting := map[int64]bool{1: true}
	for gate := range int64(10 * postgres.MostTurns) {
		turns.Took(gate, inLane(7, 0))
		turns.Keep(waiting)
	}
	if got := turns.Len(); got > postgres.MostTurns {
		t.Errorf("turns of %d gates: got %d, want at most %d", 10*postgres.MostTurns, got, postgres.MostTurns)
	}
	if got := turns.Last(1); got != 7 {
		t.Errorf("the turn of a gate in which calls wait: got that of lane %d, want 7", got)
	}
}
