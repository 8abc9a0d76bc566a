package config_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

func full(t *testing.T) *config.Config {
	t.Helper()
	c, _, err := config.Load(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, _, err := config.Parse("heed.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// alike compares what holds compiled things by how they were written.
var alike = cmp.Options{
	cmp.Comparer(func(a, b *regexp.Regexp) bool {
		return a == b || a != nil && b != nil && a.String() == b.String()
	}),
	cmp.Comparer(func(a, b classify.Selector) bool { return path(a) == path(b) }),
	cmp.Comparer(func(a, b *classify.Calc) bool { return a == b || a != nil && b != nil && a.String() == b.String() }),
	cmp.Comparer(func(a, b *time.Location) bool { return a == b || a != nil && b != nil && a.String() == b.String() }),
	cmp.Comparer(func(a, b config.Secret) bool { return string(a) == string(b) }),
	cmpopts.EquateComparable(netip.Prefix{}),
	cmpopts.IgnoreFields(config.Config{}, "File", "Profiles"),
	cmpopts.IgnoreUnexported(config.Config{}),
}

func TestWhatIsShownReadsBackAsTheSame(t *testing.T) {
	c := full(t)
	again, _, err := config.Parse("shown", config.Show(c))
	if err != nil {
		t.Fatalf("%v\n%s", err, config.Show(c))
	}
	if diff := cmp.Diff(again, c, alike); diff != "" {
		t.Errorf("differs (-got +want):\n%s", diff)
	}
}

func TestTheDemoReadsBackAsTheSame(t *testing.T) {
	c := config.Demo("http://127.0.0.1:4321/demo")
	again := parse(t, string(config.Show(c)))
	if diff := cmp.Diff(again, c, alike, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("differs (-got +want):\n%s", diff)
	}
}

func TestTheDemoHasNoProblemsAndNoWarnings(t *testing.T) {
	c := config.Demo("http://127.0.0.1:4321/demo")
	if got := c.Endpoints[0].Policy.Validate(); len(got) > 0 {
		t.Errorf("got problems %v", got)
	}
	if got := config.Lint(c); len(got) > 0 {
		t.Errorf("got warnings %v", got)
	}
}

func TestTheFirstFileHasNoProblemsAndNoWarnings(t *testing.T) {
	_, warnings, err := config.Parse("heed.yaml", config.Init())
	if err != nil || len(warnings) > 0 {
		t.Errorf("got %v, %v", warnings, err)
	}
}

func TestWhatTheFirstFileHasInCommentsCanBeUncommented(t *testing.T) {
	lines := strings.Split(string(config.Init()), "\n")
	setting := regexp.MustCompile(`^    # ( *(- )?[a-z_]+:( .*)?)$`)
	for i, line := range lines {
		if m := setting.FindStringSubmatch(line); m != nil {
			lines[i] = "    " + m[1]
		}
	}
	c := parse(t, strings.Join(lines, "\n"))
	if got := c.Endpoints[0]; got.Auth.Kind != config.AuthHeader || len(got.Rules) == 0 || got.Policy.Key.Header == "" {
		t.Errorf("got %+v, want auth, rules and idempotency to be set", got)
	}
}

func TestTheEndpointGoesBeforeItsProfileAndThatBeforeDefaults(t *testing.T) {
	c := parse(t, `
version: 1
defaults:
  retry: {budget: 2m, attempts: 7}
  limits: {rate: 100/s, burst: 9, source: ours}
  rules: [{id: common, when: {status: [418]}, then: {class: permanent}}]
endpoints:
  alma:
    url: https://alma.example.org
    profile: alma
    retry: {attempts: 3}
    rules: [{id: own, when: {status: [418]}, then: {class: permanent}}]
`)
	e := c.Endpoints[0]
	if got, want := e.Policy.Limits.Rate, 25.0; got != want {
		t.Errorf("got rate %v, want %v of the profile", got, want)
	}
	if got, want := e.Policy.Limits.Burst, 9; got != want {
		t.Errorf("got burst %v, want %v of defaults", got, want)
	}
	if got, want := e.Policy.Retry.Attempts, 3; got != want {
		t.Errorf("got attempts %v, want %v of the endpoint", got, want)
	}
	if got, want := e.Policy.Retry.Budget, 2*time.Minute; got != want {
		t.Errorf("got budget %v, want %v of defaults", got, want)
	}
	if got := []string{e.Rules[0].ID, e.Rules[1].ID, e.Rules[2].ID}; !slices.Equal(got, []string{"own", "common", "alma/per-second"}) {
		t.Errorf("got rules %v, want those somebody wrote before those of the profile", got)
	}
}

func TestOwnHintsStandBeforeTheStandardOnes(t *testing.T) {
	c := parse(t, `
version: 1
endpoints:
  a: {url: https://a.example.org, hints: {sources: [{header: X-Foo, field: reset, format: epoch_ms}]}}
  b: {url: https://b.example.org}
`)
	want := append([]hint.Source{{Header: "X-Foo", Field: hint.Reset, Format: hint.EpochMillis}}, hint.Standard()...)
	if diff := cmp.Diff(c.Endpoints[0].Hints, want); diff != "" {
		t.Errorf("differs (-got +want):\n%s", diff)
	}
	if got := c.Endpoints[1].Hints; got != nil {
		t.Errorf("got %v, want nil, which means the standard ones", got)
	}
}

func TestZeroMeansNoneWhereItIsWritten(t *testing.T) {
	c := parse(t, `
version: 1
endpoints:
  a:
    url: https://a.example.org
    retry: {budget: 0s}
    hints: {jitter_max: 0s, jitter_ratio: 0}
    limits: {reserve: 0}
    breaker: {consecutive: 0, ratio: 1, jitter: 0}
`)
	p := c.Endpoints[0].Policy
	if p.Retry.Budget != policy.Unlimited {
		t.Errorf("got budget %v, want none", p.Retry.Budget)
	}
	if p.Hints.JitterMax >= 0 || p.Hints.JitterRatio >= 0 || p.Limits.Reserve >= 0 || p.Breaker.Consecutive >= 0 || p.Breaker.Jitter >= 0 {
		t.Errorf("got %+v, want what was set to zero negative", p)
	}
}

func TestEndpointsKeepTheirOrder(t *testing.T) {
	c := parse(t, "version: 1\nendpoints:\n  z: {url: https://z.example.org}\n  a: {url: https://a.example.org}\n  m: {url: https://m.example.org}\n")
	var got []string
	for _, e := range c.Endpoints {
		got = append(got, e.Name)
	}
	if want := []string{"z", "a", "m"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestShowTellsFingerprintsAndNoSecrets(t *testing.T) {
	c := parse(t, `
version: 1
listen: {admin_token: "value:canary-1"}
endpoints:
  a:
    url: https://a.example.org
    auth: {kind: basic, user: env:U, password: env:P}
`)
	env := map[string]string{"U": "canary-2"}
	got := string(config.ShowResolved(c, func(name string) string { return env[name] }, os.ReadFile))
	if strings.Contains(got, "canary") {
		t.Errorf("a secret is shown:\n%s", got)
	}
	for _, want := range []string{"user: env:U # fingerprint " + mask.Fingerprint("canary-2"), "password: env:P # cannot be resolved"} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in:\n%s", want, got)
		}
	}
}

func TestTheSchemaKnowsEveryKeyOfTheFullFileAndNoOther(t *testing.T) {
	var got, want []string
	keys(schema(t), "", &want)
	node, _ := sheet.ReadYAML("full.yaml", readFull(t))
	written(node, "", &got)
	got = append(got, "queue.path") // which excludes queue.dsn
	slices.Sort(got)
	slices.Sort(want)
	// What endpoints share with defaults is written once, under defaults.
	for _, key := range want {
		common := strings.Replace(key, "endpoints.*.", "defaults.", 1)
		inherited := strings.Replace(key, "defaults.", "endpoints.*.", 1)
		if !slices.Contains(got, key) && !slices.Contains(got, common) && !slices.Contains(got, inherited) {
			t.Errorf("%s is in the schema and in no example", key)
		}
	}
	for _, key := range got {
		if !slices.Contains(want, key) {
			t.Errorf("%s is in the example and not in the schema", key)
		}
	}
}

func readFull(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheSchemaTakesWhatParseTakes(t *testing.T) {
	for name, data := range map[string][]byte{
		"full": readFull(t), "init": config.Init(), "shown": config.Show(full(t)),
	} {
		node, problems := sheet.ReadYAML(name, data)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, p := range against(schema(t), node, name) {
			t.Error(p)
		}
	}
}

func TestTheSchemaRefusesWhatParseRefuses(t *testing.T) {
	// Only what a schema can say: form, not what fits together.
	for _, name := range []string{"unknown_key", "wrong_type", "url", "names", "secrets", "version", "version_missing"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "problems", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(text), "-- heed.yaml --\n")
			input, _, _ := strings.Cut(rest, "-- problems --\n")
			node, _ := sheet.ReadYAML(name, []byte(input))
			if got := against(schema(t), node, ""); len(got) == 0 {
				t.Error("got no complaint, want some")
			}
		})
	}
}

func schema(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func FuzzParse(f *testing.F) {
	// Small ones only: the fuzzer takes whole seconds to shorten a large one.
	for _, text := range []string{
		"version: 1\nendpoints:\n  a:\n    url: https://a.example.org\n",
		"version: 1\nendpoints: {a: {url: http://a, verify: full, retry: {budget: 0s}}}\n",
		"endpoints: {a: {rules: [{id: x, when: {status: [5xx], json: [{path: $.a}]}, then: {class: ok}}]}}",
		"defaults: &d {limits: {rate: 3/2s}}\nendpoints: {<<: *d, a: !!str b, a: 'c'}",
		"a: |\n  text\nb: >-\n  more\n? c\n: [[[{}]]]\n---\n- - - x",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := config.Parse("heed.yaml", data)
		if err != nil {
			if problems, ok := errors.AsType[config.Problems](err); !ok || len(problems) == 0 {
				t.Fatalf("got error %v, want Problems", err)
			}
			return
		}
		if _, _, err := config.Parse("shown", config.Show(c)); err != nil && !inline(c) {
			t.Fatalf("what is shown is not accepted: %v\n%s", err, config.Show(c))
		}
	})
}

// inline tells that a secret stands in the file, which Show masks.
func inline(c *config.Config) bool { return strings.Contains(string(config.Show(c)), "value:") }

// path is how a selector was written.
func path(s classify.Selector) string {
	if n := provider.Path(&s).Write(); n != nil {
		return n.Text
	}
	return ""
}
