package check

import (
	"slices"
	"time"

	"github.com/heedproject/heed/sim"
)

const (
	deadline = 2 * time.Second
	// late is how long after its deadline a client may tell of it: interpreters
	// take their time to end.
	late = time.Second
)

// deadlines are operations that cannot succeed in the time there is.
func deadlines() []Case {
	rule := Rule{"when its time is over a client has ended, and sends nothing more", "Site Reliability Engineering, chapter 22, deadlines"}
	ask := []Operation{{ID: "read", Path: "/v1/items/read", Deadline: deadline}}
	var all []Case
	for _, c := range []struct{ name, title, steps string }{
		{"outage", "503, for ever", "503 x5000"},
		{"reset", "reset, for ever", "reset x5000"},
		{"hang", "no answer, for ever", "hang x5000"},
		{"hint", "429 with Retry-After: 30 seconds", "429(after=30s) x5000"},
		{"stall", "an answer that stops in its middle", "stall(at=10, for=1m) x5000"},
	} {
		all = append(all, Case{ID: "deadline/" + c.name, Title: "2 seconds to go: " + c.title, Rule: rule, Needs: []Claim{Deadlines},
			World: world("GET /v1/items/*: " + c.steps), Ask: ask, Limit: 7 * time.Second, Linger: 1500 * time.Millisecond,
			Patient: true, Judge: inTime})
	}
	return append(all, Case{ID: "deadline/absurd-hint", Title: "2 seconds to go: 429 with Retry-After: 292 years", Rule: rule,
		Needs: []Claim{Deadlines}, World: hinted(429, told{values: fixed("9223372037")}, 5000), Ask: ask,
		Limit: 7 * time.Second, Linger: 1500 * time.Millisecond, Patient: true, Judge: inTime})
}

// inTime wants the client to end by its deadline, counted from its first request.
func inTime(e *Evidence) Verdict {
	tries, o := e.First()
	if len(tries) == 0 {
		return failed("no request came, and %s", said(o))
	}
	first, final := tries[0].Time, tries[len(tries)-1].Time
	took := o.Ended.Sub(first)
	switch {
	case final.Sub(first) > deadline+slack:
		return failed("request %d came %s after the first, with %s to go", len(tries), brief(final.Sub(first)), brief(deadline))
	case o.flooded:
		return unclear("it %s, so it was ended before its time", o.Broken)
	case o.Broken != "":
		return failed("it %s, with %s to go", o.Broken, brief(deadline))
	case took > deadline+late:
		return failed("it ended %s after its first request, with %s to go", brief(took), brief(deadline))
	}
	return passed("it ended %s after its first request, after %s", brief(took), count(len(tries), "request"))
}

// timeouts are attempts that take longer than the client allows.
func timeouts() []Case {
	rule := Rule{"an attempt that takes too long is ended and made again", "G6 of docs/features.md"}
	var all []Case
	for _, c := range []struct{ name, title, step string }{
		{"slow", "an answer that is too late", "slow"},
		{"hang", "no answer", "hang"},
		{"stall", "an answer that stops in its middle", "stall"},
	} {
		all = append(all, Case{ID: "timeout/" + c.name, Title: "GET: " + c.title + ", then a good one", Rule: rule,
			Needs: []Claim{Retries, Timeouts}, Ask: []Operation{{ID: "read", Path: "/v1/items/read"}}, Limit: 15 * time.Second, Patient: true,
			World: func(p Place) sim.World {
				wait := (p.length(Timeouts) + 4*time.Second).String()
				arg := "(for=" + wait + ")"
				if c.step == "stall" {
					arg = "(at=10, for=" + wait + ")"
				}
				return world("GET /v1/items/*: " + c.step + arg + ", ok")(p)
			}, Judge: every(timely, recovers(1), endsAttempt)})
	}
	return all
}

// timely wants the claimed timeout to be one that a case can show, and the
// client to have ended.
func timely(e *Evidence) Verdict {
	const most = 8 * time.Second
	if claimed := length(e.Claims, Timeouts); claimed > most {
		return unclear("the timeout of %s is too long to be seen; set one of at most %s for the check", brief(claimed), brief(most))
	}
	if v, broken := e.broken(); broken {
		return v
	}
	return passed("it ended")
}

// length is the duration that a claim has as its value; 1 s if it has none.
func (p Place) length(c Claim) time.Duration { return length(p.Claims, c) }

