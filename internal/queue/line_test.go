package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type laned struct{ lane, n int }

func (l laned) Lane() int { return l.lane }

func TestLanesTakeTurnsFromTheOneBehindTheLast(t *testing.T) {
	heads := []laned{{7, 1}, {7, 2}, {7, 3}, {2, 1}, {30, 1}, {30, 2}}
	got := Turns(heads, 2)
	want := []laned{{7, 1}, {30, 1}, {2, 1}, {7, 2}, {30, 2}, {7, 3}}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(laned{})); diff != "" {
		t.Errorf("turns (-got +want):\n%s", diff)
	}
}

func TestALaneByItselfKeepsItsOrder(t *testing.T) {
	heads := []laned{{7, 1}, {7, 2}, {7, 3}}
	if diff := cmp.Diff(Turns(heads, 7), heads, cmp.AllowUnexported(laned{})); diff != "" {
		t.Errorf("turns (-got +want):\n%s", diff)
	}
}

func TestALineTellsLaneAndPriority(t *testing.T) {
	for _, tenant := range []string{"", "a", "library-17", "ü"} {
		lane := LineOf(tenant, 0).Lane()
		for p := range Priorities {
			l := LineOf(tenant, p)
			if l.Lane() != lane || l.Priority() != p || l < 0 || l >= Lines {
				t.Errorf("line of %q with priority %d: got %d, lane %d and priority %d, want lane %d", tenant, p, l, l.Lane(), l.Priority(), lane)
			}
		}
	}
}
