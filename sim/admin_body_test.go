package sim_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

// told are the places and keys of all problems that an admin page tells.
func told(t *testing.T, a *sim.API, page, body string) (all []string) {
	t.Helper()
	w := ask(a, "POST", page, body)
	var got struct {
		Detail   string
		Problems []struct {
			Line, Column          int
			Path, Message, Remedy string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 400 || got.Detail == "" {
		t.Fatalf("%s: got %d %s", body, w.Code, w.Body)
	}
	for _, p := range got.Problems {
		if p.Message == "" || p.Remedy == "" {
			t.Errorf("%s: got %+v, want a message and a remedy", body, p)
		}
		all = append(all, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Path))
	}
	return all
}

func TestEveryProblemOfAnAdminPageIsToldWithItsPlace(t *testing.T) {
	for _, tt := range []struct {
		page, body string
		want       []string
	}{
		{"/_sim/clock", "", []string{"1:1 "}},
		{"/_sim/clock", "{\n  \"advanse\": \"90s\"\n}", []string{"2:3 advanse", "1:1 advance"}},
		{"/_sim/clock", `{"advance": "soon", "é": 1, "x": 2}`, []string{"1:13 advance", "1:21 é", "1:29 x"}},
		{"/_sim/clock", `{"advance": "999999h"}`, []string{"1:13 advance"}},
		{"/_sim/clock", `{"advance": 90}`, []string{"1:13 advance"}},
		{"/_sim/clock", `{"advance": "1s"`, []string{"1:17 "}},
		{"/_sim/clock", `{"advance": "1s"} {}`, []string{"1:18 "}},
		{"/_sim/clock", `{"advance": "1s", "advance": "2s"}`, []string{"1:28 "}},
		{"/_sim/clock", `["1s"]`, []string{"1:1 "}},
		{"/_sim/webhooks", "{\"evnts\": [],\n \"url\": \"x\", \"delay\": \"soon\", \"events\": [\"charge.*\", \"nope.*\"]}",
			[]string{"1:2 evnts", "2:23 delay", "2:9 url", "2:54 events[1]"}},
		{"/_sim/webhooks", `{"url": "http://h/", "pack": "strype"}`, []string{"1:30 pack"}},
		{"/_sim/steps", "GET /health: nope, 503 x0\nget /a: ok\n\nbibs.gte: 503(aftr=1s)", []string{"1:14 steps", "1:24 steps", "2:1 steps", "4:1 steps", "4:15 steps"}},
	} {
		if diff := cmp.Diff(told(t, api(t, sim.World{}), tt.page, tt.body), tt.want); diff != "" {
			t.Errorf("%s: %s (-got +want):\n%s", tt.page, tt.body, diff)
		}
	}
}

func TestWhatAnAdminPageRefusesChangesNothing(t *testing.T) {
	a := api(t, sim.World{Clock: sim.Clock{Stepped: true}, Steps: "GET /health: 503"})
	before := a.Case("").Now()
	told(t, a, "/_sim/clock", `{"advance": "90s", "x": 1}`)
	told(t, a, "/_sim/webhooks", `{"url": "http://127.0.0.1:9/", "x": 1}`)
	told(t, a, "/_sim/steps", "GET /health: 500\nGET /health: nope")
	if now := a.Case("").Now(); !now.Equal(before) {
		t.Errorf("the clock went on by %v", now.Sub(before))
	}
	if n := len(a.Case("").Webhooks()); n != 0 {
		t.Errorf("%d webhooks are registered", n)
	}
	if got := a.Case("").Steps().String(); got != "GET /health: 503\n" {
		t.Errorf("the steps are now %s", got)
	}
}

func FuzzAnAdminBody(f *testing.F) {
	f.Add(`{"url": "http://h/", "events": ["a", null, 1e3, {"x": []}], "delay": "5s"}`)
	f.Add("{\"advance\"\n:\t\"90s\"}")
	f.Fuzz(func(t *testing.T, body string) {
		a := api(t, sim.World{Clock: sim.Clock{Stepped: true}})
		for _, page := range []string{"/_sim/clock", "/_sim/webhooks"} {
			if w := ask(a, "POST", page, body); w.Code/100 != 2 && w.Code != 400 {
				t.Errorf("got %d %s", w.Code, w.Body)
			} else if w.Code/100 == 2 && !json.Valid([]byte(body)) {
				t.Errorf("%s took %q", page, body)
			}
		}
	})
}
