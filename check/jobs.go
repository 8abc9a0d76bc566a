package check

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// jobs are things that take longer than one request.
func jobs() []Case {
	hook := []Operation{
		{ID: "receipts", Kind: Receive, Path: "/v1/receipts"},
		{ID: "order", Method: http.MethodPost, Path: "/v1/orders/order", Body: `{"item":"letters"}`, Wave: 1},
	}
	return []Case{
		{ID: "jobs/poll", Title: "a job that is pending for three looks", Needs: []Claim{Polls},
			Rule:  Rule{"who waits for a job asks at the interval that is told", "RFC 9110 §10.2.3"},
			World: working, Ask: []Operation{{ID: "job", Kind: Poll, Path: "/v1/jobs/job"}}, Judge: polite},
		{ID: "jobs/late-cancel", Title: "DELETE of what is done: 409", Needs: []Claim{Writes},
			Rule:  Rule{"it is too late, and asking again does not change it", "RFC 9110 §15.5.10"},
			World: world("DELETE /v1/records/*: 409 x50"), Patient: true, Judge: every(sends(1), ends),
			Ask: []Operation{{ID: "record", Method: http.MethodDelete, Path: "/v1/records/record"}}},
		{ID: "jobs/webhook-twice", Title: "a webhook that comes twice", Needs: []Claim{Webhooks, Writes}, Weight: 2,
			Rule:  Rule{"a message that comes twice counts once", "Standard Webhooks 1.0"},
			World: telling("twice(after=200ms)"), Ask: hook, Linger: 1500 * time.Millisecond, Judge: countsOnce},
		{ID: "jobs/webhook-forged", Title: "a webhook that somebody else signed", Needs: []Claim{Webhooks, Writes}, Weight: 2,
			Rule:  Rule{"a message whose signature is wrong is refused", "Standard Webhooks 1.0"},
			World: telling("forged"), Ask: hook, Linger: 1200 * time.Millisecond, Judge: refusesForged},
		{ID: "jobs/webhook-old", Title: "a webhook that was signed an hour ago", Needs: []Claim{Webhooks, Writes},
			Rule:  Rule{"a message that was signed long ago is refused", "Standard Webhooks 1.0"},
			World: telling("stale(age=1h)"), Ask: hook, Linger: 1200 * time.Millisecond, Judge: refusesForged},
	}
}

// working has jobs that are pending for three looks.
func working(Place) sim.World {
	return sim.World{Limits: []rate.Limit{}, Packs: []sim.Pack{{Name: "check", Operations: []sim.Operation{
		{Route: "GET /v1/jobs/{op}", Name: "jobs.get", Do: func(x *sim.Exchange) sim.Answer {
			if x.Attempt() <= 3 {
				return sim.JSON(200, item{ID: x.Value("op"), State: "pending", Entries: []string{}}).With("Retry-After", "1")
			}
			return sim.JSON(200, item{ID: x.Value("op"), State: "complete", Entries: []string{}})
		}},
	}}}}
}

// telling has orders of which webhooks tell, spoiled by a step, and takes receipts.
func telling(step string) func(Place) sim.World {
	return func(Place) sim.World {
		p := provider(nil)
		p.Webhooks.Retries = []time.Duration{}
		usual := p.Operations[1].Do
		p.Operations[1].Do = func(x *sim.Exchange) sim.Answer {
			body, _ := json.Marshal(map[string]string{"type": "order.created", "id": x.Value("op")}) // of plain strings
			if x.Attempt() > 1 {
				return usual(x) // who orders twice is told of it once
			}
			x.Emit(sim.Event{Type: "order.created", ID: "msg-1", Body: body})
			return usual(x)
		}
		p.Operations = append(p.Operations, sim.Operation{Route: "POST /v1/receipts/{op}", Name: "receipts.create", Do: do("receipt", 201)})
		return sim.World{Packs: []sim.Pack{p}, Limits: []rate.Limit{}, Steps: "webhook order.created: " + step}
	}
}

func polite(e *Evidence) Verdict {
	tries, o := e.First()
	if len(tries) < 2 {
		return failed("%s, then it stopped looking: %s", count(len(tries), "look"), said(o))
	}
	for i, a := range tries[1:] {
		if i < 3 && a.Since < time.Second-slack {
			return failed("look %d came after %s, where 1 s was told", i+2, brief(a.Since))
		}
	}
	switch {
	case len(tries) < 4:
		return failed("%s, then it gave up: %s", count(len(tries), "look"), said(o))
	case len(tries) > 4:
		return failed("%s, though the job was complete at the fourth", count(len(tries), "look"))
	case !o.OK:
		return failed("the job is complete, yet %s", said(o))
	}
	return passed("4 looks, %s between the first two", brief(tries[1].Gap))
}

