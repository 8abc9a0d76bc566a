package classify

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// dotted is a Selector: names, indexes and * with dots between; "" is the root.
type dotted string

func (d dotted) Select(doc any) []any {
	nodes := []any{doc}
	for step := range strings.SplitSeq(string(d), ".") {
		var next []any
		for _, n := range nodes {
			switch n := n.(type) {
			case map[string]any:
				for name, v := range n {
					if step == "*" || step == name {
						next = append(next, v)
					}
				}
			case []any:
				for i, v := range n {
					if step == "*" || step == strconv.Itoa(i) {
						next = append(next, v)
					}
				}
			}
		}
		if step != "" {
			nodes = next
		}
	}
	return nodes
}

func is(s string) *regexp.Regexp { return regexp.MustCompile("^(?:" + s + ")$") }

func statuses(from, to int) []StatusRange { return []StatusRange{{from, to}} }

func rules(t testing.TB, rs ...Rule) *Classifier {
	t.Helper()
	c, ps := New(rs)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	return c
}

func TestRuleGivesItsWholeVerdict(t *testing.T) {
	c := rules(t, Rule{ID: "daily", When: Match{Statuses: statuses(429, 429)},
		Then: Verdict{Class: Throttled, Executed: No, Retry: SameKey, Scope: ScopeKey, Wait: time.Minute, Rule: "ignored"}})
	got := c.Classify(answer("POST", 429), nil)
	want := Verdict{Class: Throttled, Executed: No, Retry: SameKey, Scope: ScopeKey, Wait: time.Minute, Rule: "daily"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestFirstRuleThatHoldsWins(t *testing.T) {
	c := rules(t,
		Rule{ID: "posts", When: Match{Methods: []string{"post"}, Statuses: statuses(500, 599)}, Then: Verdict{Class: Permanent}},
		Rule{ID: "bibs", When: Match{Paths: []string{"/v6/bibs/**"}, Statuses: statuses(500, 500)}, Then: Verdict{Class: Throttled}},
		Rule{ID: "any", When: Match{Statuses: statuses(500, 500)}, Then: Verdict{Class: Overloaded}})
	var got []string
	for _, x := range []*Exchange{
		{Method: "POST", Path: "/v6/bibs/1", Status: 500}, {Method: "GET", Path: "/v6/bibs/1", Status: 500},
		{Method: "GET", Path: "/v6/items", Status: 500}, {Method: "GET", Path: "/v6/items", Status: 502},
	} {
		got = append(got, c.Classify(x, nil).Rule)
	}
	if diff := cmp.Diff(got, []string{"posts", "bibs", "any", "status 502"}); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestHeaderConditions(t *testing.T) {
	yes, no := true, false
	for _, row := range []struct {
		name string
		m    HeaderMatch
		x    *Exchange
		want bool
	}{
		{"there", HeaderMatch{Name: "x-scope"}, answer("GET", 400, "X-Scope", ""), true},
		{"not there", HeaderMatch{Name: "x-scope"}, answer("GET", 400), false},
		{"is there", HeaderMatch{Name: "x-scope", Present: &yes}, answer("GET", 400, "X-Scope", "a"), true},
		{"must not be there, is", HeaderMatch{Name: "X-Scope", Present: &no}, answer("GET", 400, "X-Scope", "a"), false},
		{"must not be there, is not", HeaderMatch{Name: "X-Scope", Present: &no}, answer("GET", 400), true},
		{"value", HeaderMatch{Name: "X-Scope", Value: is("shared")}, answer("GET", 400, "X-Scope", "shared"), true},
		{"value on the second line", HeaderMatch{Name: "X-Scope", Value: is("b")}, answer("GET", 400, "X-Scope", "a", "X-Scope", "b"), true},
		{"other value", HeaderMatch{Name: "X-Scope", Value: is("shared")}, answer("GET", 400, "X-Scope", "user"), false},
		{"value that must not be", HeaderMatch{Name: "X-Scope", Value: is("shared"), Present: &no}, answer("GET", 400, "X-Scope", "user"), true},
		{"no answer has no header", HeaderMatch{Name: "X-Scope", Present: &no}, failed(Refused), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := rules(t, Rule{ID: "it", When: Match{Header: []HeaderMatch{row.m}}, Then: Verdict{Class: Throttled}})
			if got := c.Classify(row.x, nil).Rule == "it"; got != row.want {
				t.Errorf("holds %t, want %t", got, row.want)
			}
		})
	}
}

func TestWhatWasAskedFor(t *testing.T) {
	c := rules(t, Rule{ID: "it", When: Match{Asked: []string{"Application/JSON", "*/*+json"}}, Then: Verdict{Class: Invalid}})
	for accept, want := range map[string]bool{
		"application/json": true, "application/vnd.github+json, application/json;q=0.9": true, " APPLICATION/JSON ": true,
		"": false, "*/*": false, "application/json, */*;q=0.1": false, "text/html": false, "application/json,": false,
	} {
		x := answer("GET", 200)
		x.Accept = accept
		if got := c.Classify(x, nil).Rule == "it"; got != want {
			t.Errorf("%q: got %t, want %t", accept, got, want)
		}
	}
}

func TestMediaConditions(t *testing.T) {
	for _, row := range []struct {
		name       string
		media, not []string
		x          *Exchange
		want       bool
	}{
		{"same", []string{"application/json"}, nil, answer("GET", 200, "Content-Type", "application/json; charset=x"), true},
		{"pattern with parameters", []string{"Application/JSON; q=1"}, nil, answer("GET", 200, "Content-Type", "application/json"), true},
		{"another", []string{"application/json"}, nil, answer("GET", 200, "Content-Type", "application/problem+json"), false},
		{"any minor", []string{"image/*"}, nil, answer("GET", 200, "Content-Type", "image/png"), true},
		{"suffix", []string{"*/*+xml"}, nil, answer("GET", 200, "Content-Type", "application/gml+xml;version=3.2"), true},
		{"suffix of another", []string{"*/*+xml"}, nil, answer("GET", 200, "Content-Type", "text/xml"), false},
		{"everything", []string{"*/*"}, nil, answer("GET", 200, "Content-Type", "text/xml"), true},
		{"no type", []string{"*/*"}, nil, answer("GET", 200), false},
		{"blank for a semicolon", []string{"text/xml"}, nil, answer("GET", 200, "Content-Type", "text/xml charset=utf-8"), true},
		{"wrong kind", nil, []string{"image/*"}, answer("GET", 200, "Content-Type", "text/xml"), true},
		{"right kind", nil, []string{"image/*"}, answer("GET", 200, "Content-Type", "image/png"), false},
		{"kind not said", nil, []string{"image/*"}, answer("GET", 200), false},
		{"no body to be wrong", nil, []string{"image/*"}, answer("GET", 204, "Content-Type", "text/xml"), false},
		{"not an answer", nil, []string{"image/*"}, failed(Refused), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := rules(t, Rule{ID: "it", When: Match{Media: row.media, NotMedia: row.not}, Then: Verdict{Class: Invalid}})
			if got := c.Classify(row.x, nil).Rule == "it"; got != row.want {
				t.Errorf("holds %t, want %t", got, row.want)
			}
		})
	}
}

func TestRulesOnFailures(t *testing.T) {
	c := rules(t,
		Rule{ID: "parked name", When: Match{Failures: []Failure{DNSNotFound}}, Then: Verdict{Class: Transient, Executed: No, Retry: Any}},
		Rule{ID: "fine", When: Match{Statuses: statuses(200, 200)}, Then: Verdict{Class: OK, Executed: Yes}},
		Rule{ID: "all", When: Match{Methods: []string{"GET"}}, Then: Verdict{Class: Permanent}})
	got := []string{
		c.Classify(failed(DNSNotFound), nil).Rule,
		c.Classify(failed(Refused), nil).Rule,
		c.Classify(failed(Canceled), nil).Rule, // what the caller did, no rule explains
		c.Classify(&Exchange{Method: "GET", Status: 200, Failure: BodyCut}, nil).Rule,
	}
	if diff := cmp.Diff(got, []string{"parked name", "all", "canceled", "body_cut"}); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestSaidToRetryDoesNotBeatARuleThatSaysNever(t *testing.T) {
	c := rules(t, Rule{ID: "spend limit", When: Match{Statuses: statuses(429, 429)}, Then: Verdict{Class: Permanent}},
		Rule{ID: "busy", When: Match{Statuses: statuses(500, 500)}, Then: Verdict{Class: Transient, Retry: Any}})
	if got := c.Classify(answer("GET", 429, "X-Should-Retry", "true"), nil); got.Retry != Never {
		t.Errorf("got %v, want never", got.Retry)
	}
	if got := c.Classify(answer("GET", 500, "X-Should-Retry", "false"), nil); got.Retry != Never {
		t.Errorf("got %v, want never", got.Retry)
	}
}

func TestPeek(t *testing.T) {
	long := func(x *Exchange, n int64) *Exchange { x.ContentLength = n; return x }
	json200 := Rule{ID: "json", When: Match{Statuses: statuses(200, 200), JSON: []JSONMatch{{Path: dotted("error")}}}}
	text := Rule{ID: "text", When: Match{Statuses: statuses(500, 599), Text: regexp.MustCompile("x")}}
	painted := Rule{ID: "painted", When: Match{Media: []string{"image/png"}, Text: regexp.MustCompile("x")}}
	hollow := Rule{ID: "empty", When: Match{Statuses: statuses(200, 200), Body: BodyEmpty}}
	wait := Rule{ID: "wait", When: Match{Statuses: statuses(429, 429)}, Wait: Wait{Source: Source{Path: dotted("x"), Format: hint.Seconds}}}
	plain := Rule{ID: "plain", When: Match{Statuses: statuses(200, 599)}}
	absence := Rule{ID: "absence", When: Match{Statuses: statuses(200, 200), JSON: []JSONMatch{{Path: dotted("error")}, {Path: dotted("data"), Absent: true}}}}
	posts := Rule{ID: "posts", When: Match{Methods: []string{"POST"}, JSON: []JSONMatch{{Path: dotted("error")}}}}
	for _, row := range []struct {
		name  string
		rules []Rule
		x     *Exchange
		want  int
	}{
		{"no rules", nil, answer("GET", 200, "Content-Type", "application/json"), 0},
		{"no rules, an error", nil, answer("GET", 500, "Content-Type", "application/json"), 0},
		{"JSON", []Rule{json200}, answer("GET", 200, "Content-Type", "application/json"), policy.PeekLimit},
		{"problem JSON", []Rule{json200}, answer("GET", 200, "Content-Type", "application/problem+json"), policy.PeekLimit},
		{"no type", []Rule{json200}, answer("GET", 200), policy.PeekLimit},
		{"XML", []Rule{json200}, answer("GET", 200, "Content-Type", "text/xml"), 0},
		{"a picture", []Rule{json200, text, hollow}, answer("GET", 200, "Content-Type", "image/png"), 0},
		{"a picture that is named", []Rule{painted}, answer("GET", 200, "Content-Type", "image/png"), policy.PeekLimit},
		{"an archive", []Rule{text}, answer("GET", 500, "Content-Type", "application/zip"), 0},
		{"another status", []Rule{json200}, answer("GET", 404, "Content-Type", "application/json"), 0},
		{"another method", []Rule{posts}, answer("GET", 200, "Content-Type", "application/json"), 0},
		{"the same method", []Rule{posts}, answer("POST", 200, "Content-Type", "application/json"), policy.PeekLimit},
		{"HEAD", []Rule{json200}, answer("HEAD", 200, "Content-Type", "application/json"), 0},
		{"no body", []Rule{json200}, long(answer("GET", 200, "Content-Type", "application/json"), 0), 0},
		{"emptiness", []Rule{hollow}, answer("GET", 200, "Content-Type", "text/csv"), sniff},
		{"emptiness of what is long", []Rule{hollow}, long(answer("GET", 200, "Content-Type", "text/csv"), 200<<20), 0},
		{"absence", []Rule{absence}, long(answer("GET", 200, "Content-Type", "application/json"), 64<<10), policy.PeekLimit},
		{"absence in what is long", []Rule{absence}, long(answer("GET", 200, "Content-Type", "application/json"), 64<<10+1), 0},
		{"most of several", []Rule{hollow, json200}, answer("GET", 200, "Content-Type", "application/json"), policy.PeekLimit},
		{"wait", []Rule{wait}, answer("GET", 429, "Content-Type", "application/json"), policy.PeekLimit},
		{"decided before", []Rule{plain, json200}, answer("GET", 200, "Content-Type", "application/json"), 0},
		{"not decided before", []Rule{json200, plain}, answer("GET", 200, "Content-Type", "application/json"), policy.PeekLimit},
		{"a failure", []Rule{posts}, &Exchange{Method: "POST", Status: 200, Failure: BodyCut}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := rules(t, row.rules...).Peek(row.x); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}

func TestNewListsEveryProblem(t *testing.T) {
	_, got := New([]Rule{
		{},
		{When: Match{
			Statuses: []StatusRange{{500, 599}, {599, 500}, {0, 99}}, Methods: []string{"GET, PUT"}, Paths: []string{"bibs"},
			Failures: []Failure{77}, Asked: []string{"html"}, Media: []string{"json"}, NotMedia: []string{"/"}, Header: []HeaderMatch{{}},
			JSON: []JSONMatch{{}, {Path: dotted("a"), Value: is("a"), Absent: true}},
			XML:  &XMLMatch{Value: is("a")}, Body: "blank",
		}, Then: Verdict{Class: 99, Executed: 99, Retry: 99, Scope: 99, Wait: -1}, Wait: Wait{Source: Source{Floor: -1}}},
		{When: Match{Body: BodyEmpty, XML: &XMLMatch{Names: []string{"ows:Exception"}}},
			Wait: Wait{Source: Source{Format: hint.Number, Path: dotted("a"), Text: is("a")}}},
		{When: Match{Statuses: statuses(429, 429)}, Wait: Wait{Source: Source{Calendar: &Calendar{}}, Or: []Source{
			{Calc: formula("a+1"), Vars: map[string]Selector{"b": dotted("b")}},
			{Header: "X-Reset", Format: hint.Seconds, Key: "x", Floor: -1, Ceiling: -1},
			{XML: &XMLValue{Name: "a:b"}},
		}}},
		{When: Match{Body: BodyHTML}, Then: Verdict{Class: OK}, Override: Override{Header: "X:Y"}},
	})
	var paths []string
	for _, p := range got {
		if p.Message == "" || p.Remedy == "" {
			t.Errorf("%s: message %q, remedy %q", p.Path, p.Message, p.Remedy)
		}
		paths = append(paths, p.Path)
	}
	want := []string{
		"rules[0].when",
		"rules[1].when.statuses[1]", "rules[1].when.statuses[2]", "rules[1].when.failures[0]", "rules[1].when.methods[0]",
		"rules[1].when.paths[0]", "rules[1].when.asked[0]", "rules[1].when.media[0]", "rules[1].when.not_media[0]", "rules[1].when.header[0].name",
		"rules[1].when.json[0].path", "rules[1].when.json[1]", "rules[1].when.xml.names",
		"rules[1].when.body", "rules[1].then.class", "rules[1].then.executed", "rules[1].then.retry", "rules[1].then.scope",
		"rules[1].then.wait", "rules[1].wait",
		"rules[2].when.xml.names[0]", "rules[2].when.body", "rules[2].wait", "rules[2].wait.text", "rules[2].wait.format",
		"rules[3].wait[0].calendar.every", "rules[3].wait[1].vars", "rules[3].wait[1].vars.b", "rules[3].wait[2].floor",
		"rules[3].wait[2].ceiling", "rules[3].wait[2].key", "rules[3].wait[3].xml.name", "rules[3].wait[3].format",
		"rules[4].override.header", "rules[4].when", "rules[4].then",
	}
	if diff := cmp.Diff(paths, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestWithProblemsThereIsNoClassifier(t *testing.T) {
	if c, _ := New([]Rule{{}}); c != nil {
		t.Error("there is one")
	}
}

func TestNewLeavesTheRulesAsTheyAre(t *testing.T) {
	in := Rule{When: Match{Methods: []string{"get"}, Media: []string{"Text/XML"}, Header: []HeaderMatch{{Name: "x-a"}}}}
	rules(t, in)
	got := []string{in.ID, in.When.Methods[0], in.When.Media[0], in.When.Header[0].Name}
	if diff := cmp.Diff(got, []string{"", "get", "Text/XML", "x-a"}); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func formula(text string) *Calc {
	c, err := ParseCalc(text)
	if err != nil {
		panic(err)
	}
	return c
}
