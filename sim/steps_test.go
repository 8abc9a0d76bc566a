package sim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

func TestStepsAreReadAndWrittenInOneForm(t *testing.T) {
	const text = `
# a comment
GET   /v1/bibs/*:503 x2 # not a colon and a space
`
	if _, err := sim.ParseSteps(text); err == nil {
		t.Error("a colon without a space was read")
	}
	s, err := sim.ParseSteps("  GET /v1/bibs/*: 503 x2,429( after = 1s ) ,slow(for=1s,upto=2s)x3, ok # then as usual\r\n\n* /a:b/**: reset\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "GET /v1/bibs/*: 503 x2, 429(after=1s), slow(for=1s,upto=2s) x3, ok\n* /a:b/**: reset\n"
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAStepsErrorHasItsPlaceAndRemedy(t *testing.T) {
	for text, want := range map[string][2]int{
		"get /a: ok":                        {1, 1},
		": ok":                              {1, 1},
		"503 x2":                            {1, 1},
		"503, 429(after=1s), ok":            {1, 1},
		"charges.create 503":                {1, 1},
		"GET":                               {1, 4},
		"GET a: ok":                         {1, 5},
		"GET /a/b*: ok":                     {1, 8},
		"GET /**/b: ok":                     {1, 6},
		"GET /a":                            {1, 7},
		"GET /a ok":                         {1, 7},
		"GET /a:":                           {1, 8},
		"GET /a: ":                          {1, 9},
		"GET /a: ok\n\nGET /b: ok,":         {3, 12},
		"GET /a: 50x":                       {1, 9},
		"GET /a: 100":                       {1, 9},
		"GET /a: 0503":                      {1, 9},
		"GET /a: ok reset":                  {1, 12},
		"GET /a: ok(for=1s)":                {1, 12},
		"GET /a: empty(for=1s)":             {1, 15},
		"GET /a: 503(later=1s)":             {1, 13},
		"GET /a: 503(after)":                {1, 18},
		"GET /a: 503(after=soon)":           {1, 19},
		"GET /a: 503(after=-1s)":            {1, 19},
		"GET /a: 503(after=99999h)":         {1, 19},
		"GET /a: 503(after=1s":              {1, 21},
		"GET /a: 503(after=1s, after=2s)":   {1, 23},
		"GET /a: 429(remaining=1s)":         {1, 23},
		"GET /a: 429(remaining=-1)":         {1, 23},
		"GET /a: 429(remaining=1, reset=1)": {1, 32},
		"GET /a: 429(reset=1s, remaining)":  {1, 32},
		"GET /a: 503 x0":                    {1, 13},
		"GET /a: 503 x-1":                   {1, 13},
		"GET /a: 503 x99999999999999999999": {1, 13},
		"GET /ü/é: nein":                    {1, 11},
	} {
		_, err := sim.ParseSteps(text)
		var bad *sim.Error
		if !errors.As(err, &bad) {
			t.Errorf("%q: got %v, want an error at %v", text, err, want)
			continue
		}
		if got := [2]int{bad.Problems[0].Line, bad.Problems[0].Column}; got != want || len(bad.Problems) != 1 || bad.Problems[0].Message == "" || bad.Problems[0].Remedy == "" {
			t.Errorf("%q: got %v %v, want %v", text, got, err, want)
		}
	}
}

func TestStepsAloneAreToldWhatALineOfStepsLooksLike(t *testing.T) {
	for _, text := range []string{"503 x2", "  503", "charges.create 503 x2", "ok # GET /a: 503"} {
		_, err := sim.ParseSteps(text)
		if err == nil || strings.Contains(err.Error(), "no method") || !strings.Contains(err.Error(), "GET /v1/items/*: 503 x2, ok") {
			t.Errorf("%q: got %v, want the error to show a line of steps", text, err)
		}
	}
	for _, line := range []string{"GET /v1/items/*: 503 x2, ok", "charges.create: 503", "* /**: 503 x2"} { // as it says
		if _, err := sim.ParseSteps(line); err != nil {
			t.Error(err)
		}
	}
}

func TestATooLongScriptIsRefused(t *testing.T) {
	if _, err := sim.ParseSteps(strings.Repeat("#", 1<<20)); err == nil {
		t.Error("no error")
	}
}

func FuzzParseSteps(f *testing.F) {
	f.Add("GET /v1/bibs/*: 503 x2, 429(after=1s), ok")
	f.Add("* /{a}/{b...}: slow(for=1s, upto=2s), hang, truncate x9 # done\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := sim.ParseSteps(text)
		if err != nil {
			var bad *sim.Error
			if !errors.As(err, &bad) || bad.Problems[0].Line < 1 || bad.Problems[0].Column < 1 {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		again, err := sim.ParseSteps(s.String())
		if err != nil {
			t.Fatalf("%q is not read again: %v", s, err)
		}
		if diff := cmp.Diff(s.String(), again.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAStepCanTellTheQuota(t *testing.T) {
	h := ask(api(t, sim.World{Steps: "GET /v1/bibs/*: 429(remaining=0, reset=1500ms)"}), "GET", "/v1/bibs/1", "").Header()
	if got := h.Get("X-RateLimit-Remaining") + " in " + h.Get("X-RateLimit-Reset"); got != "0 in 2" {
		t.Errorf("got %q, want 0 left until 2 s have passed", got)
	}
}
