package postgres_test

import (
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue/postgres"
)

func TestCallsAreTakenInBlindlyUnlessSomethingWasMet(t *testing.T) {
	d := postgres.NewDoors(false)
	now := time.Unix(0, 0)
	if !d.MayBeBlind(500, now) {
		t.Error("at first: got a look, want none")
	}
	d.Met()
	looks := 0
	for !d.MayBeBlind(1, now) {
		looks++
	}
	if looks != postgres.Wariness {
		t.Errorf("looks after something was met: got %d, want %d", looks, postgres.Wariness)
	}
}

func TestABoundIsLookedAtBeforeItIsNear(t *testing.T) {
	d := postgres.NewDoors(true)
	now := time.Unix(0, 0)
	if d.MayBeBlind(1, now) {
		t.Error("before anything was counted: got no look, want one")
	}
	d.Saw(1600, now)
	if !d.MayBeBlind(60, now) || !d.MayBeBlind(40, now) || d.MayBeBlind(1, now) {
		t.Error("with room for 1600: want 100 calls without a look, and no more")
	}
	d.Saw(1600, now)
	if d.MayBeBlind(1, now.Add(time.Second+1)) {
		t.Error("a second later: got no look, want one")
	}
	d.Saw(15, now)
	if d.MayBeBlind(1, now) {
		t.Error("with hardly any room: got no look, want one")
	}
}

func TestNoTwoCallsHaveOnePlace(t *testing.T) {
	d := postgres.NewDoors(false)
	last := int64(0)
	for range 1000 {
		first := d.Places(512)
		if first <= last {
			t.Fatalf("place: got %d after %d, want a later one", first, last)
		}
		last = first + 511
	}
}
