package graph_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim/pack/graph"
)

func parse(t *testing.T, text string, variables map[string]any) graph.Document {
	t.Helper()
	d, err := graph.Parse(text, "", variables)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestADocumentIsReadWithAliasesArgumentsAndVariables(t *testing.T) {
	got := parse(t, `# a comment
mutation Make($n: Int = 3, $tags: [String!]!) { made: thing(first: $n, tags: $tags, in: {deep: [1.5, true, null, ASC]}, note: "a\"b") { id } }`,
		map[string]any{"tags": []any{"x"}})
	want := graph.Document{Kind: "mutation", Name: "Make", Fields: []graph.Field{{
		Name: "thing", Alias: "made",
		Args: map[string]any{
			"first": int64(3), "tags": []any{"x"}, "note": `a"b`,
			"in": map[string]any{"deep": []any{1.5, true, nil, "ASC"}},
		},
		Fields: []graph.Field{{Name: "id", Alias: "id", At: graph.Place{Line: 2, Column: 137}}},
		At:     graph.Place{Line: 2, Column: 49},
	}}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestFragmentsAreLaidOpen(t *testing.T) {
	got := parse(t, `{ a { ...F ... on X { y } } } fragment F on X { x }`, nil)
	var names []string
	for _, f := range got.Fields[0].Fields {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff(names, []string{"x", "y"}); diff != "" {
		t.Error(diff)
	}
}

func TestATextInThreeQuotesIsTakenAsItIs(t *testing.T) {
	got := parse(t, `mutation { run(query: """ { a(b: "c") } """) { id } }`, nil)
	if text := got.Fields[0].Text("query"); text != `{ a(b: "c") }` {
		t.Errorf("got %q", text)
	}
}

func TestOfSeveralOperationsTheNamedOneIsTaken(t *testing.T) {
	const two = `query A { a } query B { b }`
	d, err := graph.Parse(two, "B", nil)
	if err != nil || d.Fields[0].Name != "b" {
		t.Errorf("got %+v, %v", d, err)
	}
	if _, err := graph.Parse(two, "", nil); err == nil {
		t.Error("none is named: no error")
	}
}

func TestWhatCannotBeReadIsToldWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"{ a(":                              "[1, 5]",
		"{\n  a(b c)\n}":                    "[2, 7]",
		"subscription { a}":                 "query",
		"{}":                                "empty",
		`{ a(b: "c }`:                       "not ended",
		"{ ...F }":                          "no fragment F",
		"{ ...F } fragment F on X { ...F }": "circle",
		strings.Repeat("{a", 60) + strings.Repeat("}", 60): "deeply",
	} {
		_, err := graph.Parse(text, "", nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to tell %s", text, err, want)
		}
	}
}

var shop = graph.Object{
	"name": "x",
	"items": graph.Resolver(func(f graph.Field) any {
		return graph.Connection(f, []graph.Object{{"id": 1}, {"id": 2}, {"id": 3}}, func(i int) string { return "c" + strconv.Itoa(i) })
	}),
}

func TestWhatIsAskedForIsPickedUnderItsAlias(t *testing.T) {
	d := parse(t, `{ __typename title: name items(first: 1, after: "c0") { nodes { id } pageInfo { hasNextPage endCursor } } }`, nil)
	got, err := graph.Pick("Shop", shop, d.Fields)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"__typename": "Shop", "title": "x", "items": map[string]any{
		"nodes": []any{map[string]any{"id": 2}}, "pageInfo": map[string]any{"hasNextPage": true, "endCursor": "c1"},
	}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestAFieldThatDoesNotExistIsToldWithItsPath(t *testing.T) {
	_, err := graph.Pick("Shop", shop, parse(t, `{ all: items { nodes { price } } }`, nil).Fields)
	m, ok := errors.AsType[*graph.Missing](err)
	if !ok || m.Field != "price" || strings.Join(m.Path, ".") != "all.nodes.price" || m.At != (graph.Place{Line: 1, Column: 24}) {
		t.Errorf("got %v", err)
	}
}

// A document that was read can be picked from an empty object, which fails or
// gives something for every field.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{a}`, `query Q($x: [Int!]! = [1]) { a: b(c: $x, d: {e: "f"}) { ...G } } fragment G on H { i }`, `mutation{a(b:"""c""")}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := graph.Parse(text, "", nil)
		if err != nil {
			return
		}
		if got, err := graph.Pick("Q", graph.Object{}, d.Fields); err == nil && len(got) == 0 {
			t.Errorf("%q was read as nothing", text)
		}
	})
}

func TestFragmentsThatDoubleAtEveryLevelAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("query { ...F0 }\n")
	for i := range 18 {
		n := strconv.Itoa(i + 1)
		b.WriteString("fragment F" + strconv.Itoa(i) + " on T { a { ...F" + n + " } b { ...F" + n + " } c { ...F" + n + " } d { ...F" + n + " } }\n")
	}
	b.WriteString("fragment F18 on T { id }")
	if _, err := graph.Parse(b.String(), "", nil); err == nil {
		t.Error("4^18 fields were laid open")
	}
}

func TestAPageEndsWithTheListHoweverMuchIsAskedFor(t *testing.T) {
	all := []graph.Object{{"id": "0"}, {"id": "1"}, {"id": "2"}}
	f := graph.Field{Args: map[string]any{"first": int64(math.MaxInt64), "after": "0"}}
	got := graph.Connection(f, all, strconv.Itoa)["nodes"]
	if diff := cmp.Diff(got, any(all[1:])); diff != "" {
		t.Error(diff)
	}
}

func TestAFieldIsFoundBehindSignsOfSeveralBytesAndLines(t *testing.T) {
	got := parse(t, "{ a(x: \"é\") b\n  c }", nil).Fields
	places := []graph.Place{got[0].At, got[1].At, got[2].At}
	if diff := cmp.Diff(places, []graph.Place{{Line: 1, Column: 3}, {Line: 1, Column: 13}, {Line: 2, Column: 3}}); diff != "" {
		t.Error(diff)
	}
}
