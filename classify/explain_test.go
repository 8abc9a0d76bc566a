package classify

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/hint"
)

func TestExplainSaysWhatDidNotHold(t *testing.T) {
	no := false
	x := answer("GET", 429, "X-A", "1").body("application/json; charset=utf-8", `{"error":{"code":"canary"}}`)
	for _, row := range []struct {
		name string
		when Match
		want string
	}{
		{"status", Match{Statuses: []StatusRange{{503, 503}, {500, 599}, {200, 204}}}, "status 429 is not 503 or 5xx or 200-204"},
		{"failure", Match{Failures: []Failure{Refused}}, "the attempt did not fail that way"},
		{"method", Match{Methods: []string{"PUT", "POST"}}, "GET is not PUT or POST"},
		{"path", Match{Paths: []string{"/v2/**"}}, "the path is not /v2/**"},
		{"what was asked for", Match{Asked: []string{"text/csv"}}, "the request accepts more than text/csv, or does not say"},
		{"media", Match{Media: []string{"text/*"}}, "the media type application/json is not text/*"},
		{"the media that is expected", Match{NotMedia: []string{"*/json"}}, "the media type application/json is expected, or there is no body"},
		{"a kind of body", Match{XML: &XMLMatch{Names: []string{"a"}}}, "the media type application/json cannot hold what the rule looks for"},
		{"header", Match{Header: []HeaderMatch{{Name: "x-b"}}}, "header X-B is absent"},
		{"header that must not be", Match{Header: []HeaderMatch{{Name: "x-a", Present: &no}}}, "header X-A is there"},
		{"value of a header", Match{Header: []HeaderMatch{{Name: "x-a", Value: re("^2$")}}}, "header X-A does not match ^2$"},
		{"body", Match{Body: BodyHTML}, "the body is not html"},
		{"text", Match{Text: re("nope")}, "the text has no nope"},
		{"path in the body", Match{JSON: []JSONMatch{{Path: dotted("data")}}}, "the path is absent"},
		{"value in the body", Match{JSON: []JSONMatch{{Path: dotted("error.code"), Value: re("^x$")}}}, "no value of the path matches ^x$"},
		{"absence in the body", Match{JSON: []JSONMatch{{Path: dotted("error.code"), Absent: true}}}, "the path is there"},
		{"nothing", Match{Statuses: statuses(429, 429)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := rules(t, Rule{ID: "it", When: row.when, Then: Verdict{Class: Throttled}})
			got := c.Explain(x).Steps
			if diff := cmp.Diff(got, []Step{{Rule: "it", Held: row.want == "", Why: row.want}}); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestExplainSaysWhereAWaitStands(t *testing.T) {
	x := answer("GET", 429, "X-Wait", "7").body("application/json", `{"wait":9,"at":"2026-07-15T02:20:00Z"}`)
	for _, row := range []struct {
		name string
		then time.Duration
		w    Wait
		want time.Duration
		from string
	}{
		{"a header", 0, sources(Source{Header: "x-wait", Format: hint.Seconds}), 7 * time.Second, "header X-Wait"},
		{"the body", 0, sources(Source{Path: dotted("wait"), Format: hint.Seconds}), 9 * time.Second, "json the path"},
		{"prose", 0, sources(Source{Text: regexp.MustCompile("wait.:([0-9]+)"), Format: hint.Seconds}), 9 * time.Second, "text wait.:([0-9]+)"},
		{"a formula", 0, sources(Source{Calc: formula("w*2"), Vars: map[string]Selector{"w": dotted("wait")}}), 18 * time.Second, "calc w*2"},
		{"the calendar", 0, sources(Source{Calendar: &Calendar{Every: Hourly, In: time.UTC}}), 46 * time.Minute, "the next hour"},
		{"a constant of the verdict", time.Minute, sources(Source{Header: "x-wait", Format: hint.Seconds}), time.Minute, "then.wait"},
		{"a floor", 0, sources(Source{Header: "x-none", Format: hint.Seconds, Floor: time.Second}), time.Second, "the floor"},
		{"nowhere", 0, sources(Source{Header: "x-none", Format: hint.Seconds}), 0, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := rules(t, Rule{ID: "it", When: Match{Statuses: statuses(429, 429)}, Then: Verdict{Class: Throttled, Wait: row.then}, Wait: row.w})
			e := c.Explain(x)
			if diff := cmp.Diff([]any{e.Wait, e.From}, []any{row.want, row.from}); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
			if got := c.Classify(x, nil).Wait; got != row.want {
				t.Errorf("Classify: got %v, want %v", got, row.want)
			}
		})
	}
}

var re = regexp.MustCompile
