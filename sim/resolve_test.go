package sim_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// refused is what New says of a world; "" if it takes it.
func refused(w sim.World) string {
	_, err := sim.New(w)
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[*sim.Error](err); !ok {
		return "no sim.Error"
	}
	return strings.TrimPrefix(err.Error(), "sim: ")
}

func TestWhatCanNeverComeToPassIsRefusedWithWhatThereIs(t *testing.T) {
	shop := subscribing()
	bucket := rate.Limit{Name: "a", Capacity: 1, Refill: 1}
	with := func(change func(*rate.Limit)) []rate.Limit {
		l := bucket
		change(&l)
		return []rate.Limit{l}
	}
	for want, w := range map[string]sim.World{
		`steps: line 1, column 1: no pack has an operation "no.such"; `:                                         {Steps: "no.such: ok"},
		`steps: line 1, column 1: no pack has an operation at "GET /push"; did you mean POST /push`:             {Packs: []sim.Pack{shop}, Steps: "GET /push: ok"},
		`steps: line 1, column 1: no pack has an operation at "POST /pull/*"; `:                                 {Packs: []sim.Pack{shop}, Steps: "POST /pull/*: ok"},
		`steps: line 2, column 1: "GET /health" is there already, in line 1`:                                    {Steps: "GET /health: 503\nGET /health: 500"},
		`steps: line 1, column 23: redirect: the text in parentheses is no URL; write one such as`:              {Steps: "GET /health: redirect(::bad)"},
		`steps: line 1, column 25: wrong-type: the text in parentheses is no media type; `:                      {Steps: "GET /health: wrong-type(foo)"},
		`steps: line 1, column 14: there is no golden exchange "slack/nope"; `:                                  {Steps: "GET /health: golden(slack/nope)"},
		`steps: line 1, column 1: no pack that is served tells of an event "charge.nope"; did you mean charge.`: {Steps: "webhook charge.nope: lost"},
		`webhooks[0].events[1]: no pack tells of an event "nope.*"; `:                                           {Webhooks: []sim.Webhook{{URL: "http://h/", Events: []string{"job.*", "nope.*"}}}},
		`clock.scale: a clock that is stepped stands still`:                                                     {Clock: sim.Clock{Scale: 60, Stepped: true}},
		`limits[1].name: there is a limit "a" already; `:                                                        {Limits: []rate.Limit{bucket, bucket}},
		`limits[0].name: there is a limit "requests" already; `:                                                 {Rate: 1, Limits: with(func(l *rate.Limit) { l.Name = "requests" })},
		`limits[0].routes[0]: limit "a": no operation is at "GET /v1/nope"; did you mean GET /v1/`:              {Limits: with(func(l *rate.Limit) { l.Routes = []string{"GET /v1/nope"} })},
		`limits[0].value: limit "a": no path has a value called "user"; `:                                       {Limits: with(func(l *rate.Limit) { l.Scope, l.Value = rate.PathValue, "user" })},
		`limits[0].scope: limit "a": no pack that is served counts apart in a way of its own; `:                 {Limits: with(func(l *rate.Limit) { l.Scope = rate.Custom })},
		`limits[0].window: limit "a": a token_bucket has no window; `:                                           {Limits: with(func(l *rate.Limit) { l.Window = time.Minute })},
		`burst: burst 5 without a rate never applies; set the rate too`:                                         {Burst: 5},
	} {
		if got := refused(w); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWhatCanComeToPassIsTaken(t *testing.T) {
	for _, steps := range []string{
		"GET /any/path/at/all: 503", "HEAD /v1/bibs/*: 503", "* /**: reset", "GET /{a}/{b...}: 503", "webhook *: lost",
		"webhook job.*: twice", "GET /health: redirect(/v1/bibs), redirect(https://other.example/a?b=c), redirect",
		"GET /health: wrong-type(text/plain; charset=utf-8)", "GET /health: golden(slack/a throttle without a wait)",
	} {
		if got := refused(sim.World{Steps: steps}); got != "" {
			t.Errorf("%s: %s", steps, got)
		}
	}
	for _, steps := range []string{"POST /push: 503", "* /*: 503", "POST /{what}: 503", "POST /p{what}: 503", "* /**: 503", "webhook any.thing: lost"} {
		if got := refused(sim.World{Packs: []sim.Pack{subscribing()}, Steps: steps}); got != "" {
			t.Errorf("%s: %s", steps, got)
		}
	}
}

func TestANameThatIsNotThereIsToldWithFewThatAreLikeIt(t *testing.T) {
	got := refused(sim.World{Steps: "GET /health: golden(slack/a throttle without the wait)"})
	if !strings.Contains(got, "did you mean slack/a throttle without a wait, or ") || len(got) > 700 {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

func TestAGoldenExchangeWithoutAnAnswerFailsLikeIt(t *testing.T) {
	for name, took := range map[string]time.Duration{
		"stripe/a charge whose answer never came": 0, "generic/nobody listens": 0, "google/an upload whose answer was lost": time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := api(t, sim.World{Steps: "GET /health: golden(" + name + ")"})
			if !aborted(t, func() { ask(a, "GET", "/health", "") }) {
				t.Errorf("%s: it is answered", name)
			}
			if e := a.Journal().Entries[0]; e.Status != 0 || e.Took != took {
				t.Errorf("%s: got status %d after %v, want none after %v", name, e.Status, e.Took, took)
			}
		})
	}
}
