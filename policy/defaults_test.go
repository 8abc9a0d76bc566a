package policy

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultsAreFilledInOnce(t *testing.T) {
	once := Policy{}.WithDefaults()
	if diff := cmp.Diff(once.WithDefaults(), once); diff != "" {
		t.Errorf("(-twice +once):\n%s", diff)
	}
}

func TestWhatWasAgreedIsKept(t *testing.T) {
	p := Policy{
		Retry:   Retry{Budget: Unlimited, Tokens: Tokens{Capacity: 7}},
		Hints:   Hints{JitterMax: -1, JitterRatio: -1},
		Breaker: Breaker{Consecutive: -1, Jitter: -1},
		Limits:  Limits{Reserve: -1},
		Key:     Key{Methods: []string{}},
	}
	got := p.WithDefaults()
	if got.Retry.Budget != Unlimited || got.Retry.Tokens.Capacity != 7 || got.Hints != p.Hints ||
		got.Breaker.Consecutive != -1 || got.Breaker.Jitter != -1 || got.Limits.Reserve != -1 || len(got.Key.Methods) != 0 {
		t.Errorf("got %+v, want what was set in %+v", got, p)
	}
}

func TestHintJitterStaysWithinItsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := Policy{}.WithDefaults().Hints
	for wait, top := range map[time.Duration]time.Duration{
		time.Second: 100 * time.Millisecond, 5 * time.Second: 500 * time.Millisecond,
		time.Minute: time.Second, math.MaxInt64: time.Second,
	} {
		for range 10_000 {
			if got := h.Jitter(wait, rng); got < 0 || got > top {
				t.Fatalf("hint %v: got %v, want within [0, %v]", wait, got, top)
			}
		}
	}
}

func TestHintJitterCanBeSwitchedOff(t *testing.T) {
	for _, h := range []Hints{{JitterMax: -1, JitterRatio: 0.1}, {JitterMax: 1e9, JitterRatio: -1}, {JitterMax: 1e9, JitterRatio: math.NaN()}} {
		if got := h.Jitter(time.Minute, nil); got != 0 {
			t.Errorf("%+v: got %v, want 0", h, got)
		}
	}
}

func TestARetryCostsByWhatWentBefore(t *testing.T) {
	tokens := Policy{}.WithDefaults().Retry.Tokens
	if got := tokens.Cost(true); got != 5 {
		t.Errorf("after a throttle: got %d, want 5", got)
	}
	if got := tokens.Cost(false); got != 14 {
		t.Errorf("after another failure: got %d, want 14", got)
	}
}
