package sim_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

func TestStepsSetOverHTTPBeginAnew(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /health: 503"})
	statuses(a, "/health", 2)
	w := ask(a, "POST", "/_sim/steps", "GET /health: 500,ok")
	if w.Code != 200 || w.Body.String() != "GET /health: 500, ok\n" {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff([]int{500, 200}, statuses(a, "/health", 2)); diff != "" {
		t.Error(diff)
	}
}

func TestABadScriptOverHTTPSaysWhereAndChangesNothing(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /health: 503"})
	w := ask(a, "POST", "/_sim/steps", "GET /health: 500\nGET /nowhere: nope")
	var p struct{ Line, Column int }
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if w.Code != 400 || p.Line != 2 || p.Column != 15 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff([]int{503, 200}, statuses(a, "/health", 2)); diff != "" {
		t.Error(diff)
	}
}

func TestResetForgetsWhatHappened(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /health: 503"})
	statuses(a, "/health", 2)
	ask(a, "POST", "/v1/charges", coffee)
	if w := ask(a, "POST", "/_sim/reset", ""); w.Code != 204 {
		t.Fatalf("got %d", w.Code)
	}
	if j := a.Journal(); j.Requests != 0 || !cmp.Equal(a.Effects(), sim.Effects{}) {
		t.Errorf("got %+v %+v", j, a.Effects())
	}
	if diff := cmp.Diff([]int{503, 200}, statuses(a, "/health", 2)); diff != "" {
		t.Error(diff)
	}
}

func TestTheJournalIsBoundedAndSaysWhatItDropped(t *testing.T) {
	a := api(t, sim.World{JournalSize: 3})
	for i := range 5 {
		ask(a, "GET", fmt.Sprintf("/v1/bibs/%d", i+1), "")
	}
	j := a.Journal()
	var got []string
	for _, e := range j.Entries {
		got = append(got, fmt.Sprintf("%d %s %d %t", e.Seq, e.Path, e.Status, e.Open))
	}
	if diff := cmp.Diff([]string{"3 /v1/bibs/3 200 false", "4 /v1/bibs/4 200 false", "5 /v1/bibs/5 200 false"}, got); diff != "" {
		t.Error(diff)
	}
	if j.Requests != 5 || j.Dropped != 2 {
		t.Errorf("got %d requests, %d dropped", j.Requests, j.Dropped)
	}
}

func TestTheJournalTellsStepsKeysAndBodiesButNoSecret(t *testing.T) {
	a := api(t, sim.World{Steps: "POST /v1/charges: 503, ok"})
	for range 2 {
		ask(a, "POST", "/v1/charges?token=hunter2", coffee, "X-Api-Key: hunter2", "Idempotency-Key: hunter2")
	}
	w := ask(a, "GET", "/_sim/journal", "")
	if strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("a secret is told: %s", w.Body)
	}
	var j sim.Journal
	if err := json.Unmarshal(w.Body.Bytes(), &j); err != nil {
		t.Fatal(err)
	}
	if len(j.Entries) != 2 {
		t.Fatalf("got %d entries", len(j.Entries))
	}
	first, second := j.Entries[0], j.Entries[1]
	if first.Step != "503" || second.Step != "ok" || second.Attempt != 2 || first.Operation != "POST /v1/charges" {
		t.Errorf("got %+v, %+v", first, second)
	}
	if first.Key == "" || first.Key != second.Key || first.Body == "" || first.Body != second.Body || first.BytesIn != len(coffee) {
		t.Errorf("got %+v, %+v", first, second)
	}
}

func TestEffectsAreToldOverHTTP(t *testing.T) {
	a := api(t, sim.World{})
	ask(a, "POST", "/v1/charges", coffee)
	var got sim.Effects
	if err := json.Unmarshal(ask(a, "GET", "/_sim/effects", "").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sim.Effects{Charges: 1, Amount: 350, Kinds: map[string]sim.Effect{"charge": {Count: 1, Amount: 350}}}, got); diff != "" {
		t.Error(diff)
	}
}
