package check

import (
	"net/http"
	"strings"

	"github.com/heedproject/heed/sim"
)

// mishaps are the ways in which a first attempt or two fail for a moment.
var mishaps = []struct {
	name, steps string
	times       int
	// refused says that the server says that it did nothing.
	refused bool
}{
	{"503-503", "503 x2", 2, false},
	{"reset-reset", "reset x2", 2, false},
	{"reset-503", "reset, 503", 2, false},
	{"502-504", "502, 504", 2, false},
	{"408", "408", 1, true},
	{"425", "425", 1, true},
}

// transient are four kinds of requests, each with every mishap.
func transient() []Case {
	var all []Case
	for i, m := range mishaps {
		said := strings.ReplaceAll(m.name, "-", ", then ")
		all = append(all,
			Case{ID: "transient/get-" + m.name, Title: "GET: " + said, Quick: i == 0 || i == 1, Weight: 2,
				Rule:  Rule{"a read that failed for a moment is tried again", "RFC 9110 §9.2.2, §15.6"},
				World: world("GET /v1/items/*: " + m.steps), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}},
				Needs: []Claim{Retries}, Judge: recovers(m.times)},
			Case{ID: "transient/keyed-" + m.name, Title: "POST with an idempotency key: " + said,
				Rule:  Rule{"a write with an idempotency key is tried again", "draft-ietf-httpapi-idempotency-key-header"},
				World: world("POST /v1/orders/*: " + m.steps), Ask: []Operation{order("order", true)},
				Needs: []Claim{Retries, Writes, Headers, Keyed}, Judge: every(recovers(m.times), effects("order"))},
			Case{ID: "transient/conditional-" + m.name, Title: "PUT with If-Match: " + said,
				Rule:  Rule{"a write that is idempotent is tried again as it was, precondition included", "RFC 9110 §9.2.2, §13.1.1"},
				World: preconditioned("PUT /v1/records/*: " + m.steps), Ask: []Operation{replace("record")},
				Needs: []Claim{Retries, Writes, Headers}, Judge: recovers(m.times)},
			unkeyed(m.name, m.steps, said, m.refused),
		)
	}
	return all
}

// unkeyed is a write that must not be repeated, unless the server says that it
// did nothing.
func unkeyed(name, steps, said string, refused bool) Case {
	c := Case{ID: "transient/unkeyed-" + name, Title: "POST without a key: " + said,
		Rule: Rule{"a write without a key is not repeated when it may have been done",
			"RFC 9110 §9.2.2"},
		World: world("POST /v1/orders/*: " + steps), Ask: []Operation{order("order", false)},
		Needs: []Claim{Writes}, Judge: notRepeated}
	if refused {
		c.Rule = Rule{"a write that the server did not take may be repeated, and takes effect once",
			"RFC 9110 §15.5.9, RFC 8470 §5.2"}
		c.Judge = effects("order")
	}
	return c
}

func order(id string, keyed bool) Operation {
	return Operation{ID: id, Method: http.MethodPost, Path: "/v1/orders/" + id, Keyed: keyed,
		Body: `{"item":"an atlas of bridges","note":"` + id + `"}`}
}

func replace(id string) Operation {
	return Operation{ID: id, Method: http.MethodPut, Path: "/v1/records/" + id, Header: map[string]string{"If-Match": `"v1"`},
		Body: `{"title":"a history of rivers"}`}
}

// preconditioned refuses to replace what comes without If-Match.
func preconditioned(steps string) func(Place) sim.World {
	return func(p Place) sim.World {
		w := world(steps)(p)
		put := &w.Packs[0].Operations[2]
		usual := put.Do
		put.Do = func(x *sim.Exchange) sim.Answer {
			if x.Request.Header.Get("If-Match") == "" {
				return answer(http.StatusPreconditionRequired)(x)
			}
			return usual(x)
		}
		return w
	}
}

// notRepeated wants one request; a client that gives every write a key of its
// own may repeat it.
func notRepeated(e *Evidence) Verdict {
	if tries, _ := e.First(); len(tries) > 1 && tries[0].Key != "" {
		return every(effects("order"), sameKey)(e)
	}
	return sends(1)(e)
}
