package provider_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

func TestNamesAreThoseOfTheFiles(t *testing.T) {
	files, err := fs.Glob(os.DirFS("profiles"), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], ".yaml")
	}
	if diff := cmp.Diff(provider.Names(), files); diff != "" {
		t.Errorf("names differ from files (-got +want):\n%s", diff)
	}
}

func TestEveryProfileCompiles(t *testing.T) {
	for _, name := range provider.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := provider.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Name; got != name {
				t.Errorf("got name %q, want %q", got, name)
			}
		})
	}
}

func TestEveryFactHasSourceAndGrade(t *testing.T) {
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Facts) < len(p.Rules)+len(p.Hints) {
			t.Errorf("%s: got %d facts for %d rules and %d hints", name, len(p.Facts), len(p.Rules), len(p.Hints))
		}
		for _, f := range p.Facts {
			if f.Origin == "" || f.Grade == "" {
				t.Errorf("%s: %s: got source %q and grade %q, want both", name, f.About, f.Origin, f.Grade)
			}
		}
	}
}

func TestAProfileThatIsNotKnownIsAnError(t *testing.T) {
	_, err := provider.Get("seirra")
	if got, want := fmt.Sprint(err), `provider: profile "seirra" is not known, use one of `+strings.Join(provider.Names(), ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAProfileIsTheCallersOwn(t *testing.T) {
	first, err := provider.Get("wms")
	if err != nil {
		t.Fatal(err)
	}
	first.Rules[0].ID = "changed"
	first.Query["EXCEPTIONS"] = "INIMAGE"
	second, err := provider.Get("wms")
	if err != nil {
		t.Fatal(err)
	}
	if second.Rules[0].ID == "changed" || second.Query["EXCEPTIONS"] != "XML" {
		t.Errorf("got rule %s and query %v, want them untouched", second.Rules[0].ID, second.Query)
	}
}

func TestADocumentWithTooManyKeysIsNotParsed(t *testing.T) {
	node, problems := sheet.ReadYAML("x", []byte(strings.Repeat("a: b\n", 20_000)))
	if node != nil || len(problems) != 1 || !strings.Contains(problems[0].Message, "too many") {
		t.Errorf("got %v, %v", node, problems)
	}
}
