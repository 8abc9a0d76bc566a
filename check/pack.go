package check

import (
	"net/http"
	"slices"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// say writes one answer of a script.
type say func(*sim.Exchange) sim.Answer

// script says what an operation answers at its first requests; then it does
// what it is for.
type script func(x *sim.Exchange) []say

// item is what a GET answers.
type item struct {
	ID      string   `json:"id"`
	State   string   `json:"state"`
	Count   int      `json:"count"`
	Entries []string `json:"entries"`
}

// entries are long enough for an answer to be cut in its middle.
var entries = []string{"a history of rivers", "the grammar of clocks", "an atlas of bridges", "notes on weather",
	"the practice of printing", "a dictionary of gardens", "letters from islands", "the theory of measurement"}

func getItem(x *sim.Exchange) sim.Answer {
	return sim.JSON(200, item{x.Value("op"), "complete", len(entries), entries})
}

// do makes an effect of its operation and tells of it.
func do(kind string, status int) say {
	return func(x *sim.Exchange) sim.Answer {
		x.Effect(kind, x.Value("op"), 1)
		return sim.JSON(status, item{ID: x.Value("op"), State: "done", Entries: []string{}})
	}
}

// provider is the simulated provider of a case: items to read, orders to
// place, records to replace.
func provider(s script) sim.Pack {
	first := func(usual say) func(*sim.Exchange) sim.Answer {
		return func(x *sim.Exchange) sim.Answer {
			if s != nil {
				if list := s(x); x.Attempt() <= len(list) {
					if say := list[x.Attempt()-1]; say != nil {
						return say(x)
					}
				}
			}
			return usual(x)
		}
	}
	return sim.Pack{Name: "check", Operations: []sim.Operation{
		{Route: "GET /v1/items/{op}", Name: "items.get", Do: first(getItem)},
		{Route: "POST /v1/orders/{op}", Name: "orders.create", Keyed: true, Do: first(do("order", 201))},
		{Route: "PUT /v1/records/{op}", Name: "records.replace", Do: first(do("record", 200))},
		{Route: "POST /v1/graphql/{op}", Name: "graphql", Do: first(getGraph)},
		{Route: "DELETE /v1/records/{op}", Name: "records.delete", Do: first(do("deletion", 200))},
	}}
}

// world is a provider that goes through steps first.
func world(steps string) func(Place) sim.World {
	return func(Place) sim.World {
		return sim.World{Packs: []sim.Pack{provider(nil)}, Limits: []rate.Limit{}, Steps: steps}
	}
}

// scripted is a provider whose operations answer list at first, one by one.
func scripted(list ...say) func(Place) sim.World {
	return func(Place) sim.World {
		all := func(*sim.Exchange) []say { return list }
		return sim.World{Packs: []sim.Pack{provider(all)}, Limits: []rate.Limit{}}
	}
}

// answer is a status with header fields; of a name that comes twice there are
// two lines.
func answer(status int, fields ...[2]string) say {
	return func(*sim.Exchange) sim.Answer {
		an := sim.JSON(status, struct {
			Title  string `json:"title"`
			Status int    `json:"status"`
		}{http.StatusText(status), status}).With("Content-Type", "application/problem+json")
		for i, f := range fields {
			if slices.ContainsFunc(fields[:i], func(g [2]string) bool { return g[0] == f[0] }) {
				an.More = append(an.More, f)
			} else {
				an.Set(f[0], f[1])
			}
		}
		return an
	}
}

// elsewhere is the other host: whoever comes there is noted.
func elsewhere() sim.Pack {
	return sim.Pack{Name: "elsewhere", Operations: []sim.Operation{
		{Route: "GET /v1/items/{op}", Name: "items.get", Do: getItem},
	}}
}
