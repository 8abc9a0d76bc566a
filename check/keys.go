package check

import (
	"net/http"
	"strings"

	"github.com/heedproject/heed/sim"
)

// keys are writes of which the answer was lost.
func keys() []Case {
	rule := Rule{"a write that is repeated has the same key, and takes effect once", "draft-ietf-httpapi-idempotency-key-header §2"}
	var all []Case
	for _, c := range []struct{ name, title, step string }{
		{"reset", "done, then reset", "commit-then-reset"},
		{"504", "done, then 504", "commit-then-504"},
		{"500", "done, then 500", "commit-then-500"},
	} {
		all = append(all,
			Case{ID: "keys/keyed-" + c.name, Title: "POST with a key: " + c.title, Rule: rule, Weight: 2,
				Needs: []Claim{Retries, Writes, Headers, Keyed}, World: world("POST /v1/orders/*: " + c.step + ", ok"),
				Ask: []Operation{order("order", true)}, Judge: every(effects("order"), sameKey)},
			Case{ID: "keys/unkeyed-" + c.name, Title: "POST without a key: " + c.title, Weight: 3,
				Rule:  Rule{"a write without a key is not repeated when it may have been done", "RFC 9110 §9.2.2"},
				Needs: []Claim{Writes}, World: world("POST /v1/orders/*: " + c.step + ", ok"),
				Ask: []Operation{order("order", false)}, Judge: effects("order")})
	}
	all = append(all, inFlight()...)
	return append(all,
		Case{ID: "keys/each", Title: "three writes, each with a key of its own", Needs: []Claim{Writes, Keys}, Weight: 2,
			Rule:  Rule{"a new operation has a new key", "draft-ietf-httpapi-idempotency-key-header §2.2"},
			World: world(""), Ask: []Operation{order("one", true), at(order("two", true), 1), at(order("three", true), 2)}, Judge: ownKeys},
		Case{ID: "keys/reported", Title: "POST without a key: 503 is no success", Needs: []Claim{Writes},
			Rule:  Rule{"a write of which nobody knows whether it was done is no success", "RFC 9110 §9.2.2, §15.6.4"},
			World: world("POST /v1/orders/*: 503 x50"), Ask: []Operation{order("order", false)}, Patient: true, Judge: reportsFailure},
		Case{ID: "keys/length", Title: "a write with a long path and a key", Needs: []Claim{Writes, Keys},
			Rule:  Rule{"a key is no longer than the provider takes: 255 bytes", "docs.stripe.com, idempotent requests"},
			World: world(""), Ask: []Operation{order("order-"+strings.Repeat("long-", 40), true)}, Judge: shortKey},
		Case{ID: "keys/body", Title: "PUT of 100 KB: 503, then reset, then 503", Needs: []Claim{Retries, Writes}, Weight: 2,
			Rule:  Rule{"every attempt carries the whole body", "RFC 9110 §9.2.2"},
			World: world("PUT /v1/records/*: 503, reset, 503, ok"), Ask: []Operation{large("record")}, Judge: sameBody},
	)
}

// inFlight are writes whose first request is still at work when the second one
// comes: of all that is answered 409, this may be sent again as it was.
func inFlight() []Case {
	var all []Case
	for _, c := range []struct {
		name, by, provider string
		claims             []Claim
		media, body        string
	}{
		{"in-flight", "as the draft has it", "", nil, "application/problem+json", `{"type":"https://developer.example.com/idempotency",` +
			`"title":"A request is outstanding for this Idempotency-Key","detail":"A request with the same Idempotency-Key is being processed."}`},
		{"in-flight-stripe", "as Stripe has it", "stripe", []Claim{Dialect("stripe")}, "application/json", `{"error":{"type":"idempotency_error",` +
			`"code":"idempotency_key_in_use","message":"There is another request in progress that uses this key."}}`},
	} {
		busy := func(*sim.Exchange) sim.Answer { return sim.Text(http.StatusConflict, c.media, c.body) }
		all = append(all, Case{ID: "keys/" + c.name, Provider: c.provider,
			Title: "POST with a key: done, then 504; then 409, the key is in use, " + c.by,
			Rule: Rule{"a write whose key is in use is repeated later, with the same key",
				"draft-ietf-httpapi-idempotency-key-header §2.7"},
			Needs: append([]Claim{Retries, Writes, Headers, Keyed, InFlight}, c.claims...), World: scripted(doneThen504, busy, madeBefore),
			Ask: []Operation{order("order", true)}, Judge: every(waitsForKey, effects("order"), sameKey)})
	}
	return all
}

