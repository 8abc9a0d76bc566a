package postgres_test

import (
	"slices"
	"testing"

	"github.com/heedproject/heed/internal/queue/postgres"
)

func TestOfTwoClaimsThatHandCallsBackEachForgetsOnlyThose(t *testing.T) {
	var l postgres.Leases
	l.Suspect(1)
	one, other := l.Suspects(), l.Suspects()
	l.Cleared(one)
	l.Suspect(2)
	l.Cleared(other)
	if got := l.Suspects(); !slices.Equal(got, []int64{2}) {
		t.Errorf("claims whose calls are still to be handed back: got %v, want [2]", got)
	}
}
