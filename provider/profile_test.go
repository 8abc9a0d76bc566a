package provider_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/provider"
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