// receipts are how often the client says that the message counted.
func (e *Evidence) receipts() int { return e.Effects.Kinds["receipt"].Count }

// delivered tells how the messages were received.
func (e *Evidence) delivered() (taken, refused int) {
	for _, d := range e.Journal.Webhooks {
		if d.Status/100 == 2 {
			taken++
		} else {
			refused++
		}
	}
	return taken, refused
}

func countsOnce(e *Evidence) Verdict {
	taken, refused := e.delivered()
	switch {
	case taken+refused == 0:
		return failed("nobody listened: no message could be sent")
	case e.receipts() == 0:
		return failed("the message came %s and counted never", count(taken+refused, "time"))
	case e.receipts() > 1:
		return failed("the message came %s and counted %s", count(taken+refused, "time"), count(e.receipts(), "time"))
	case refused > 0:
		return failed("%d of %s of the same message were refused, so that it will come again", refused, count(taken+refused, "delivery attempt"))
	}
	return passed("the message came %s and counted once", count(taken, "time"))
}

func refusesForged(e *Evidence) Verdict {
	taken, refused := e.delivered()
	switch {
	case taken+refused == 0:
		return failed("nobody listened: no message could be sent")
	case e.receipts() > 0:
		return failed("the message counted, though its signature does not hold")
	case taken > 0:
		return failed("the message was answered as if it were good")
	case !slices.ContainsFunc(e.Journal.Webhooks, func(d sim.Delivery) bool { return d.Status >= 400 }):
		return unclear("%s sent and not answered, so a refusal was not seen", count(refused, "message"))
	}
	return passed("it was refused %s", count(refused, "time"))
}

// secrets are what a client tells to whom it should not.
func secrets() []Case {
	rule := Rule{"what a client writes has no credentials in it", "OWASP Logging Cheat Sheet, data to exclude"}
	return []Case{
		{ID: "secrets/redirect", Title: "307 to another host", Needs: []Claim{Headers}, Weight: 3,
			Rule: Rule{"a credential does not follow a redirect to another host", "RFC 9110 §15.4, RFC 6750 §5.2"},
			World: func(p Place) sim.World {
				return world("GET /v1/items/*: redirect(" + p.Elsewhere + "/v1/items/read)")(p)
			}, Ask: []Operation{{ID: "read", Path: "/v1/items/read"}}, Judge: keepsCredential},
		{ID: "secrets/refused", Title: "500, then 403: what is written about it", Needs: []Claim{Headers}, Weight: 2, Rule: rule,
			World: world("GET /v1/items/*: 500, 403 x50"), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}}, Patient: true, Judge: keepsSilent},
		{ID: "secrets/broken", Title: "reset again and again: what is written about it", Needs: []Claim{Headers}, Weight: 2, Rule: rule,
			World: world("GET /v1/items/*: reset x5000"), Ask: []Operation{{ID: "read", Path: "/v1/items/read", Deadline: 2 * time.Second}},
			Limit: 5 * time.Second, Patient: true, Judge: keepsSilent},
		{ID: "secrets/query", Title: "a credential in the query, 404: what is written about it", Weight: 2, Rule: rule,
			World: world("GET /v1/items/*: 404 x50"), Ask: []Operation{{ID: "read", Path: "/v1/items/read", Secret: true}}, Patient: true, Judge: keepsSilent},
		{ID: "secrets/query-broken", Title: "a credential in the query, reset: what is written about it", Rule: rule,
			World: world("GET /v1/items/*: reset x5000"), Ask: []Operation{{ID: "read", Path: "/v1/items/read", Secret: true, Deadline: 2 * time.Second}},
			Limit: 5 * time.Second, Patient: true, Judge: keepsSilent},
	}
}

// keepsCredential wants the other host not to have seen a credential.
func keepsCredential(e *Evidence) Verdict {
	for _, a := range e.Elsewhere.Entries {
		if a.Caller != "anonymous" {
			return failed("the other host was sent the credential")
		}
	}
	if n := len(e.Elsewhere.Entries); n > 0 {
		return passed("it followed with %s and without the credential", count(n, "request"))
	}
	return passed("it did not follow")
}

// keepsSilent wants no secret in what the client wrote.
func keepsSilent(e *Evidence) Verdict {
	if len(e.Told) > 0 {
		return failed("%s was in what it wrote: %d bytes and %s of outcomes", strings.Join(e.Told, " and "), e.Output.Bytes,
			count(len(e.Outcomes), "message"))
	}
	return passed("nothing secret in %d bytes of output", e.Output.Bytes)
}
