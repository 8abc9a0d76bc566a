package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

// standing is a case whose clock stands still, and which answers GET stale.
func standing(t *testing.T, step string) *sim.API {
	return api(t, sim.World{Clock: sim.Clock{Stepped: true}, Steps: "GET /v1/**: " + step + " x100"})
}

func TestAStaleAnswerIsWhatTheResourceWasBeforeItsLastWrite(t *testing.T) {
	a := standing(t, "stale")
	title := func() string {
		body := ask(a, "GET", "/v1/bibs/7", "").Body.String()
		_, body, _ = strings.Cut(body, `"title":"`)
		body, _, _ = strings.Cut(body, `"`)
		return body
	}
	first := title()
	got := []string{}
	for _, to := range []string{"One", "Two", "Three"} {
		ask(a, "PUT", "/v1/bibs/7", `{"title":"`+to+`","author":"A"}`)
		got = append(got, title())
	}
	if diff := cmp.Diff(got, []string{first, "One", "Two"}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasMadeIsNotThereInAStaleAnswerUntilItsAgeHasPassed(t *testing.T) {
	a := standing(t, "stale(age=10s)")
	path := ask(a, "POST", "/v1/charges", coffee).Header().Get("Location")
	got := []int{ask(a, "GET", path, "").Code}
	a.Case("").Advance(10 * time.Second)
	w := ask(a, "GET", path, "")
	if got = append(got, w.Code); w.Header().Get("Age") != "10" {
		t.Errorf("got Age %s", w.Header().Get("Age"))
	}
	if diff := cmp.Diff(got, []int{404, 200}); diff != "" {
		t.Error(diff)
	}
	if e := a.Journal().Entries; e[1].Note != "" || e[2].Note == "" {
		t.Errorf("got notes %q and %q, want one where nothing was stale", e[1].Note, e[2].Note)
	}
	if n := a.Effects().Charges; n != 1 {
		t.Errorf("%d charges were made", n)
	}
}

func TestAStaleListLacksWhatWasAddedAndHasWhatWasRemoved(t *testing.T) {
	p := sim.Pack{Name: "shelf", Operations: []sim.Operation{
		{Route: "PUT /things/{id}", Do: func(x *sim.Exchange) sim.Answer {
			sim.Rows[int](x, "things").Put(x.Value("id"), 1)
			return sim.JSON(200, 1)
		}},
		{Route: "DELETE /things/{id}", Do: func(x *sim.Exchange) sim.Answer {
			return sim.JSON(200, sim.Rows[int](x, "things").Delete(x.Value("id")))
		}},
		{Route: "GET /things", Do: func(x *sim.Exchange) sim.Answer {
			all := sim.Rows[int](x, "things")
			ids := []string{}
			for id := range all.All() {
				ids = append(ids, id)
			}
			if len(ids) != all.Len() {
				t.Errorf("got %d things, but Len is %d", len(ids), all.Len())
			}
			return sim.JSON(200, ids)
		}},
	}}
	a := api(t, sim.World{Packs: []sim.Pack{p}, Clock: sim.Clock{Stepped: true}, Steps: "GET /things: ok, stale, ok",
		Begin: []sim.Request{{Do: "PUT /things/a"}, {Do: "PUT /things/b"}}})
	ask(a, "PUT", "/things/c", "")
	ask(a, "DELETE", "/things/a", "")
	var got []string
	for range 3 {
		got = append(got, strings.TrimSpace(ask(a, "GET", "/things", "").Body.String()))
	}
	if diff := cmp.Diff(got, []string{`["b","c"]`, `["b","a"]`, `["b","c"]`}); diff != "" {
		t.Error(diff)
	}
}
