package policy

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestAGlobMatches(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		want       bool
	}{
		{"", "", true},
		{"", "/", false},
		{"/v6/bibs", "/v6/bibs", true},
		{"/v6/bibs", "/v6/bibs/", false},
		{"/v6/*", "/v6/bibs", true},
		{"/v6/*", "/v6/", true},
		{"/v6/*", "/v6/bibs/1", false},
		{"/v6/*/items", "/v6/bibs/items", true},
		{"/v6/*/items", "/v6/bibs/1/items", false},
		{"/v6/**", "/v6/bibs/1/items", true},
		{"/v6/**", "/v5/bibs", false},
		{"/v6/**/items", "/v6/bibs/1/items", true},
		{"/v6/**/items", "/v6/bibs/1/items/2", false},
		{"/**/items/*", "/a/items/b/items/c", true},
		{"/**/items/*", "/a/items/b/c", false},
		{"/a*b*c", "/aXbYbZc", true},
		{"/a*b*c", "/aXb/Zc", false},
		{"*/b", "a/b", true},
		{"***", "/any/thing", true},
		{"**", "", true},
		{"*", "a/b", false},
		{"/*.json", "/a.json.json", true},
		{"/a**b/*c", "/a/x/b/yc/b/zc", true},
		{"/é*", "/éa", true},
	} {
		if got := Match(c.glob, c.path); got != c.want {
			t.Errorf("Match(%q, %q): got %v, want %v", c.glob, c.path, got, c.want)
		}
	}
}

// naive is the definition of a glob, in exponential time; Match must answer the
// same without.
func naive(glob, path string) bool {
	switch {
	case glob == "":
		return path == ""
	case glob[0] != '*':
		return path != "" && path[0] == glob[0] && naive(glob[1:], path[1:])
	}
	rest := strings.TrimLeft(glob, "*")
	deep := len(glob)-len(rest) > 1
	for i := 0; i <= len(path); i++ {
		if naive(rest, path[i:]) {
			return true
		}
		if i < len(path) && path[i] == '/' && !deep {
			return false
		}
	}
	return false
}

// drawn puts up to n of parts together.
func drawn(rng *rand.Rand, n int, parts ...string) string {
	var b strings.Builder
	for range rng.IntN(n + 1) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String()
}

func TestMatchAgreesWithTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for range 50_000 {
		glob, path := drawn(rng, 8, "a", "b", "/", "*", "**"), drawn(rng, 10, "a", "b", "/")
		got, want := Match(glob, path), naive(glob, path)
		if got != want {
			t.Fatalf("Match(%q, %q): got %v, want %v", glob, path, got, want)
		}
		if got {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d of the drawn globs match: the test says little", matched)
	}
}

// Backtracking into every star would take longer than the age of the world.
func TestManyStarsDoNotBlowUp(t *testing.T) {
	path := strings.Repeat("a", 2000)
	for _, star := range []string{"*a", "**a", "**a*a"} {
		glob := strings.Repeat(star, 60) + "b"
		if Match(glob, path) {
			t.Errorf("%.12s…b matches a path without b", glob)
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { Match("/v6/**/items/*", "/v6/bibs/1/items/2") }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("/v6/**/items/*", "/v6/bibs/1/items/2")
	f.Add("*a*a*b", "aaaa/ab")
	f.Fuzz(func(t *testing.T, glob, path string) {
		if len(glob) > 12 || len(path) > 16 {
			t.Skip("the definition takes exponential time")
		}
		if got, want := Match(glob, path), naive(glob, path); got != want {
			t.Fatalf("Match(%q, %q): got %v, want %v", glob, path, got, want)
		}
	})
}

func TestAnEmptyAllowListPermitsEverything(t *testing.T) {
	p := Policy{}
	if !p.Permits("DELETE", "/v6/patrons/1") {
		t.Error("got refused, want permitted")
	}
}

func TestTheAllowListPermitsWhatOneOfItsLinesNames(t *testing.T) {
	p := Policy{Allow: []Allow{
		{Methods: []string{"GET"}},
		{Methods: []string{"POST"}, Path: "/v6/items/**"},
		{Path: "/status"},
	}}
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{"GET", "/anything/at/all", true},
		{"HEAD", "/anything/at/all", true}, // RFC 9110 §9.3.2
		{"POST", "/v6/items/1/checkout", true},
		{"HEAD", "/v6/items/1", true},
		{"POST", "/v6/patrons", false},
		{"DELETE", "/v6/items/1", false},
		{"DELETE", "/status", true},
		{"get", "/anything", false}, // methods are case-sensitive (RFC 9110 §9.1)
	} {
		if got := p.Permits(c.method, c.path); got != c.want {
			t.Errorf("%s %s: got %v, want %v", c.method, c.path, got, c.want)
		}
	}
}

func TestAPathBelongsToTheFirstGroupThatMatches(t *testing.T) {
	l := Limits{Groups: []Group{
		{Name: "items", Paths: []string{"/v6/items", "/v6/items/**"}},
		{Name: "all", Paths: []string{"/v6/**"}},
	}}
	for path, want := range map[string]int{"/v6/items": 0, "/v6/items/7": 0, "/v6/bibs": 1, "/v5/bibs": -1} {
		if got := l.GroupOf(path); got != want {
			t.Errorf("%s: got group %d, want %d", path, got, want)
		}
	}
}
