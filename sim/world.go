package sim

import (
	"fmt"
	"time"
)

// maxPenalty keeps doubling far from overflow.
const maxPenalty = 365 * 24 * time.Hour

// World says how an API behaves. The zero value is a friendly one that never
// throttles and never fails.
type World struct {
	// Seed makes another world: other titles, other chance.
	Seed uint64
	// Rate is how many requests per second one credential may make. 0: no limit.
	Rate float64
	// Burst is the size of the token bucket. Default 1.
	Burst int
	// Penalty closes a credential for this long after its first 429; a request
	// inside the block doubles the block, counted from that request. 0: early
	// requests are only noted.
	Penalty time.Duration
	// PenaltyMax bounds the block. Default 2 min.
	PenaltyMax time.Duration
	// Grace forgives requests that arrive this soon after a 429: they were on
	// their way. Default 50 ms; negative: none.
	Grace time.Duration
	// FailureRate is the part of requests, in [0, 1], that fail with 503 by chance.
	FailureRate float64
	// Steps is the script; see ParseSteps for its language.
	Steps string
	// Records is how many bibs exist at first. Default 1000.
	Records int
	// JournalSize is how many requests the journal keeps. Default 10,000.
	JournalSize int
}

func (w World) withDefaults() World {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&w.Burst, 1)
	or(&w.Records, 1000)
	or(&w.JournalSize, 10_000)
	if w.PenaltyMax == 0 {
		w.PenaltyMax = 2 * time.Minute
	}
	if w.Grace == 0 {
		w.Grace = 50 * time.Millisecond
	}
	return w
}

func (w World) check() error {
	switch {
	case !(w.Rate >= 0 && w.Rate <= 1e9):
		return fmt.Errorf("sim: rate %v is no number of requests per second; give 0 for no limit", w.Rate)
	case w.Burst < 1:
		return fmt.Errorf("sim: burst %d lets nothing through; give 1 or more", w.Burst)
	case w.Penalty < 0 || w.PenaltyMax < w.Penalty:
		return fmt.Errorf("sim: penalty %v does not fit under its maximum %v; give 0 for none", w.Penalty, w.PenaltyMax)
	case w.PenaltyMax > maxPenalty:
		return fmt.Errorf("sim: maximum penalty %v is too long; give at most %v", w.PenaltyMax, maxPenalty)
	case w.Penalty > 0 && w.Rate == 0:
		return fmt.Errorf("sim: penalty %v without a rate never applies; set the rate too", w.Penalty)
	case !(w.FailureRate >= 0 && w.FailureRate <= 1):
		return fmt.Errorf("sim: failure rate %v is no part between 0 and 1", w.FailureRate)
	case w.Records < 0 || w.JournalSize < 1:
		return fmt.Errorf("sim: records %d and journal size %d must not be negative", w.Records, w.JournalSize)
	}
	return nil
}

// draw returns a number in [0, 1) that depends on its arguments and the seed only.
func (w World) draw(purpose, caller, operation string, attempt int) float64 {
	h := fnv(fnv(fnv(fnvOffset^w.Seed, purpose), caller), operation)
	// FNV mixes its last bytes badly; this is the finalizer of splitmix64.
	z := h + uint64(attempt)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

const fnvOffset = 14695981039346656037

// fnv is FNV-1a with an end mark, so that "ab","c" and "a","bc" differ.
func fnv(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return (h ^ 0xff) * 1099511628211
}
