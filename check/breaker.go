package check

import (
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

const (
	sick     = 24 // operations while the server is down
	watched  = 6  // of them, the last, by which the breaker must be open
	probing  = 8  // operations at a time when it may be well again
	cooldown = 3 * time.Second
)

// breakers are an outage with a beginning and an end, seen by one session. A
// client claims breaker where its breaker trips within 18 failures in a row
// and waits for about a second.
func breakers() []Case {
	needs := []Claim{Breaks, Remembers, Parallel}
	down := func(n int) (all []Operation) {
		for i := range n {
			id := "sick-" + itoa(i)
			all = append(all, Operation{ID: id, Path: "/v1/items/" + id, Wave: i, Deadline: 120 * time.Millisecond})
		}
		return all
	}
	group := func(all []Operation, name string, n, wave int, pause time.Duration) []Operation {
		for i := range n {
			id := name + "-" + itoa(i)
			o := Operation{ID: id, Path: "/v1/items/" + id, Wave: wave, Deadline: 3 * time.Second}
			if i == 0 {
				o.Pause = pause
			}
			all = append(all, o)
		}
		return all
	}
	return []Case{
		{ID: "breaker/trips", Title: "503 for 24 operations, one after the other", Needs: needs, World: ailing, Ask: down(sick),
			Rule: Rule{"a dependency that fails again and again is left alone", "Nygard, Release It!, Circuit Breaker"}, Limit: 15 * time.Second, Judge: trips},
		{ID: "breaker/silent", Title: "503 for 24 operations, then 8 at once", Needs: needs, World: ailing,
			Ask:  shorter(group(down(sick), "sick-late", probing, sick, 0)),
			Rule: Rule{"while the breaker is open nothing is sent", "Nygard, Release It!, Circuit Breaker"}, Limit: 15 * time.Second, Judge: silent},
		{ID: "breaker/probe", Title: "8 operations at once when the breaker may close", Needs: needs, World: ailing,
			Ask:  group(down(sick), "probe", probing, sick, cooldown),
			Rule: Rule{"one request alone tries whether the dependency is well again", "Nygard, Release It!, Circuit Breaker"}, Limit: 20 * time.Second, Judge: oneProbe},
		{ID: "breaker/recovers", Title: "the dependency is well again", Needs: needs, World: ailing, Weight: 2,
			Ask:  group(group(down(sick), "probe", 1, sick, cooldown), "after", 4, sick+1, 300*time.Millisecond),
			Rule: Rule{"the breaker closes when the dependency is well again", "Nygard, Release It!, Circuit Breaker"}, Limit: 20 * time.Second, Judge: closes},
	}
}

// shorter gives the operations of the last wave little time.
func shorter(all []Operation) []Operation {
	for i := range all {
		all[i].Deadline = 120 * time.Millisecond
	}
	return all
}

// ailing fails for operations called sick, and takes 400 ms for those called probe.
func ailing(Place) sim.World {
	p := provider(nil)
	usual := p.Operations[0].Do
	p.Operations[0].Do = func(x *sim.Exchange) sim.Answer {
		if strings.HasPrefix(x.Value("op"), "sick") {
			return answer(503)(x)
		}
		return usual(x)
	}
	return sim.World{Packs: []sim.Pack{p}, Limits: []rate.Limit{}, Steps: slowProbes}
}

// slowProbes makes the probes take their time, so that one beside another is seen.
var slowProbes = func() string {
	var b strings.Builder
	for i := range probing {
		b.WriteString("GET /v1/items/probe-" + itoa(i) + ": slow(for=400ms)\n")
	}
	return b.String()
}()

// calls is how many requests came for operations whose name begins so.
func (e *Evidence) calls(prefix string) (n int) {
	for _, a := range e.Journal.Entries {
		if strings.HasPrefix(operationOf(a.Path), prefix) {
			n++
		}
	}
	return n
}

func trips(e *Evidence) Verdict {
	late := 0
	for i := sick - watched; i < sick; i++ {
		late += len(e.Of("sick-" + itoa(i)))
	}
	all := e.calls("sick-")
	if late > 1 {
		return failed("the last %d of %d operations still sent %s; %d in all", watched, sick, count(late, "request"), all)
	}
	return passed("%s for %d operations; the last %d sent %d", count(all, "request"), sick, watched, late)
}

func silent(e *Evidence) Verdict {
	if v := trips(e); v.Mark != Pass {
		return unclear("the breaker was not open: %s", v.Cause)
	}
	if got := e.calls("sick-late"); got > 1 {
		return failed("%d operations at once sent %s while the breaker should be open", probing, count(got, "request"))
	}
	return passed("%d operations at once sent %s", probing, count(e.calls("sick-late"), "request"))
}

func oneProbe(e *Evidence) Verdict {
	if v := trips(e); v.Mark != Pass {
		return unclear("the breaker was not open: %s", v.Cause)
	}
	var first *sim.Entry
	beside := 0
	for i, a := range e.Journal.Entries {
		switch {
		case !strings.HasPrefix(operationOf(a.Path), "probe"):
		case first == nil:
			first = &e.Journal.Entries[i]
		case a.Time.Before(first.Time.Add(first.Took)):
			beside++
		}
	}
	switch {
	case first == nil:
		return failed("nothing was sent %s after the last failure", brief(cooldown))
	case beside > 0:
		return failed("%s came while the probe was not answered", count(beside, "request"))
	}
	return passed("one request alone, answered after %s", brief(first.Took))
}

func closes(e *Evidence) Verdict {
	if v := trips(e); v.Mark != Pass {
		return unclear("the breaker was not open: %s", v.Cause)
	}
	good := 0
	for i := range 4 {
		if id := "after-" + itoa(i); e.Outcomes[id].OK && len(e.Of(id)) > 0 {
			good++
		}
	}
	if good < 4 {
		return failed("%d of 4 operations succeeded, %s after the last failure", good, brief(cooldown))
	}
	return passed("all operations succeeded")
}
