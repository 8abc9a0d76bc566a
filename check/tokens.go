package check

import (
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// tokens are bearer tokens that end before their time.
func tokens() []Case {
	needs := []Claim{Tokens, Remembers}
	var row []Operation
	for i := range 6 {
		id := "read-" + itoa(i)
		row = append(row, Operation{ID: id, Path: "/v1/items/" + id, Wave: i})
	}
	return []Case{
		{ID: "tokens/expire", Title: "6 operations; the token ends after 3", Needs: needs, Weight: 2, World: gated(3), Ask: row,
			Rule: Rule{"a token that has ended is renewed once, and the operation repeated", "RFC 6750 §3.1"}, Judge: renews(2)},
		{ID: "tokens/flight", Title: "6 operations at once without a token", Needs: append(needs, Parallel), World: gated(1000), Ask: reads(6, 0),
			Rule: Rule{"one renewal at a time, however many wait", "S8 of docs/features.md"}, Judge: renews(1)},
		{ID: "tokens/refused", Title: "a token that is never taken", Needs: needs, World: gated(0), Patient: true, Limit: 5 * time.Second,
			Ask:  []Operation{{ID: "read", Path: "/v1/items/read", Deadline: 3 * time.Second}},
			Rule: Rule{"a second 401 is final", "RFC 9110 §15.5.2"}, Judge: secondIsFinal},
	}
}

// gated has a token endpoint, and takes each token so many times.
func gated(uses int) func(Place) sim.World {
	return func(at Place) sim.World {
		left := map[string]int{} // by token; only what runs alone in the case touches it
		if at.issuer == nil {
			at.issuer = &issuer{}
		}
		before := at.issuer.made()
		p := provider(nil)
		p.Authorize = func(x *sim.Exchange) *sim.Refusal {
			_, token, _ := strings.Cut(x.Request.Header.Get("Authorization"), " ")
			if _, seen := left[token]; !seen && at.issuer.after(token, before) {
				left[token] = uses
			}
			if left[token] == 0 {
				return &sim.Refusal{Kind: sim.Unauthorized, Detail: "the token has ended"}
			}
			left[token]--
			return nil
		}
		p.Operations = append(p.Operations, sim.Operation{Route: "POST /oauth/token", Name: "token", Free: true,
			Do: func(x *sim.Exchange) sim.Answer {
				token := x.ID("tok-")
				left[token] = uses
				return tokenAnswer(token)
			}})
		return sim.World{Packs: []sim.Pack{p}, Limits: []rate.Limit{}}
	}
}

// renews wants all operations to succeed with so many tokens.
func renews(most int) judge {
	return func(e *Evidence) Verdict {
		made := len(e.Of("token")) + e.Minted
		for _, id := range e.Operations() {
			tries := e.Of(id)
			switch {
			case !e.Outcomes[id].OK:
				return failed("%s failed after %s, with %s", id, count(len(tries), "request"), count(made, "token"))
			case len(tries) == 0 || tries[len(tries)-1].Status/100 != 2:
				return failed("it reported success of %s, though the last answer was %s, with %s", id, last(tries), count(made, "token"))
			case len(tries) > 2:
				return failed("%s took %s, with %s", id, count(len(tries), "request"), count(made, "token"))
			}
		}
		if made > most {
			return failed("it asked for %s, where %d would do", count(made, "token"), most)
		}
		return passed("%s, %s", count(len(e.Case.Ask), "operation"), count(made, "token"))
	}
}

func secondIsFinal(e *Evidence) Verdict {
	tries, o := e.First()
	if len(tries) > 2 {
		return failed("%s were answered 401", count(len(tries), "request"))
	}
	return passed("%s, then it ended: %s", count(len(tries), "request"), said(o))
}