func length(claims []Claim, c Claim) time.Duration {
	v, _ := value(claims, c)
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return d
	}
	return time.Second
}

// endsAttempt wants the second attempt to begin before the first would have ended.
func endsAttempt(e *Evidence) Verdict {
	tries, _ := e.First()
	claimed := length(e.Claims, Timeouts)
	if got := tries[1].Time.Sub(tries[0].Time); got > claimed+3500*time.Millisecond {
		return failed("the second attempt began %s after the first, with a timeout of %s", brief(got), brief(claimed))
	}
	return passed("the second attempt began %s after the first, with a timeout of %s",
		brief(tries[1].Time.Sub(tries[0].Time)), brief(claimed))
}

// outages are failures that do not end, and what a client adds to them.
func outages() []Case {
	return []Case{
		{ID: "outage/one", Title: "503 for ever, one operation", Needs: []Claim{Retries}, Weight: 2, Patient: true, Limit: 6 * time.Second,
			Rule: Rule{"the pauses grow, so that a server that is down is left alone", "AWS Architecture Blog, Exponential Backoff And Jitter"}, World: world("GET /v1/items/*: 503 x5000"),
			Ask: []Operation{{ID: "read", Path: "/v1/items/read", Deadline: 5 * time.Second}}, Judge: few(15)},
		{ID: "outage/cap", Title: "503 for ever: the longest pause", Needs: []Claim{Retries, Cap}, Patient: true, Limit: 9 * time.Second,
			Rule: Rule{"no pause is longer than the cap, jitter included", "AWS Architecture Blog, Exponential Backoff And Jitter"}, World: world("GET /v1/items/*: 503 x5000"),
			Ask: []Operation{{ID: "read", Path: "/v1/items/read", Deadline: 8 * time.Second}}, Judge: capped},
		{ID: "outage/budget", Title: "503 for ever, 40 operations", Needs: []Claim{Retries, Budgets, Remembers, Parallel}, Weight: 2,
			Rule: Rule{"all retries together are a bounded part of the calls", "Site Reliability Engineering, chapter 21, retry budgets"}, World: world("GET /v1/items/*: 503 x5000"),
			Ask: reads(40, 4*time.Second), Patient: true, Limit: 7 * time.Second, Judge: amplifies(2.2)},
	}
}

// reads are n operations at a time.
func reads(n int, limit time.Duration) []Operation {
	all := make([]Operation, n)
	for i := range all {
		id := "read-" + itoa(i)
		all[i] = Operation{ID: id, Path: "/v1/items/" + id, Deadline: limit}
	}
	return all
}

// few wants no more than n requests for the first operation.
func few(n int) judge {
	return func(e *Evidence) Verdict {
		tries, _ := e.First()
		if len(tries) == 0 {
			return failed("no request came")
		}
		took := tries[len(tries)-1].Time.Sub(tries[0].Time)
		if len(tries) > n {
			return failed("%s within %s", count(len(tries), "request"), brief(took))
		}
		return passed("%s within %s", count(len(tries), "request"), brief(took))
	}
}

// capped wants all pauses but one to be under the cap: one may be late by the
// load of the machine.
func capped(e *Evidence) Verdict {
	tries, o := e.First()
	most := length(e.Claims, Cap)
	var gaps []time.Duration
	for _, a := range tries[min(1, len(tries)):] {
		gaps = append(gaps, a.Gap)
	}
	if len(gaps) < 3 {
		return unclear("%s in all, too few to see the cap; %s", count(len(tries), "request"), said(o))
	}
	slices.Sort(gaps)
	if got := gaps[len(gaps)-2]; got > most+100*time.Millisecond {
		return failed("pauses of %s and %s, with a cap of %s", brief(got), brief(gaps[len(gaps)-1]), brief(most))
	}
	return passed("the longest of %s was %s, with a cap of %s", count(len(gaps), "pause"), brief(gaps[len(gaps)-1]), brief(most))
}

// amplifies wants all requests to be no more than so many times the operations.
func amplifies(most float64) judge {
	return func(e *Evidence) Verdict {
		ops, got := len(e.Case.Ask), len(e.Journal.Entries)
		times := float64(got) / float64(ops)
		if times > most {
			return failed("%s for %d operations: %.1f times the load", count(got, "request"), ops, times)
		}
		return passed("%s for %d operations: %.1f times the load", count(got, "request"), ops, times)
	}
}
