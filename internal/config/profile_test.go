package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/provider"
)

// folder holds files by their names and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const ownProfile = `name: our-ils
title: Our own
extends: sierra
rules:
  - id: our-ils/busy
    when: {status: [500], text: busy}
    then: {class: throttled, wait: 7s}
    source: their mail
    grade: unverified
retry_override:
  - {header: X-Again, source: their mail, grade: general}
hints:
  sources:
    - {header: x-left, field: remaining, format: number, grade: unverified}
buckets:
  - {id: all, kind: spacing, window: 500ms, pace: true, source: their page, grade: unverified}
`

const twoEndpoints = `version: 1
endpoints:
  a:
    url: https://a.example.org
    profile: profiles/own.yaml
  b:
    url: https://b.example.org
    profile: profiles/own.yaml
    rules:
      - {id: first, when: {status: [500]}, then: {class: permanent}}
    limits: {rate: 1/s, source: our mail}
`

func TestAProfileOfTheUsersOwnIsReadFromTheFolderOfTheFile(t *testing.T) {
	dir := folder(t, map[string]string{"heed.yaml": twoEndpoints, "profiles/own.yaml": ownProfile})
	c, _, err := config.Load(filepath.Join(dir, "heed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.Endpoints[0], c.Endpoints[1]
	sierra, err := provider.Get("sierra")
	if err != nil {
		t.Fatal(err)
	}
	got := []any{a.Rules[0].ID, b.Rules[0].ID, b.Rules[1].ID, len(a.Rules), a.Policy.Limits.Rate, b.Policy.Limits.Rate, a.Hints[0].Header}
	want := []any{"our-ils/busy", "first", "our-ils/busy", len(sierra.Rules) + 2, 2.0, 1.0, "x-left"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestWhatNobodyHasLookedUpIsKnownByTheNameThatDecides(t *testing.T) {
	dir := folder(t, map[string]string{"heed.yaml": twoEndpoints, "profiles/own.yaml": ownProfile})
	c, _, err := config.Load(filepath.Join(dir, "heed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := c.Endpoints[0].Doubtful
	for name, want := range map[string]provider.Grade{
		"our-ils/busy": provider.Unverified, "X-Again: true": provider.General, "X-Again: false": provider.General,
		"X-Left": provider.Unverified, "limits": provider.Unverified,
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

func TestAProfileOfTheUsersOwnIsNotShownAgain(t *testing.T) {
	dir := folder(t, map[string]string{"heed.yaml": twoEndpoints, "profiles/own.yaml": ownProfile})
	c, _, err := config.Load(filepath.Join(dir, "heed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shown := string(config.Show(c))
	if strings.Contains(shown, "our-ils/busy") || strings.Contains(shown, "X-Again") || !strings.Contains(shown, "id: first") {
		t.Errorf("got a rule of the profile, or not that of the endpoint:\n%s", shown)
	}
	again, _, err := config.Parse(filepath.Join(dir, "shown.yaml"), config.Show(c))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(again, c, alike); diff != "" {
		t.Errorf("differs (-got +want):\n%s", diff)
	}
}

func TestProblemsOfAProfileAreToldWithBothFiles(t *testing.T) {
	dir := folder(t, map[string]string{"heed.yaml": twoEndpoints, "profiles/own.yaml": "name: our-ils\ntitle: x\nrules:\n  - {id: a, when: {staus: [1]}, then: {class: ok}}\n"})
	_, _, err := config.Load(filepath.Join(dir, "heed.yaml"))
	if err == nil {
		t.Fatal("got no error")
	}
	got := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
	want := `heed.yaml:5:14: endpoints.a.profile: the profile profiles/own.yaml has 1 problem(s); mend it; heed provider check profiles/own.yaml tells the same
profiles/own.yaml:4:20: rules[0].when.staus: the key is not known here; did you mean status?`
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestAProfileThatCannotBeReadIsAProblemAtItsPlace(t *testing.T) {
	for name, want := range map[string]string{
		"./none.yaml": "the profile cannot be read: ", ".//": "this is no regular file", "alam": "did you mean alma?",
	} {
		_, _, err := config.Parse("heed.yaml", []byte("version: 1\nendpoints: {a: {url: https://a.example.org, profile: "+name+"}}\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "heed.yaml:2:54: endpoints.a.profile: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s at its place", name, err, want)
		}
	}
}
