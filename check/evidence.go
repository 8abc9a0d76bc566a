package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// Evidence is all that a judge may look at.
type Evidence struct {
	Case     *Case
	Claims   []Claim
	Journal  sim.Journal
	Effects  sim.Effects
	Outcomes map[string]Outcome // by operation
	// Elsewhere is what the other host saw of this case.
	Elsewhere sim.Journal
	// Late is how late this machine woke those who sleep, in one case of ten.
	Late time.Duration
	// Minted is how many tokens were made for a gateway.
	Minted int
	Output Output
	// Told are secrets that were found in the client's own output.
	Told []string

	secrets []secret // which nothing that is shown may have
}

// Attempt is one request of an operation.
type Attempt struct {
	sim.Entry
	// Gap is from the last byte of the answer before to this request. 0 for the first.
	Gap time.Duration
	// Since is from the arrival of the request before, which is never later than
	// its answer: on a machine so busy that the end of an answer is noted late, a
	// pause that is too short by this measure is surely too short.
	Since time.Duration
}

// End is when its answer was complete.
func (a Attempt) End() time.Time { return a.Time.Add(a.Took) }

// Of returns the requests of one operation in the order of arrival. They are
// known by the last part of their path.
func (e *Evidence) Of(id string) []Attempt {
	var all []Attempt
	for _, one := range e.Journal.Entries {
		if operationOf(one.Path) != id {
			continue
		}
		a := Attempt{Entry: one}
		if n := len(all); n > 0 {
			a.Gap, a.Since = a.Time.Sub(all[n-1].End()), a.Time.Sub(all[n-1].Time)
		}
		all = append(all, a)
	}
	return all
}

// First returns the requests and the outcome of the first operation.
func (e *Evidence) First() ([]Attempt, Outcome) {
	id := e.Case.Ask[0].ID
	return e.Of(id), e.Outcomes[id]
}

// Operations returns the ids in the order in which they were asked for.
func (e *Evidence) Operations() []string {
	ids := make([]string, len(e.Case.Ask))
	for i, o := range e.Case.Ask {
		ids[i] = o.ID
	}
	return ids
}

// Open is the most requests that were open at the same time, of those that
// which picks.
func (e *Evidence) Open(which func(sim.Entry) bool) int {
	edges := map[time.Time]int{}
	for _, one := range e.Journal.Entries {
		if which(one) {
			edges[one.Time]++
			edges[one.Time.Add(max(one.Took, 1))]--
		}
	}
	most, now := 0, 0
	for _, t := range slices.SortedFunc(maps.Keys(edges), time.Time.Compare) {
		now += edges[t]
		most = max(most, now)
	}
	return most
}

// broken is the verdict where the client gave no answer, if so.
func (e *Evidence) broken() (Verdict, bool) {
	for _, id := range e.Operations() {
		if o := e.Outcomes[id]; o.Broken != "" {
			return failed("the client %s, after %s", o.Broken, count(len(e.Journal.Entries), "request")), true
		}
	}
	return Verdict{}, false
}

// wrote is the end of what a client wrote that gave no answer, for the sentence
// of its verdict.
func (e *Evidence) wrote() string {
	if _, broken := e.broken(); !broken {
		return ""
	}
	return quoted(hide(e.Output.Text, e.secrets))
}

// asked tells whether any request was for an operation of the case. Others say
// nothing of how the client does one.
func (e *Evidence) asked() bool {
	ids := e.Operations()
	one := func(a sim.Entry) bool { return slices.Contains(ids, operationOf(a.Path)) }
	return slices.ContainsFunc(e.Journal.Entries, one) || slices.ContainsFunc(e.Elsewhere.Entries, one)
}

// operationOf is the last part of a path.
func operationOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Event is one line of the timeline of a case.
type Event struct {
	At        time.Duration `json:"at_ns"` // since the first one
	Operation string        `json:"operation"`
	Number    int           `json:"attempt"`
	Method    string        `json:"method"`
	Status    int           `json:"status"` // 0: no answer
	Took      time.Duration `json:"took_ns"`
	Gap       time.Duration `json:"gap_ns"`
	Step      string        `json:"step,omitempty"`
	Elsewhere bool          `json:"elsewhere,omitempty"` // at the other host
}

// timeline tells what came over the wire, in order.
func (e *Evidence) timeline() []Event {
	var all []Event
	var zero time.Time
	for _, one := range e.Journal.Entries {
		if zero.IsZero() || one.Time.Before(zero) {
			zero = one.Time
		}
	}
	counts, ends := map[string]int{}, map[string]time.Time{}
	add := func(j sim.Journal, elsewhere bool) {
		for _, one := range j.Entries {
			id := plainly(hide(operationOf(one.Path), e.secrets), 80)
			counts[id]++
			ev := Event{At: one.Time.Sub(zero), Operation: id, Number: counts[id], Method: plainly(hide(one.Method, e.secrets), 20),
				Status: one.Status, Took: one.Took, Step: one.Step, Elsewhere: elsewhere}
			if end, ok := ends[id]; ok {
				ev.Gap = one.Time.Sub(end)
			}
			ends[id] = one.Time.Add(one.Took)
			all = append(all, ev)
		}
	}
	add(e.Journal, false)
	add(e.Elsewhere, true)
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return all
}
