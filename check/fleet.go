package check

import (
	"math"
	"slices"
	"time"
)

// FleetGroup is the group of the cases that show how a fleet spreads its retries.
const FleetGroup = "fleet"

const fleetSize = 32 // of whom each retries once: more than 30 draws

// fleet is many workers that fail in the same instant.
func fleet() []Case {
	return []Case{
		{ID: "fleet/backoff", Title: "503 for 32 workers at once", Needs: []Claim{Retries}, Weight: 3, Limit: 25 * time.Second,
			Rule:  Rule{"the workers of a fleet do not come back together: the pauses are drawn by chance", "AWS Architecture Blog, Exponential Backoff And Jitter"},
			World: world("GET /v1/items/{op}: 503, ok"), Ask: workers(), Judge: disperses},
		{ID: "fleet/even", Title: "503 for 32 workers at once: how the pauses are spread", Needs: []Claim{Retries},
			Rule: Rule{"the pauses are spread evenly over their range", "AWS Architecture Blog, Exponential Backoff And Jitter"},
			With: "fleet/backoff", Judge: evenly},
		{ID: "fleet/retry-after", Title: "429 with Retry-After: 3 seconds for 32 workers at once", Needs: []Claim{Retries}, Limit: 25 * time.Second,
			Rule:  Rule{"a little chance above the hint keeps a fleet from waking in one instant", "T2 of docs/features.md"},
			World: world("GET /v1/items/{op}: 429(after=3s), ok"), Ask: workers(), Judge: staggers(3 * time.Second)},
	}
}

func workers() []Operation {
	all := make([]Operation, fleetSize)
	for i := range all {
		id := "worker-" + itoa(i)
		all[i] = Operation{ID: id, Path: "/v1/items/" + id, Worker: i}
	}
	return all
}

// firstGaps are the pauses before the second requests, sorted.
func (e *Evidence) firstGaps() []time.Duration {
	var gaps []time.Duration
	for _, id := range e.Operations() {
		if tries := e.Of(id); len(tries) > 1 {
			gaps = append(gaps, tries[1].Gap)
		}
	}
	slices.Sort(gaps)
	return gaps
}

// seen is the verdict where too few workers came back to say anything, or the
// machine was so busy that it was what spread them.
func (e *Evidence) seen(gaps []time.Duration) (Verdict, bool) {
	switch {
	case len(gaps) < 30:
		return unclear("%d of %d workers came back, too few to see how they spread", len(gaps), fleetSize), false
	case mean(gaps) < 20*time.Millisecond: // a busy machine makes pauses longer, not shorter
		return Verdict{}, true
	case e.Late > max(mean(gaps)/40, 2*time.Millisecond):
		return unclear("this machine wakes sleepers up to %s late, too busy to see how %d workers spread", brief(e.Late), len(gaps)), false
	}
	return Verdict{}, true
}

func mean(gaps []time.Duration) time.Duration {
	var sum time.Duration
	for _, g := range gaps {
		sum += g
	}
	return sum / time.Duration(len(gaps))
}

// collision is the part of all pairs of workers that come back within a
// twentieth of the mean pause of one another: 0.05 for full jitter, about 0.15
// for equal jitter, 1 in lock-step.
func collision(gaps []time.Duration) float64 {
	near := mean(gaps) / 20
	pairs, met := 0, 0
	for i, a := range gaps {
		for _, b := range gaps[i+1:] {
			pairs++
			if b-a < near {
				met++
			}
		}
	}
	return float64(met) / float64(pairs)
}

// disperses wants the workers not to come back in lock-step.
func disperses(e *Evidence) Verdict {
	gaps := e.firstGaps()
	if v, ok := e.seen(gaps); !ok {
		return v
	}
	m, c := mean(gaps), collision(gaps)
	switch {
	case m < 20*time.Millisecond:
		return failed("%d workers came back at once, after %s on average", len(gaps), brief(m))
	case c > 0.4:
		return failed("%d workers came back after %s to %s: collision index %.2f (lock-step is 1, full jitter 0.05)",
			len(gaps), brief(gaps[0]), brief(gaps[len(gaps)-1]), c)
	}
	return passed("%d workers came back after %s to %s: collision index %.2f", len(gaps), brief(gaps[0]), brief(gaps[len(gaps)-1]), c)
}

// evenly wants the pauses to look uniform over the range that they have: by the
// distance of Kolmogorov and Smirnov, at one in a thousand.
func evenly(e *Evidence) Verdict {
	gaps := e.firstGaps()
	if v, ok := e.seen(gaps); !ok {
		return v
	}
	if v := disperses(e); v.Mark != Pass {
		return unclear("there is no spread to look at: %s", v.Cause)
	}
	low, high := gaps[0], gaps[len(gaps)-1]
	n := float64(len(gaps))
	far := 0.0
	for i, g := range gaps {
		at := float64(g-low) / float64(high-low)
		far = max(far, at-float64(i)/n, float64(i+1)/n-at)
	}
	if most := 1.95 / math.Sqrt(n); far > most {
		return failed("%d pauses from %s to %s are not even: distance %.2f, at most %.2f by chance", len(gaps), brief(low), brief(high), far, most)
	}
	return passed("%d pauses from %s to %s: distance %.2f from an even spread", len(gaps), brief(low), brief(high), far)
}

// staggers wants the workers to come back above the hint, and not together.
func staggers(hint time.Duration) judge {
	return func(e *Evidence) Verdict {
		gaps := e.firstGaps()
		if v, ok := e.seen(gaps); !ok {
			return v
		}
		if mean(gaps) < hint-slack {
			return unclear("they did not wait for the hint of %s, but %s on average", brief(hint), brief(mean(gaps)))
		}
		low, high := gaps[len(gaps)/10], gaps[len(gaps)-1-len(gaps)/10]
		if high-low < hint*3/100 {
			return failed("most of %d workers came back within %s of one another, %s after the hint of %s", len(gaps),
				brief(high-low), brief(low-hint), brief(hint))
		}
		return passed("%d workers came back over %s", len(gaps), brief(high-low))
	}
}
