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
	// one. ofCase: for one case alone, so that it may not tell of other cases.
	// nil: such requests are refused.
	Scenario func(text []byte, ofCase bool) (World, error)
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

// check says what is wrong with w that no pack has to do with.
func (w World) check() (all []Problem) {
	bad := func(is bool, path, remedy, format string, args ...any) {
		if is {
			all = append(all, Problem{Path: path, Message: fmt.Sprintf(format, args...), Remedy: remedy})
		}
	}
	bad(!(w.Rate >= 0 && w.Rate <= 1e9), "rate", "give 0 for no limit", "rate %v is no number of requests per second", w.Rate)
	bad(w.Burst < 1, "burst", "give 1 or more", "burst %d lets nothing through", w.Burst)
	bad(w.Burst > 1 && w.Rate == 0, "burst", "set the rate too", "burst %d without a rate never applies", w.Burst)
	switch {
	case w.Penalty < 0 || w.PenaltyMax < w.Penalty:
		bad(true, "penalty", "give 0 for none", "penalty %v does not fit under its maximum %v", w.Penalty, w.PenaltyMax)
	case w.Penalty > 0 && w.Rate == 0:
		bad(true, "penalty", "set the rate too", "penalty %v without a rate never applies", w.Penalty)
	}
	bad(w.PenaltyMax > maxPenalty, "penalty_max", fmt.Sprintf("give at most %v", maxPenalty), "maximum penalty %v is too long", w.PenaltyMax)
	bad(!(w.FailureRate >= 0 && w.FailureRate <= 1), "failure_rate", "give 0.1 for one request of ten", "failure rate %v is no part between 0 and 1", w.FailureRate)
	bad(w.JournalSize > maxJournal || w.JournalSize < 1, "journal_size", fmt.Sprintf("give 1 to %d", maxJournal), "journal size %d cannot be", w.JournalSize)
	bad(w.Records > maxRecords || w.Records < 0, "records", fmt.Sprintf("give 1 to %d", maxRecords), "%d records cannot be", w.Records)
	bad(w.Cases < 1, "max_cases", "give 1 or more", "%d cases leave nothing to serve", w.Cases)
	bad(len(w.Packs) == 0, "packs", "name one, or leave it out for generic", "there is no pack to serve")
	return append(all, w.Clock.check()...)
}

// check says what is wrong with c.
func (c Clock) check() (all []Problem) {
	if !c.Start.IsZero() && (c.Start.Year() < 1970 || c.Start.Year() > 2200) {
		all = append(all, Problem{Path: "clock.start", Message: fmt.Sprintf("a clock cannot start in %d", c.Start.Year()), Remedy: "give a year from 1970 to 2200"})
	}
	switch {
	case !(c.Scale >= 0 && c.Scale <= 1e6):
		all = append(all, Problem{Path: "clock.scale", Message: fmt.Sprintf("a clock cannot run %v times as fast", c.Scale), Remedy: "give up to 1000000"})
	case c.Stepped && c.Scale != 0:
		all = append(all, Problem{Path: "clock.scale", Message: "a clock that is stepped stands still, and does not run " + fmt.Sprint(c.Scale) + " times as fast",
			Remedy: "leave out scale or stepped"})
	}
	return all
}

// checkAlone says what of w a single case cannot have: other cases are those
// of the case without a name.
func (w World) checkAlone(id string) (bad []Problem) {
	if id != "" && len(w.CaseSteps) > 0 {
		bad = append(bad, Problem{Path: "cases", Message: "the world of one case has no other cases", Remedy: aloneRemedy})
	}
	if id != "" && w.Cases != 0 {
		bad = append(bad, Problem{Path: "max_cases", Message: "the world of one case keeps no other cases", Remedy: aloneRemedy})
	}
	return bad
}

const aloneRemedy = "leave it out, or give the scenario to the case without a name"
