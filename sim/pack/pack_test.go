package pack_test

import (
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack"
)

// serve makes an API of one pack that lets everything through.
func serve(t *testing.T, p sim.Pack, w sim.World) *sim.API {
	t.Helper()
	w.Packs = []sim.Pack{p}
	a, err := sim.New(w)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEveryPackCanBeServed(t *testing.T) {
	for _, p := range pack.All() {
		serve(t, p, sim.World{})
	}
}

func TestEveryPackSaysWhatItHasWhenAskedForWhatItHasNot(t *testing.T) {
	for _, p := range pack.All() {
		w := httptest.NewRecorder()
		serve(t, p, sim.World{}).ServeHTTP(w, httptest.NewRequest("GET", "/no/such/operation", nil))
		_, path, _ := strings.Cut(p.Operations[0].Route, " ")
		if w.Code < 400 || w.Code > 499 || !strings.Contains(w.Body.String(), path) {
			t.Errorf("%s: got %d %s", p.Name, w.Code, w.Body)
		}
	}
}

func TestEveryPackHasWordsForEveryKindOfRefusal(t *testing.T) {
	for _, p := range pack.All() {
		for kind := sim.BadRequest; kind <= sim.KeyTooLong; kind++ {
			p := p
			p.Limits, p.Authorize = nil, nil
			p.Operations = []sim.Operation{{Route: "GET /refuse", Do: func(x *sim.Exchange) sim.Answer {
				return x.Refuse(sim.Refusal{Kind: kind, Detail: "so it is"})
			}}}
			w := httptest.NewRecorder()
			serve(t, p, sim.World{}).ServeHTTP(w, httptest.NewRequest("GET", "/refuse", nil))
			if w.Code < 200 || w.Code > 599 || w.Body.Len() == 0 {
				t.Errorf("%s: kind %d: got %d %q", p.Name, kind, w.Code, w.Body)
			}
		}
	}
}

func TestEveryOperationHasANameOfItsOwn(t *testing.T) {
	for _, p := range pack.All() {
		seen := map[string]bool{}
		for _, o := range p.Operations {
			name := o.Name
			if name == "" {
				name = o.Route
			}
			if seen[name] {
				t.Errorf("%s: %s is there twice", p.Name, name)
			}
			seen[name] = true
		}
	}
}

func TestAPackThatIsNotThereIsToldWithThoseThatAre(t *testing.T) {
	_, err := pack.Named("stripe", "strype")
	if err == nil || !strings.Contains(err.Error(), `"strype"`) || !strings.Contains(err.Error(), "generic") {
		t.Errorf("got %v", err)
	}
}

func TestAPackIsNamedOnce(t *testing.T) {
	if _, err := pack.Named("stripe", "stripe"); err == nil {
		t.Error("no error")
	}
}

func TestInAWorldOfAllPacksEachHasThePathsThatNoOtherHas(t *testing.T) {
	all := pack.All()
	a, err := sim.New(sim.World{Packs: all})
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string][]string{} // packs by path
	for _, p := range all {
		for _, o := range p.Operations {
			_, path, _ := strings.Cut(o.Route, " ")
			path = braces.ReplaceAllString(path, "1")
			if !slices.Contains(routes[path], p.Name) {
				routes[path] = append(routes[path], p.Name)
			}
		}
	}
	for path, packs := range routes {
		a.Reset()
		a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		if got := a.Journal().Entries[0].Pack; got != packs[0] {
			t.Errorf("%s: got pack %s, want %s", path, got, packs[0])
		}
	}
}

var braces = regexp.MustCompile(`{[^}]*}`)

func TestEveryGoldenExchangeOfAPackIsServed(t *testing.T) {
	for _, p := range pack.All() {
		names := strings.Fields(p.Golden)
		if len(names) == 0 {
			names = []string{p.Name}
		}
		for _, name := range names {
			everyGoldenExchangeIsServed(t, p, name)
		}
	}
}

func everyGoldenExchangeIsServed(t *testing.T, p sim.Pack, name string) {
	data, err := golden.Files.ReadFile(name + ".yaml")
	if err != nil {
		return // the profile has none yet
	}
	doc, problems := sheet.ReadYAML(name, data)
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for _, e := range doc.Get("exchanges").Items {
		r := e.Get("response")
		if r == nil || r.Get("cut") != nil {
			continue
		}
		step := "golden(" + e.Get("name").Text + ")"
		w := httptest.NewRecorder()
		serve(t, p, sim.World{Steps: "GET /x: " + step}).ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
		if got, want := fmt.Sprint(w.Code), r.Get("status").Text; got != want {
			t.Errorf("%s: %s: got %s, want %s", p.Name, step, got, want)
		}
	}
}

// The hosts and schemes of addresses are put together in one place, which
// knows of cases: what every pack answers is held to it by packtest.
func TestNoPackMakesAnAddressByItself(t *testing.T) {
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), "Request.Host") {
			t.Errorf("%s: it reads Request.Host; use Exchange.URL", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
