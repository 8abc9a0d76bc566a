package sim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

// planning is a pack that takes its steps from a header of the request.
func planning(t *testing.T, w sim.World) *sim.API {
	t.Helper()
	w.Packs = []sim.Pack{{
		Name: "planning", MaxBody: 2 << 20,
		Script: func(x *sim.Exchange) string { return x.Request.Header.Get("Plan") },
		Operations: []sim.Operation{{Route: "POST /echo", Do: func(x *sim.Exchange) sim.Answer {
			return sim.JSON(200, len(x.Body))
		}}},
	}}
	return api(t, w)
}

func TestAPackMayPlanTheStepOfARequest(t *testing.T) {
	a := planning(t, sim.World{})
	if got := ask(a, "POST", "/echo", "", "Plan: 503").Code; got != 503 {
		t.Errorf("got %d, want 503", got)
	}
	if got := ask(a, "POST", "/echo", "").Code; got != 200 {
		t.Errorf("got %d without a plan, want 200", got)
	}
	if got := a.Journal().Entries[0].Step; got != "503" {
		t.Errorf("got step %q in the journal, want 503", got)
	}
}

func TestTheStepsOfTheCaseComeBeforeThePlanOfThePack(t *testing.T) {
	a := planning(t, sim.World{Steps: "POST /echo: 500, ok"})
	var got []int
	for range 3 {
		got = append(got, ask(a, "POST", "/echo", "", "Plan: 503").Code)
	}
	if diff := cmp.Diff(got, []int{500, 200, 503}); diff != "" {
		t.Error(diff)
	}
}

func TestAPlanThatIsNoStepIsToldToTheCaller(t *testing.T) {
	a := planning(t, sim.World{})
	for _, plan := range []string{"explode", "503, 503", "503 x"} {
		w := ask(a, "POST", "/echo", "", "Plan: "+plan)
		if w.Code != 500 || !strings.Contains(w.Body.String(), "the pack planning plans no step") {
			t.Errorf("%q: got %d %s", plan, w.Code, w.Body)
		}
	}
}

func TestAPackSaysHowLargeABodyMayBe(t *testing.T) {
	a := planning(t, sim.World{})
	if got := ask(a, "POST", "/echo", strings.Repeat("x", 2<<20)).Code; got != 200 {
		t.Errorf("got %d for as much as it takes, want 200", got)
	}
	if w := ask(a, "POST", "/echo", strings.Repeat("x", 2<<20+1)); w.Code != 413 || !strings.Contains(w.Body.String(), "2097152 bytes") {
		t.Errorf("got %d %s for a byte more, want 413", w.Code, w.Body)
	}
}
