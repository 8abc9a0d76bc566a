package sim_test

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

func TestALocationLeadsToWhatWasMadeInItsCase(t *testing.T) {
	a := api(t, sim.World{})
	for before, header := range map[string]string{
		"": "", "/t/j1": "", "/generic": "", "/t/j1/generic": "", "/t/j2": "Sim-Case: j1",
	} {
		for path, body := range map[string]string{"/v1/jobs": "", "/v1/charges": `{"amount":1,"currency":"eur"}`} {
			var headers []string
			if header != "" {
				headers = append(headers, header)
			}
			to := ask(a, "POST", before+path, body, headers...).Header().Get("Location")
			if got := ask(a, "GET", to, "", headers...).Code; got != 200 {
				t.Errorf("%s%s: its Location is %q, where the answer is %d", before, path, to, got)
			}
		}
	}
}

func TestALocationOfAKeptAnswerIsThatOfTheRequest(t *testing.T) {
	a := api(t, sim.World{})
	var got []string
	for _, before := range []string{"/t/j1", "/t/j1/generic"} {
		w := ask(a, "POST", before+"/v1/charges", `{"amount":1,"currency":"eur"}`, "Idempotency-Key: k")
		got = append(got, w.Header().Get("Location"))
	}
	if got[1] != "/t/j1/generic"+got[0][len("/t/j1"):] {
		t.Errorf("got %q", got)
	}
}

func TestAnAddressIsTheOneThatTheCallerReaches(t *testing.T) {
	for asked, want := range map[string]string{
		"/a/b":             "http://example.com/c http://example.com/",
		"/t/case/a/b":      "http://example.com/t/case/c http://example.com/t/case/",
		"/shop/a/b":        "http://example.com/shop/c http://example.com/shop/",
		"/t/case/shop/a/b": "http://example.com/t/case/shop/c http://example.com/t/case/shop/",
		"/shop":            "http://example.com/shop/c http://example.com/shop",
		"/shop/":           "http://example.com/shop/c http://example.com/shop/",
	} {
		var got string
		do := func(x *sim.Exchange) sim.Answer {
			got = x.URL("/c") + " " + x.URL("/")
			return sim.JSON(200, 1)
		}
		a := api(t, sim.World{Packs: []sim.Pack{{Name: "shop", Operations: []sim.Operation{{Route: "GET /a/b", Do: do}, {Route: "GET /", Do: do}}}}})
		a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", asked, nil))
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", asked, diff)
		}
	}
}

func TestALocationOnAnotherHostStaysAsItIs(t *testing.T) {
	for _, to := range []string{"http://other.example/", "//other.example/x", "next", "/t/c/shop/already/there"} {
		a := api(t, sim.World{Packs: []sim.Pack{{Name: "shop", Operations: []sim.Operation{{Route: "GET /", Do: func(*sim.Exchange) sim.Answer {
			return sim.Answer{Status: 302, Fields: [][2]string{{"Location", to}}}
		}}}}}})
		if got := ask(a, "GET", "/t/c/shop/", "").Header().Get("Location"); got != to {
			t.Errorf("got %q, want %q", got, to)
		}
	}
}