// waitsForKey wants the first operation to go on after the answer that says that
// its key is in use.
func waitsForKey(e *Evidence) Verdict {
	tries, o := e.First()
	switch {
	case len(tries) < 2:
		return unclear("%s, so it never met its own key; %s", count(len(tries), "request"), said(o))
	case len(tries) == 2:
		return failed("it gave up when its key was in use: %s", said(o))
	case len(tries) > 3:
		return failed("%s, though number 3 was answered %d", count(len(tries), "request"), tries[2].Status)
	case !o.OK:
		return failed("the last of %s was answered %d, yet %s", count(len(tries), "request"), tries[2].Status, said(o))
	}
	return passed("it came again %s after the answer that its key is in use", brief(tries[2].Gap))
}

// doneThen504 does the work and loses the answer.
func doneThen504(x *sim.Exchange) sim.Answer {
	do("order", http.StatusCreated)(x)
	return answer(http.StatusGatewayTimeout)(x)
}

// madeBefore gives the answer of work that was done before.
func madeBefore(x *sim.Exchange) sim.Answer {
	return sim.JSON(http.StatusCreated, item{ID: x.Value("op"), State: "done", Entries: []string{}}).With("Idempotent-Replayed", "true")
}

func at(o Operation, wave int) Operation { o.Wave = wave; return o }

func large(id string) Operation {
	o := replace(id)
	o.Header = nil
	o.Body = `{"title":"` + strings.Repeat("a history of rivers, ", 5000) + `"}`
	return o
}

// sameKey wants all requests of the first operation to carry one key.
func sameKey(e *Evidence) Verdict {
	tries, o := e.First()
	if len(tries) < 2 {
		return unclear("%s, so a key that stays was not seen; %s", count(len(tries), "request"), said(o))
	}
	for i, a := range tries {
		switch {
		case a.Key == "":
			return failed("request %d had no key", i+1)
		case a.Key != tries[0].Key:
			return failed("request %d had another key than request 1", i+1)
		}
	}
	return passed("%s with one key; the write took effect %s", count(len(tries), "request"),
		count(e.Effects.Kinds["order"].Count, "time"))
}

// ownKeys wants each operation to have a key that no other has.
func ownKeys(e *Evidence) Verdict {
	owner := map[string]string{}
	for _, a := range e.Journal.Entries {
		id := operationOf(a.Path)
		switch was, ok := owner[a.Key]; {
		case a.Key == "":
			return failed("%s had no key", id)
		case ok && was != id:
			return failed("%s had the key of %s", id, was)
		}
		owner[a.Key] = id
	}
	return passed("%s, each with a key of its own", count(len(e.Journal.Entries), "write"))
}

// shortKey wants the provider not to have refused the key.
func shortKey(e *Evidence) Verdict {
	tries, o := e.First()
	switch {
	case len(tries) == 0:
		return failed("no request came, and %s", said(o))
	case tries[0].Key == "":
		return failed("it had no key")
	case tries[0].Status == 400:
		return failed("it was answered 400: the key has more than 255 bytes")
	}
	return passed("the provider took the key")
}

// sameBody wants all requests of the first operation to carry what the first carried.
func sameBody(e *Evidence) Verdict {
	tries, o := e.First()
	want := len(e.Case.Ask[0].Body)
	for i, a := range tries {
		switch {
		case i == 0 && a.BytesIn != want:
			return failed("request 1 carried %d of %d bytes", a.BytesIn, want)
		case a.BytesIn != want:
			return failed("request %d carried %d of %d bytes", i+1, a.BytesIn, want)
		case a.Body != tries[0].Body:
			return failed("request %d carried another body than request 1", i+1)
		}
	}
	if len(tries) < 2 {
		return unclear("%s, so a body that is sent again was not seen; %s", count(len(tries), "request"), said(o))
	}
	return passed("%s, each with the same %d bytes", count(len(tries), "request"), want)
}
