package scenario_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack"
	"github.com/heedproject/heed/sim/rate"
	"github.com/heedproject/heed/sim/scenario"
)

const whole = `
packs: [stripe]
seed: 7
clock: {stepped: true, start: 2026-03-01T12:00:00Z}
failure_rate: 0.25
steps:
  charges.create: 503 x2, commit-then-504, ok
  GET /v1/charges/{id}:
    - {step: 429, after: 2s, times: 3}
    - reset
limits:
  - {name: requests, kind: fixed_window, capacity: 100, window: 1m, scope: everyone, tell: late}
webhooks:
  - http://127.0.0.1:9000/hook
  - {url: "http://127.0.0.1:9001/", secret: hush, events: [charge.*], delay: 5s}
begin:
  - GET /v1/charges
  - {do: POST /v1/customers, form: {email: a@example.com, "metadata[n]": 7}}
  - {do: POST /v1/customers, header: {content-type: text/plain}, body: {n: 7, text: "7", on: true, of: [null, x]}}
cases:
  alpha: {steps: {charges.create: reset}}
`

func read(t *testing.T, text string) sim.World {
	t.Helper()
	w, err := scenario.Read("world.yaml", []byte(text), pack.Named)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAFileIsAWorld(t *testing.T) {
	w := read(t, whole)
	if len(w.Packs) != 1 || w.Packs[0].Name != "stripe" {
		t.Errorf("packs: got %d", len(w.Packs))
	}
	w.Packs = nil
	want := sim.World{
		Seed: 7, FailureRate: 0.25, Clock: sim.Clock{Stepped: true, Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		Steps:     "charges.create: 503 x2, commit-then-504, ok\nGET /v1/charges/{id}: 429(after=2s) x3, reset",
		CaseSteps: map[string]string{"alpha": "charges.create: reset"},
		Limits: []rate.Limit{{Name: "requests", Kind: rate.FixedWindow, Capacity: 100, Window: time.Minute,
			Scope: rate.Everyone, Tell: rate.Late}},
		Webhooks: []sim.Webhook{
			{URL: "http://127.0.0.1:9000/hook"},
			{URL: "http://127.0.0.1:9001/", Secret: "hush", Events: []string{"charge.*"}, Delay: 5 * time.Second},
		},
		Begin: []sim.Request{
			{Do: "GET /v1/charges"},
			{Do: "POST /v1/customers", Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
				Body: "email=a%40example.com&metadata%5Bn%5D=7"},
			{Do: "POST /v1/customers", Header: map[string]string{"content-type": "text/plain"},
				Body: `{"n":7,"of":[null,"x"],"on":true,"text":"7"}`},
		},
	}
	if diff := cmp.Diff(w, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestWhatIsWrongIsToldWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"sed: 7\n":                                                        "w.yaml:1:1: sed: the key is not known here; did you mean seed?",
		" \n":                                                             "w.yaml:1:1: the scenario is empty; write at least packs: [generic]",
		"packs: [strype]\n":                                               "w.yaml:1:9: packs[0]: there is no pack",
		"steps: 503\n":                                                    "w.yaml:1:8: steps: a value stands where a mapping belongs",
		"steps:\n  GET /a: 503, nope\n":                                   "w.yaml:2:16: steps.GET /a: \"nope\" is no step",
		"steps:\n  get /a: 503\n":                                         "w.yaml:2:3: steps.get /a: \"get\" is no method",
		"steps:\n  GET /a:\n    - {stop: 503}\n":                          "w.yaml:3:7: steps.GET /a[0]: the step is missing",
		"steps:\n  GET /a: ok\n  bibs.gte: 503\n":                         "w.yaml:3:3: steps.bibs.gte: no pack has an operation \"bibs.gte\"",
		"cases:\n  a:\n    steps: {bibs.gte: 503}\n":                      "w.yaml:3:13: cases.a.steps.bibs.gte: no pack has an operation \"bibs.gte\"",
		"limits:\n  - {name: a, capacity: 2}\n":                           "w.yaml:2:5: limits[0].refill: limit \"a\": a refill of 0",
		"limits:\n  - {name: a, kind: leaky, capacity: 1}\n":              "w.yaml:2:21: limits[0].kind: \"leaky\" is not known",
		"clock: {start: soon}\n":                                          "w.yaml:1:16: clock.start: this is no instant",
		"seed: -1\n":                                                      "w.yaml:1:7: seed: this is no seed",
		"rate: 5/s\npenalty: 10m\npenalty_max: 30s\n":                     "w.yaml:2:10: penalty: penalty 10m0s does not fit under its maximum 30s; give 0 for none",
		"webhooks: [nowhere]\n":                                           "w.yaml:1:12: webhooks[0].url: a webhook needs a URL",
		"webhooks: [{url: \"http://h/\", evnts: []}]\n":                   "w.yaml:1:31: webhooks[0].evnts: the key is not known here; did you mean events?",
		"steps:\n  webhook job.*: 503\n":                                  "w.yaml:2:18: steps.webhook job.*: \"503\" is no step of a webhook; use ok, lost",
		"seed: 1\nbegin:\n  - POST /nowhere\n":                            "w.yaml:3:5: begin[0].do: POST /nowhere: no pack has such an operation",
		"begin:\n  - {do: POST /v1/charges}\n":                            "w.yaml:2:5: begin[0]: POST /v1/charges: refused with 400",
		"begin: [{do: GET /health, body: 1, form: {}}]\n":                 "w.yaml:1:42: begin[0].form: there is a body already",
		"begin: [{do: GET /health, form: x}]\n":                           "w.yaml:1:33: begin[0].form: a value stands where a mapping belongs",
		"limits: [{name: a, capacity: 1, refill: 1/s, routes: [nope]}]\n": "w.yaml:1:55: limits[0].routes[0]: route \"nope\" is none: a path begins with /; write a method",
	} {
		_, err := scenario.Read("w.yaml", []byte(text), pack.Named)
		if _, ok := errors.AsType[*scenario.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestALimitThatCannotBeReadIsOneProblem(t *testing.T) {
	for _, text := range []string{
		"limits:\n  - {name: a, kind: leaky, capacity: 2}\n",
		"limits:\n  - {name: a, kind: fixed_window, capacity: 2, window: soon}\n",
		"limits:\n  - {name: a, kind: fixed_window, window: 1m}\n",
		"limits:\n  - {name: a, kind: fixed_window, capacity: 2}\n",
	} {
		_, err := scenario.Read("w.yaml", []byte(text), pack.Named)
		e, ok := errors.AsType[*scenario.Error](err)
		if !ok {
			t.Errorf("%q: got %v, want a problem", text, err)
			continue
		}
		if n := len(e.Problems); n != 1 {
			t.Errorf("%q: got %d problems, want 1: %v", text, n, err)
		}
	}
}

func TestTheSchemaIsJSONAndNamesEveryKey(t *testing.T) {
	text := scenario.Schema()
	if !json.Valid(text) {
		t.Errorf("got %.200s, want JSON", text)
	}
	for key := range strings.FieldsSeq("packs seed clock steps limits cases webhooks begin fixed_window ban_after") {
		if !strings.Contains(string(text), key) {
			t.Errorf("%s is not in the schema", key)
		}
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	_, err := scenario.Read("w.yaml", []byte("sed: 7\nclock: {stepped: maybe}\nsteps:\n  GET /a: nope\n  GET /b: 503 x0\n"), pack.Named)
	bad, ok := errors.AsType[*scenario.Error](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var lines []int
	for _, p := range bad.Problems {
		lines = append(lines, p.Line)
	}
	if diff := cmp.Diff(lines, []int{1, 2, 4, 5}); diff != "" {
		t.Error(diff)
	}
}

// post sends text to a simulator that reads scenarios.
func post(t *testing.T, a *sim.API, path, text string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(text)))
	return w
}

func reading(t *testing.T) *sim.API {
	t.Helper()
	a, err := sim.New(sim.World{Scenario: scenario.Reader(pack.Named)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAScenarioOverHTTPIsTheWorldOfItsCase(t *testing.T) {
	a := reading(t)
	for range 2 { // a second time too: the case reads on
		alone, _, _ := strings.Cut(whole, "cases:")
		if w := post(t, a, "/t/alpha/_sim/scenario", alone); w.Code != 200 || !strings.Contains(w.Body.String(), `"2026-03-01T12:00:00Z"`) {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	c := a.Case("alpha")
	if got := c.Steps().String(); !strings.HasPrefix(got, "charges.create: 503 x2") || len(c.Webhooks()) != 2 {
		t.Errorf("got %s, %v", got, c.Webhooks())
	}
	if got := a.Case("").Steps().String(); got != "" {
		t.Errorf("the case without a name has %s", got)
	}
}

func TestABadScenarioOverHTTPSaysWhereAndChangesNothing(t *testing.T) {
	a := reading(t)
	post(t, a, "/_sim/steps", "GET /health: 503")
	w := post(t, a, "/_sim/scenario", "sed: 7\nsteps: {GET /a: nope}\n")
	var told struct{ Problems []struct{ Line, Column int } }
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code != 400 || len(told.Problems) != 2 || told.Problems[1].Line != 2 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if got := a.Case("").Steps().String(); got != "GET /health: 503\n" {
		t.Errorf("the steps are now %s", got)
	}
}

func TestASimulatorWithoutAReaderRefusesScenarios(t *testing.T) {
	a, err := sim.New(sim.World{})
	if err != nil {
		t.Fatal(err)
	}
	if w := post(t, a, "/_sim/scenario", "seed: 7"); w.Code != 400 {
		t.Errorf("got %d", w.Code)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Add("steps:\n  GET /a:\n    - {step: golden, text: x}\n")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := scenario.Read("w.yaml", []byte(text), pack.Named)
		if err != nil {
			if e, ok := errors.AsType[*scenario.Error](err); !ok || len(e.Problems) == 0 {
				t.Fatalf("an error without a problem: %v", err)
			}
			return
		}
		if _, err := sim.New(w); err != nil {
			t.Errorf("a world that cannot be: %v", err)
		}
	})
}

func TestAProblemOfACaseIsPlacedInTheCase(t *testing.T) {
	_, err := scenario.Read("w.yaml", []byte("packs: [generic]\nsteps:\n  GET /v1/bibs: ok\ncases:\n  alpha:\n    steps:\n      no.operation: 503\n"), pack.Named)
	bad, ok := errors.AsType[*scenario.Error](err)
	if !ok || len(bad.All()) != 1 || bad.All()[0].Line != 7 {
		t.Errorf("got %v", err)
	}
}

// told are the places and keys of all problems.
func told(t *testing.T, text string) (all []string) {
	t.Helper()
	_, err := scenario.Read("w.yaml", []byte(text), pack.Named)
	bad, ok := errors.AsType[*scenario.Error](err)
	if !ok {
		t.Fatalf("got %v, want problems", err)
	}
	for _, p := range bad.Problems {
		if p.Remedy == "" {
			t.Errorf("%v has no remedy", p)
		}
		all = append(all, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Path))
	}
	return all
}

func TestProblemsOfKeysAndOfTheWorldAreToldInOneRound(t *testing.T) {
	got := told(t, `sed: 7
rate: fast
penalty: 1m
clock: {scale: 60, stepped: true}
steps:
  GET /v1/bibs: nope, 503 x0, 429(aftr=1s, date=soon)
  bibs.gte: nay
  GET /health:
    - nope
    - {step: 503, times: 0}
    - {stop: 1}
    - reset(now)
webhooks:
  - nowhere
  - {url: "http://h/", events: [charge.*, nope.*]}
begin:
  - {do: POST}
  - POST /nowhere
limits:
  - {name: a, kind: fixed_window, capacity: 2, routes: [nope, GET /v1/nope, "GET /v1/**"]}
  - {name: a, capacity: 1, refill: 1/s}
cases:
  "a b": {steps: {GET /health: nope}}
`)
	want := []string{
		"1:1 sed", "2:7 rate", "4:16 clock.scale",
		"6:17 steps.GET /v1/bibs", "6:27 steps.GET /v1/bibs", "6:35 steps.GET /v1/bibs", "6:49 steps.GET /v1/bibs",
		"7:3 steps.bibs.gte", "7:13 steps.bibs.gte",
		"9:7 steps.GET /health[0]", "10:7 steps.GET /health[1]", "11:7 steps.GET /health[2]", "12:13 steps.GET /health[3]",
		"14:5 webhooks[0].url", "15:43 webhooks[1].events[1]",
		"17:10 begin[0].do", "18:5 begin[1].do",
		"20:5 limits[0].window", "20:57 limits[0].routes[0]", "20:63 limits[0].routes[1]", "21:12 limits[1].name",
		"23:3 cases.a b", "23:32 cases.a b.steps.GET /health",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestWhereAPackIsNotThereNothingIsSaidOfWhatItMayHave(t *testing.T) {
	got := told(t, "packs: [strype, generic, generic]\nsteps: {charges.create: 503, GET /a: nope}\nwebhooks: [{url: x, events: [charge.refunded]}]\n")
	if diff := cmp.Diff(got, []string{"1:9 packs[0]", "1:26 packs[2]", "2:38 steps.GET /a", "3:18 webhooks[0].url"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestTheWorldOfOneCaseMayNotTellOfOthers(t *testing.T) {
	a := reading(t)
	post(t, a, "/t/alpha/_sim/steps", "GET /health: 503")
	w := post(t, a, "/t/alpha/_sim/scenario", "seed: 3\ncases: {beta: {steps: {GET /health: ok}}}\nmax_cases: 5\n")
	var got struct{ Problems []struct{ Line, Column int } }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 400 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff(got.Problems, []struct{ Line, Column int }{{2, 8}, {3, 12}}); diff != "" {
		t.Error(diff)
	}
	if got := a.Case("alpha").Steps().String(); got != "GET /health: 503\n" {
		t.Errorf("the steps are now %s", got)
	}
}
