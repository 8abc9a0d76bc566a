package backoff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/policy"
)

var formulas = []policy.Formula{
	policy.Full, policy.Exponential, policy.Equal, policy.Decorrelated, policy.Additive,
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// draws calls visit with 100,000 waits of one formula at retry n.
func draws(f policy.Formula, n int, visit func(time.Duration)) {
	b := policy.Backoff{Formula: f, Base: time.Second, Cap: time.Minute}
	rng := seeded(7)
	for range 100_000 {
		visit(Wait(b, n, 0, rng))
	}
}

func TestFullJitterIsUniformBelowTheStep(t *testing.T) {
	for n, high := range map[int]time.Duration{0: time.Second, 3: 8 * time.Second, 9: time.Minute} {
		var sum time.Duration
		draws(policy.Full, n, func(d time.Duration) {
			if d < 0 || d >= high {
				t.Fatalf("retry %d: got %v, want within [0, %v)", n, d, high)
			}
			sum += d
		})
		mean, half := float64(sum)/100_000, float64(high)/2
		if math.Abs(mean-half) > half/100 {
			t.Errorf("retry %d: got mean %v, want %v within 1 %%", n, time.Duration(mean), high/2)
		}
	}
}

func TestEqualJitterKeepsHalfOfTheStep(t *testing.T) {
	draws(policy.Equal, 4, func(d time.Duration) {
		if d < 8*time.Second || d > 16*time.Second {
			t.Fatalf("got %v, want within [8s, 16s]", d)
		}
	})
}

func TestAdditiveJitterStaysWithinOneBaseAboveTheStep(t *testing.T) {
	draws(policy.Additive, 4, func(d time.Duration) {
		if d < 16*time.Second || d >= 17*time.Second {
			t.Fatalf("got %v, want within [16s, 17s)", d)
		}
	})
}

func TestAdditiveJitterEndsAtTheCap(t *testing.T) {
	draws(policy.Additive, 12, func(d time.Duration) {
		if d != time.Minute {
			t.Fatalf("got %v, want 1m0s", d)
		}
	})
}

func TestDecorrelatedStaysBetweenBaseAndThreeTimesThePrevious(t *testing.T) {
	b := policy.Backoff{Formula: policy.Decorrelated, Base: time.Second, Cap: time.Minute}
	rng := seeded(7)
	var prev time.Duration
	for i := range 100_000 {
		d := Wait(b, i, prev, rng)
		if high := min(time.Minute, 3*max(prev, time.Second)); d < time.Second || d > high {
			t.Fatalf("after %v: got %v, want within [1s, %v]", prev, d, high)
		}
		prev = d
	}
}

func TestDecorrelatedDoesNotPileUpOnTheCap(t *testing.T) {
	b := policy.Backoff{Formula: policy.Decorrelated, Base: time.Second, Cap: time.Minute}
	rng := seeded(7)
	atCap := 0
	for range 100_000 {
		if Wait(b, 9, time.Minute, rng) == time.Minute {
			atCap++
		}
	}
	if atCap > 10 {
		t.Errorf("got %d of 100,000 draws at exactly the cap, want next to none", atCap)
	}
}

func TestEveryFormulaStaysWithinTheCapAtEveryAttempt(t *testing.T) {
	bounds := []struct{ base, top time.Duration }{
		{time.Second, 30 * time.Second},
		{1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64},
		{math.MaxInt64 / 2, math.MaxInt64 - 1},
		{time.Minute, time.Second},
		{1, 1},
		{3, 2},
		{-5, -5},
	}
	for _, f := range formulas {
		for _, bd := range bounds {
			for _, n := range []int{-1, 0, 1, 31, 61, 62, 63, 64, 1023, 1024, 2000, 1 << 31, math.MaxInt} {
				for _, prev := range []time.Duration{-1, 0, 1, bd.top, math.MaxInt64/3 + 1, math.MaxInt64} {
					d := Wait(policy.Backoff{Formula: f, Base: bd.base, Cap: bd.top}, n, prev, seeded(uint64(n)))
					if d < 0 || d > max(bd.top, 0) {
						t.Errorf("%s, base %d, cap %d, n %d, prev %d: got %d", f, bd.base, bd.top, n, prev, d)
					}
				}
			}
		}
	}
}

func TestExponentialIsExact(t *testing.T) {
	for _, c := range []struct {
		n    int
		want time.Duration
	}{{0, 1}, {1, 2}, {31, 1 << 31}, {62, 1 << 62}, {63, math.MaxInt64}, {1 << 31, math.MaxInt64}} {
		got := Wait(policy.Backoff{Formula: policy.Exponential, Base: 1, Cap: math.MaxInt64}, c.n, 0, nil)
		if got != c.want {
			t.Errorf("retry %d: got %d, want %d", c.n, got, c.want)
		}
	}
}

func TestCapBelowBaseWins(t *testing.T) {
	for _, f := range []policy.Formula{policy.Exponential, policy.Decorrelated, policy.Additive} {
		got := Wait(policy.Backoff{Formula: f, Base: time.Minute, Cap: time.Second}, 0, 0, seeded(1))
		if got != time.Second {
			t.Errorf("%s: got %v, want 1s", f, got)
		}
	}
}

func TestZeroPolicyIsFullJitterFromOneToThirtySeconds(t *testing.T) {
	spelled := policy.Backoff{Formula: policy.Full, Base: time.Second, Cap: 30 * time.Second}
	for n := range 10 {
		got, want := Wait(policy.Backoff{}, n, 0, seeded(3)), Wait(spelled, n, 0, seeded(3))
		if got != want {
			t.Errorf("retry %d: got %v, want %v", n, got, want)
		}
	}
}

func schedule(f policy.Formula, seed uint64) []time.Duration {
	rng := seeded(seed)
	var all []time.Duration
	var prev time.Duration
	for n := range 20 {
		prev = Wait(policy.Backoff{Formula: f}, n, prev, rng)
		all = append(all, prev)
	}
	return all
}

func TestSameSeedGivesTheSameSchedule(t *testing.T) {
	for _, f := range formulas {
		if diff := cmp.Diff(schedule(f, 42), schedule(f, 42)); diff != "" {
			t.Errorf("%s: the second schedule differs (-first +second):\n%s", f, diff)
		}
	}
}

func TestDifferentSeedsNeverRunInLockStep(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seed := range uint64(1000) {
		seen[schedule(policy.Full, seed)[3].Truncate(time.Millisecond)] = true
	}
	// 1,000 draws from 8,000 milliseconds leave about 940 different ones.
	if len(seen) < 900 {
		t.Errorf("got %d different instants of 1,000 workers, want at least 900", len(seen))
	}
}

func TestWaitDoesNotAllocate(t *testing.T) {
	rng := seeded(1)
	b := policy.Backoff{Formula: policy.Equal}
	if got := testing.AllocsPerRun(100, func() { Wait(b, 3, 0, rng) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func ExampleWait() {
	b := policy.Backoff{Formula: policy.Exponential, Base: time.Second, Cap: 10 * time.Second}
	for n := range 5 {
		fmt.Println(Wait(b, n, 0, nil))
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 8s
	// 10s
}

func ExampleWait_jitter() {
	rng := rand.New(rand.NewPCG(1, 2))
	b := policy.Backoff{Formula: policy.Equal, Base: time.Second, Cap: 10 * time.Second}
	for n := range 5 {
		high := min(time.Second<<n, 10*time.Second)
		d := Wait(b, n, 0, rng)
		fmt.Println(d >= high/2 && d <= high)
	}
	// Output:
	// true
	// true
	// true
	// true
	// true
}
