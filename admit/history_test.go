package admit

import (
	"math"
	"testing"
	"time"
)

func TestRequestsAtOneInstantCountInFull(t *testing.T) {
	var h history
	for range 1000 {
		h.add(start)
	}
	if got := h.mean(); got != 100_000 {
		t.Errorf("got %v/s, want 1,000 in one slot of 10 ms", got)
	}
	if got := h.excess(h.start, start, 1); math.Abs(got-1000) > 1 {
		t.Errorf("got an excess of %v, want 1,000", got)
	}
}

func TestTheHistoryForgetsWhatIsPast(t *testing.T) {
	var h history
	for range 1000 {
		h.add(start)
	}
	h.add(start.Add(time.Minute))
	if got := h.mean(); got > 1 {
		t.Errorf("got %v/s a minute later, want one request within five seconds", got)
	}
}
