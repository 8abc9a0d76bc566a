package sim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

var furnished = sim.World{
	Steps: "PUT /v1/bibs/7: 503",
	Begin: []sim.Request{
		{Do: "PUT /v1/bibs/7", Body: `{"title":"It was there","author":"A"}`},
		{Do: "POST /v1/charges", Body: coffee},
	},
}

func TestACaseBeginsWithItsResourcesAndWithoutAHistory(t *testing.T) {
	a := api(t, furnished)
	for _, id := range []string{"", "alpha"} {
		c := a.Case(id)
		if got := c.Effects(); got.Charges != 0 || c.Journal().Requests != 0 {
			t.Errorf("%q has a history: %+v", id, got)
		}
		if w := ask(a, "GET", "/v1/bibs/7", "", "Sim-Case: "+id); !strings.Contains(w.Body.String(), "It was there") {
			t.Errorf("%q: got %s", id, w.Body)
		}
	}
	a.Reset()
	if w := ask(a, "GET", "/v1/bibs/7", ""); !strings.Contains(w.Body.String(), "It was there") {
		t.Errorf("after a reset: got %s", w.Body)
	}
}

func TestAResourceFromTheBeginningSharesNoIDWithALaterOne(t *testing.T) {
	a := api(t, sim.World{Begin: []sim.Request{furnished.Begin[1], furnished.Begin[1]}})
	b := api(t, sim.World{})
	seen := map[string]int{}
	for range 3 {
		seen[ask(a, "POST", "/v1/charges", coffee).Header().Get("Location")]++
	}
	if len(seen) != 3 {
		t.Errorf("got %v", seen)
	}
	if diff := cmp.Diff(seen[ask(b, "POST", "/v1/charges", coffee).Header().Get("Location")], 1); diff != "" {
		t.Error("the ids of a case change with what it begins with")
	}
}

func TestAWorldThatCannotBeginSaysWhere(t *testing.T) {
	for do, want := range map[string]string{
		"POST /v1/charges": "begin[1]: POST /v1/charges: refused with 400",
		"POST /nowhere":    "begin[1].do: POST /nowhere: no pack has such an operation",
		"/v1/charges":      "begin[1].do: \"/v1/charges\" is no method and path",
		"PO ST /v1":        "begin[1].do: \"PO ST /v1\" is no method and path",
	} {
		_, err := sim.New(sim.World{Begin: []sim.Request{furnished.Begin[0], {Do: do}}})
		if bad, ok := errors.AsType[*sim.Error](err); !ok || len(bad.Problems) != 1 || !strings.HasPrefix(bad.Problems[0].String(), want) {
			t.Errorf("%s: got %v", do, err)
		}
	}
}

func TestACaseBeginsAnewInAWorldOfItsOwn(t *testing.T) {
	a := api(t, sim.World{})
	ask(a, "POST", "/t/one/v1/charges", coffee)
	if _, err := a.Begin("one", sim.World{Packs: []sim.Pack{subscribing()}, Steps: "POST /push: 503"}); err != nil {
		t.Fatal(err)
	}
	got := []int{
		ask(a, "POST", "/t/one/push", "").Code, ask(a, "POST", "/t/one/v1/charges", coffee).Code,
		ask(a, "POST", "/push", "").Code, ask(a, "POST", "/t/two/v1/charges", coffee).Code,
		ask(a, "POST", "/push", "", "Authorization: Bearer x_case_one").Code,
	}
	if diff := cmp.Diff(got, []int{503, 404, 404, 201, 503}); diff != "" {
		t.Error(diff)
	}
	if e := a.Case("one").Effects(); e.Charges != 0 {
		t.Errorf("got %+v", e)
	}
}

func TestTheWorldOfTheCaseWithoutANameIsThatOfCasesToCome(t *testing.T) {
	a := api(t, sim.World{})
	ask(a, "GET", "/t/old/health", "")
	if _, err := a.Begin("", sim.World{Steps: "GET /health: 503"}); err != nil {
		t.Fatal(err)
	}
	got := []int{ask(a, "GET", "/health", "").Code, ask(a, "GET", "/t/new/health", "").Code, ask(a, "GET", "/t/old/health", "").Code}
	if diff := cmp.Diff(got, []int{503, 503, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestAWorldThatCannotBeChangesNothing(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /health: 503"})
	for _, id := range []string{"", "one"} {
		if _, err := a.Begin(id, sim.World{Steps: "GET /health: nope"}); err == nil {
			t.Errorf("%q: no error", id)
		}
		if w := ask(a, "GET", "/health", "", "Sim-Case: "+id); w.Code != 503 {
			t.Errorf("%q: got %d", id, w.Code)
		}
	}
}
