package check_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/check"
)

// careless breaks many rules by halves, so that much of its grade hangs on
// chance and on who comes first.
func careless() habits {
	h := behaved()
	h.Extra = func(hint time.Duration, rng *rand.Rand) time.Duration {
		return time.Duration((rng.Float64() - 0.2) * 0.1 * float64(min(hint, 10*time.Second)))
	}
	h.Pause = func(n int, rng *rand.Rand) time.Duration {
		return grown(n)/2 + time.Duration(rng.Float64()*float64(grown(n))/2)
	}
	h.Attempts, h.Open, h.Shares, h.Fair, h.Once, h.OneRenewal, h.Probes, h.Tokens = 3, 5, false, false, false, false, 2, 60
	return h
}

func TestTwentyRunsOfOneClientWithOneSeedAgree(t *testing.T) {
	runs := 20
	if raced {
		runs = 4 // the detector takes six times as long
	}
	var first []string
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			r := graded(t, careless(), check.Options{Seed: 11})
			got := []string{r.Grade}
			for _, one := range r.Results {
				got = append(got, one.ID+" "+string(one.Mark))
			}
			if i == 0 {
				first = got
			}
			if diff := cmp.Diff(got, first); diff != "" {
				t.Errorf("run %d is (-) where the first was (+):\n%s", i+1, diff)
			}
		})
	}
}
