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
		if packs[0] == "gcs" && strings.HasPrefix(path, "/1/") { // a bucket, which may be called anything
			continue
		}
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
			if _, err := golden.Files.Open(name + ".yaml"); err == nil {
				everyGoldenExchangeIsServed(t, p, name, "")
			}
		}
	}
}

func TestEveryGoldenExchangeOfEveryProfileIsServedByGeneric(t *testing.T) {
	files, err := golden.Files.ReadDir(".")
	if err != nil || len(files) < 26 {
		t.Fatalf("got %d profiles, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".yaml")
		everyGoldenExchangeIsServed(t, sim.Generic(), name, name+"/")
	}
}

// everyGoldenExchangeIsServed asks p for each exchange of the profile.
func everyGoldenExchangeIsServed(t *testing.T, p sim.Pack, profile, before string) {
	t.Helper()
	data, err := golden.Files.ReadFile(profile + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, problems := sheet.ReadYAML(profile, data)
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for _, e := range doc.Get("exchanges").Items {
		step := "golden(" + before + e.Get("name").Text + ")"
		a := serve(t, p, sim.World{Steps: "* /**: " + step}) // which fails where there is none
		r := e.Get("response")
		if r == nil || r.Get("cut") != nil {
			continue
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
		if got, want := fmt.Sprint(w.Code), r.Get("status").Text; got != want || w.Body.String() != "" && r.Get("body") != nil && r.Get("encoding") == nil && w.Body.String() != r.Get("body").Text {
			t.Errorf("%s: %s: got %s %q, want %s", p.Name, step, got, w.Body, want)
		}
	}
}

func TestAPackTellsOfNoEventThatItDoesNotList(t *testing.T) {
	literal := regexp.MustCompile(`\bemit\((?:s\.)?x, "([^"]+)"`)
	for _, p := range pack.All() {
		files, _ := filepath.Glob(p.Name + "/*.go")
		seen := map[string]bool{}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
				seen[m[1]] = true
			}
		}
		if p.Name == "github" {
			continue // its second words are actions; its two events have tests of their own
		}
		for e := range seen {
			if !slices.Contains(p.Webhooks.Events, e) {
				t.Errorf("%s tells of %s", p.Name, e)
			}
		}
		if len(files) > 0 && (p.Name == "stripe" || p.Name == "shopify") && len(seen) != len(p.Webhooks.Events) {
			t.Errorf("%s lists %v and tells of %v", p.Name, p.Webhooks.Events, seen)
		}
	}
}

func TestEveryPackSaysWhichCredentialItTakes(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pack.All() {
		if row := "| " + p.Name + " | " + p.Access + " |"; p.Access == "" || !strings.Contains(string(page), row) {
			t.Errorf("docs/simulator.md lacks the row %s", row)
		}
	}
}

func TestAWordForAPackPointsToIt(t *testing.T) {
	for word, want := range map[string]string{
		"payments": "use stripe", "geocoder": "use nominatim", "llm": "use openai or anthropic",
		"slack": "golden(slack/NAME)", "strpe": "did you mean stripe?",
	} {
		if _, err := pack.Named(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", word, err, want)
		}
	}
}

func TestAmongSeveralPacksABucketIsAskedForByTheNameOfItsPack(t *testing.T) {
	packs, err := pack.Named("gcs", "stripe")
	if err != nil {
		t.Fatal(err)
	}
	a, err := sim.New(sim.World{Packs: packs})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/v1/chargs": "", "/bucket/object": "", "/gcs/bucket/object": "storage.objects.get.xml"} {
		a.Reset()
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := a.Journal().Entries[0].Operation; got != want {
			t.Errorf("%s: got operation %q, want %q", path, got, want)
		}
		if want == "" && !strings.Contains(w.Body.String(), "/stripe/") {
			t.Errorf("%s: got %s, want it to name the packs", path, w.Body)
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
