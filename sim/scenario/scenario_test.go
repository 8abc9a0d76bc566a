package scenario_test

import (
	"encoding/json"
	"errors"
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
	}
	if diff := cmp.Diff(w, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestWhatIsWrongIsToldWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"sed: 7\n":                                    "w.yaml:1:1: sed: the key is not known here; did you mean seed?",
		"packs: [strype]\n":                           "w.yaml:1:8: packs: there is no pack",
		"steps: 503\n":                                "w.yaml:1:8: steps: a value stands where a mapping belongs",
		"steps:\n  GET /a: 503, nope\n":               "w.yaml:2:16: steps.GET /a: \"nope\" is no step",
		"steps:\n  get /a: 503\n":                     "w.yaml:2:3: steps.get /a: \"get\" is no method",
		"steps:\n  GET /a:\n    - {stop: 503}\n":      "w.yaml:3:7: steps.GET /a[0]: the step is missing",
		"steps:\n  GET /a: ok\n  bibs.gte: 503\n":     "w.yaml:3:3: steps: no pack has an operation \"bibs.gte\"",
		"cases:\n  a:\n    steps: {bibs.gte: 503}\n":  "w.yaml:3:13: steps: no pack has an operation \"bibs.gte\"",
		"limits:\n  - {name: a, capacity: 2}\n":       "w.yaml:2:5: limits[0]: limit \"a\": a refill of 0",
		"limits:\n  - {name: a, kind: leaky}\n":       "w.yaml:2:21: limits[0].kind: \"leaky\" is not known",
		"clock: {start: soon}\n":                      "w.yaml:1:16: clock.start: this is no instant",
		"seed: -1\n":                                  "w.yaml:1:7: seed: this is no seed",
		"rate: 5/s\npenalty: 10m\npenalty_max: 30s\n": "w.yaml:1:",
	} {
		_, err := scenario.Read("w.yaml", []byte(text), pack.Named)
		if _, ok := errors.AsType[*scenario.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestTheSchemaIsJSONAndNamesEveryKey(t *testing.T) {
	text, err := json.Marshal(scenario.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for key := range strings.FieldsSeq("packs seed clock steps limits cases fixed_window ban_after") {
		if !strings.Contains(string(text), key) {
			t.Errorf("%s is not in the schema", key)
		}
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
