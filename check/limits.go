package check

import (
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// limits are what many operations of one session may do together.
func limits() []Case {
	return []Case{
		{ID: "limits/concurrency", Title: "24 operations at once, each of 200 ms", Needs: []Claim{Concurrency, Parallel, Remembers},
			Rule:  Rule{"no more requests are open than agreed", "S5 of docs/features.md"},
			World: world("GET /v1/items/{op}: slow(for=200ms)"), Ask: reads(24, 0), Limit: 20 * time.Second, Judge: bounded},
		{ID: "limits/tenants", Title: "30 operations of one tenant, then 3 of another, each of 150 ms",
			Needs: []Claim{Tenants, Concurrency, Parallel, Remembers},
			Rule:  Rule{"one tenant does not use up what all share", "P4 of docs/features.md"},
			World: world("GET /v1/items/{op}: slow(for=150ms)"), Ask: twoTenants(), Limit: 20 * time.Second, Judge: fair},
		{ID: "limits/penalty", Title: "12 operations, one every 100 ms; 4 a second allowed, early ones punished", Limit: 25 * time.Second, Patient: true,
			Needs: []Claim{Retries, Paces, Parallel, Remembers},
			Rule:  Rule{"a client that shares a credential does not come back early, whoever was told", "G9 of docs/features.md"},
			World: limited(rate.Limit{Name: "requests", Capacity: 2, Refill: 4,
				Penalty: rate.Penalty{First: time.Second, Max: 4 * time.Second, Grace: 400 * time.Millisecond}}),
			Ask: spaced(reads(12, 0), 100*time.Millisecond), Judge: unpunished},
	}
}

func limited(l rate.Limit) func(Place) sim.World {
	return func(Place) sim.World { return sim.World{Packs: []sim.Pack{provider(nil)}, Limits: []rate.Limit{l}} }
}

func twoTenants() []Operation {
	var all []Operation
	for i := range 33 {
		tenant, id := "many", "many-"+itoa(i)
		o := Operation{Tenant: tenant}
		if i >= 30 {
			id, o.Tenant = "few-"+itoa(i-30), "few"
		}
		if i == 30 {
			o.Pause = 300 * time.Millisecond
		}
		o.ID, o.Path = id, "/v1/items/"+id
		all = append(all, o)
	}
	return all
}

// spaced lets so much time pass before each operation but the first.
func spaced(all []Operation, every time.Duration) []Operation {
	for i := range all[1:] {
		all[i+1].Pause = every
	}
	return all
}

// bounded wants no more requests open at a time than the client claims.
func bounded(e *Evidence) Verdict {
	text, _ := value(e.Claims, Concurrency)
	most, err := strconv.Atoi(text)
	if err != nil || most < 1 {
		return unclear("the claim concurrency has no number; write concurrency=4")
	}
	got := e.Open(func(sim.Entry) bool { return true })
	if got > most {
		return failed("%d requests were open at the same time, with a cap of %d", got, most)
	}
	return passed("at most %d of %s were open at the same time, with a cap of %d", got, count(len(e.Journal.Entries), "request"), most)
}

// fair wants the second tenant not to wait for all of the first: few of the
// first are sent between the instant at which the second asks and its last request.
func fair(e *Evidence) Verdict {
	asked, between := e.Outcomes["few-0"].Began, 0
	var end time.Time
	for _, a := range e.Journal.Entries {
		if strings.HasPrefix(operationOf(a.Path), "few") {
			end = a.Time
		}
	}
	for _, a := range e.Journal.Entries {
		if strings.HasPrefix(operationOf(a.Path), "many") && a.Time.After(asked) && a.Time.Before(end) {
			between++
		}
	}
	if n := e.calls("few"); n < 3 {
		return failed("%s came for 3 operations of the second tenant", count(n, "request"))
	}
	if between > 12 {
		return failed("%s of the first tenant went before the 3 operations of the second", count(between, "request"))
	}
	return passed("%s of the first tenant went before the 3 operations of the second", count(between, "request"))
}

// unpunished wants no request before the instant that the credential was told.
func unpunished(e *Evidence) Verdict {
	early, throttled := 0, 0
	var worst time.Duration
	for _, a := range e.Journal.Entries {
		if a.Early > slack {
			early++
			worst = max(worst, a.Early)
		}
		if a.Throttled {
			throttled++
		}
	}
	if early > 0 {
		return failed("%s came before the time that was told, by up to %s; %d were throttled", count(early, "request"), brief(worst), throttled)
	}
	if v, broken := e.broken(); broken {
		return v
	}
	return passed("%s, %d throttled, none before the time that was told", count(len(e.Journal.Entries), "request"), throttled)
}
