package sim

import (
	"fmt"
	"net/http"
	"time"

	"github.com/heedproject/heed/sim/rate"
)

// maxPenalty keeps doubling far from overflow.
const maxPenalty = 365 * 24 * time.Hour

// What a world may have at most, which is far more than a test looks at.
const (
	maxJournal = 10_000_000
	maxRecords = 1_000_000_000
)

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
	// CaseSteps are the scripts of cases that have their own, by case id.
	CaseSteps map[string]string
	// Records is how many bibs exist at first. Default 1000.
	Records int
	// JournalSize is how many requests the journal of a case keeps. Default 10,000.
	JournalSize int
	// Packs are the providers that are served. Default: Generic alone.
	Packs []Pack
	// Limits replace the limits of every pack; empty but not nil: none. Rate and
	// Burst are the short form of one token bucket.
	Limits []rate.Limit
	// Webhooks are told of events in every case.
	Webhooks []Webhook
	// Courier carries webhooks. Default: HTTP without a proxy, redirects not followed.
	Courier http.RoundTripper
	// Begin are requests that each case has behind it when it begins: its
	// initial resources.
	Begin []Request
	// Scenario reads what POST /_sim/scenario is sent; sim/scenario.Reader makes
	// one. nil: such requests are refused.
	Scenario func(text []byte) (World, error)
	// Clock says how the time of each case passes. Default: as on the wall.
	Clock Clock
	// Cases is how many cases with a name are kept. Default 10,000.
	Cases int
}

// limits returns what replaces the limits of the packs, nil if nothing does.
func (w World) limits() []rate.Limit {
	if w.Rate == 0 {
		return w.Limits
	}
	return append([]rate.Limit{{
		Name: "requests", Capacity: float64(w.Burst), Refill: w.Rate,
		Penalty: rate.Penalty{First: w.Penalty, Max: w.PenaltyMax, Grace: max(w.Grace, 0)},
	}}, w.Limits...)
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
	or(&w.Cases, 10_000)
	if w.Packs == nil {
		w.Packs = []Pack{Generic()}
	}
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
	case w.JournalSize > maxJournal || w.Records > maxRecords:
		return fmt.Errorf("sim: records %d and journal size %d are too many; give at most %d and %d", w.Records, w.JournalSize, maxRecords, maxJournal)
	case w.Records < 0 || w.JournalSize < 1:
		return fmt.Errorf("sim: records %d and journal size %d must not be negative", w.Records, w.JournalSize)
	case w.Cases < 1 || len(w.Packs) == 0:
		return fmt.Errorf("sim: %d cases and %d packs leave nothing to serve; give 1 or more of each", w.Cases, len(w.Packs))
	case !w.Clock.Start.IsZero() && (w.Clock.Start.Year() < 1970 || w.Clock.Start.Year() > 2200):
		return fmt.Errorf("sim: a clock cannot start in %d; give a year from 1970 to 2200", w.Clock.Start.Year())
	case !(w.Clock.Scale >= 0 && w.Clock.Scale <= 1e6):
		return fmt.Errorf("sim: a clock cannot run %v times as fast; give up to 1000000", w.Clock.Scale)
	}
	return nil
}
