package provider_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// whole is a profile that has every key there is.
func whole(t *testing.T) (provider.Profile, []byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, problems := provider.Read("whole.yaml", data)
	for _, problem := range problems {
		t.Error(problem)
	}
	return p, data
}

func TestEveryBlockIsReadAndTold(t *testing.T) {
	p, _ := whole(t)
	var got []string
	for _, f := range p.Facts {
		if f.From != p.Name {
			continue
		}
		use := "told"
		if f.Used {
			use = "used"
		}
		got = append(got, use+" "+f.Block+" "+f.About+": "+f.Says)
		if f.Origin != "a page" || f.Grade != provider.Documented {
			t.Errorf("%s %s: got source %q and grade %q", f.Block, f.About, f.Origin, f.Grade)
		}
	}
	want, err := os.ReadFile("testdata/whole.facts")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(got, "\n")+"\n", string(want)); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestTheSchemaInTheDocsNamesEveryKey(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, data := whole(t)
	node, _ := sheet.ReadYAML("whole.yaml", data)
	for _, key := range keys(node, nil) {
		if !strings.Contains(string(doc), key) {
			t.Errorf("the key %s is not in the SCHEMA of the package doc", key)
		}
	}
}

func TestTheWholeProfileHasEveryKey(t *testing.T) {
	_, data := whole(t)
	node, _ := sheet.ReadYAML("whole.yaml", data)
	have := keys(node, nil)
	var s map[string]any
	if err := json.Unmarshal(provider.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	for _, key := range properties(s, nil) {
		if !slices.Contains(have, key) {
			t.Errorf("the key %s is in no example", key)
		}
	}
}

// properties lists the keys of a schema, less those that keys leaves out.
func properties(s map[string]any, all []string) []string {
	named, _ := s["properties"].(map[string]any)
	for name, one := range named {
		if name == "exchanges" || name == "query" || name == "idempotency" || strings.HasPrefix(name, "jitter_") { // keys that only heed.yaml needs
			continue
		}
		all = append(all, name)
		if !free[name] {
			all = properties(one.(map[string]any), all)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		all = properties(items, all)
	}
	forms, _ := s["oneOf"].([]any)
	for _, form := range forms {
		all = properties(form.(map[string]any), all)
	}
	return all
}

// free are the keys whose members are the user's own words, or those of
// heed.yaml.
var free = map[string]bool{"header": true, "query": true, "vars": true, "plans": true,
	"allow": true, "retry": true, "backoff": true, "timeouts": true, "breaker": true, "verify": true, "limits": true}

func keys(n *sheet.Node, all []string) []string {
	for _, item := range n.Items {
		all = keys(item, all)
	}
	for _, m := range n.Members {
		if m.Key.Text == "exchanges" { // the form of package golden
			continue
		}
		all = append(all, m.Key.Text)
		if !free[m.Key.Text] {
			all = keys(m.Value, all)
		}
	}
	return all
}

func TestABucketToPaceByBecomesALimit(t *testing.T) {
	for _, row := range []struct {
		name, bucket string
		want         policy.Limits
	}{
		{"token", "{id: a, kind: token, capacity: 40, refill: 2/s, pace: true, source: x}", policy.Limits{Rate: 2, Burst: 40, Source: "x"}},
		{"window", "{id: a, kind: sliding, capacity: 100, window: 10s, pace: true, source: x}", policy.Limits{Rate: 10, Burst: 1, Source: "x"}},
		{"spacing", "{id: a, kind: spacing, window: 500ms, pace: true, source: x}", policy.Limits{Rate: 2, Burst: 1, Source: "x"}},
		{"concurrency", "{id: a, kind: concurrency, capacity: 4, pace: true, source: x}", policy.Limits{Concurrency: 4}},
		{"told", "{id: a, kind: token, capacity: 40, refill: 2/s, source: x}", policy.Limits{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, problems := provider.Read("x.yaml", []byte("name: x\ntitle: x\nbuckets: ["+row.bucket+"]\n"))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(p.Policy.Limits, row.want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestAProfileStandsBeforeTheOneItExtends(t *testing.T) {
	p, problems := provider.Read("x.yaml", []byte(`
name: x
title: x
extends: wms
rules: [{id: x/a, when: {status: [418]}, then: {class: permanent}}]
hints: {sources: [{header: X-Left, field: remaining, format: number}]}
retry_override: [{header: X-Again}]
fixups: [{query: {LANG: en}}]
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	wms, err := provider.Get("wms")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(p.Rules), len(wms.Rules)+2; got != want || p.Rules[0].ID != "x/a" {
		t.Errorf("got %d rules, the first %s, want %d", got, p.Rules[0].ID, want)
	}
	if last := p.Rules[len(p.Rules)-1]; last.Override.Header != "X-Again" {
		t.Errorf("got %v last, want the override", last.ID)
	}
	if diff := cmp.Diff(p.Query, map[string]string{"LANG": "en", "EXCEPTIONS": "XML"}); diff != "" {
		t.Errorf("query: -got +want:\n%s", diff)
	}
	if diff := cmp.Diff(p.Hints[0], hint.Source{Header: "X-Left", Field: hint.Remaining, Format: hint.Number}); diff != "" {
		t.Errorf("hints: -got +want:\n%s", diff)
	}
}

// wrong are profiles that cannot be used, and what is told of them.
var wrong = map[string]struct{ text, want string }{
	"no name": {"title: x\n", "x.yaml:1:1: name: name is missing; add it: The name of the profile."},
	"a base that is not there": {"name: x\ntitle: x\nextends: generc\n",
		`x.yaml:3:10: extends: "generc" is not known; did you mean generic?`},
	"a rule twice": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [1xx]}, then: {class: ok}}\n  - {id: a, when: {status: [2xx]}, then: {class: ok}}\n",
		`x.yaml:5:10: rules[1].id: "a" names two entries of rules; give each a name of its own`},
	"a recipe that is not there": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [500]}, then: {class: unknown}, verify: look}\n",
		`x.yaml:4:68: rules[0].verify: "look" is no entry of recipes; name an entry of recipes`},
	"a ban counter that is not there": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [500]}, then: {class: unknown}, counts: [bad]}\n",
		`x.yaml:4:69: rules[0].counts[0]: "bad" is no entry of ban_counters; name an entry of ban_counters`},
	"a rule for a key in flight that is not there": {"name: x\ntitle: x\nidempotency: {header: K, in_flight: busy}\n",
		`x.yaml:3:37: idempotency.in_flight: "busy" is no entry of rules; name an entry of rules`},
	"nothing to combine": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [429]}, then: {class: throttled}, wait: {const: 1s}, combine: max}\n",
		`x.yaml:4:90: rules[0].combine: there is nothing to combine; list several sources under wait, or leave combine out`},
	"two rates": {"name: x\ntitle: x\nlimits: {rate: 1/s}\nbuckets: [{id: b, kind: spacing, window: 1s, pace: true}]\n",
		`x.yaml:4:52: buckets[0].pace: there is another limit of the same kind to pace by; let heed pace by one of them`},
	"a bucket of points to pace by": {"name: x\ntitle: x\nbuckets: [{id: b, kind: token, capacity: 9, refill: 1/s, cost: {unit: points}, pace: true}]\n",
		`x.yaml:3:86: buckets[0].pace: heed paces requests, and this bucket counts points; leave it out, or write a bucket of requests`},
	"a fixup of nothing": {"name: x\ntitle: x\nfixups: [{about: why}]\n",
		`x.yaml:3:10: fixups[0].query: it must be clear what the request needs; give either query or header`},
	"a zone that is none": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [429]}, then: {class: throttled}, wait: {calendar: {every: day, zone: Mars/Base}}}\n",
		`x.yaml:4:98: rules[0].wait.calendar.zone: "Mars/Base" is not a time zone; write a name of the IANA list, such as UTC or America/Los_Angeles, or unknown`},
	"a formula without its numbers": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [429]}, then: {class: throttled}, wait: {calc: a + b, vars: {a: $.a}}}\n",
		`x.yaml:4:88: rules[0].wait.vars: b has no value; name its JSON path`},
	"a day that is none": {"name: x\ntitle: x\nnotes: [{fact: x, checked: yesterday}]\n",
		"x.yaml:3:28: notes[0].checked: this is not a day; write it as in 2026-11-30"},
	"nothing at all":  {"# nothing yet\n", "x.yaml: the file is empty; write at least name, title and one of rules, hints and buckets"},
	"a list of rules": {"- {id: a}\n", "x.yaml:1:1: a list stands where keys belong; begin with keys, such as name: our-ils"},
	"an anchor":       {"name: &a x\ntitle: x\n", "x.yaml:1:7: name: anchors are not supported; write the value out"},
	"a format that is none, in a list of one": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [429]}, then: {class: throttled}, wait: [{header: X, format: secs}]}\n",
		`x.yaml:4:89: rules[0].wait[0].format: "secs" is not known; use one of s, ms, epoch_s, epoch_ms, iso8601, http_date, go_duration, pb_duration, retry_after, number, used_total, key_value, structured`},
	"a format of a list of one that is no time": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [429]}, then: {class: throttled}, wait: [{header: X, format: number}]}\n",
		`x.yaml:4:89: rules[0].wait[0].format: "number" is not the format of a time; use a format of a time, such as s or iso8601`},
	"a formula that is none": {"name: x\ntitle: x\nrules:\n  - {id: a, when: {status: [429]}, then: {class: throttled}, wait: [{calc: a +, vars: {a: $.a}}]}\n",
		`x.yaml:4:76: rules[0].wait[0].calc: the formula ends where a number or a name is due; write a formula over vars, such as (requested - available) / rate`},
	"a window without a unit to pace by": {"name: x\ntitle: x\nbuckets: [{id: b, kind: spacing, window: 5, pace: true}]\n",
		`x.yaml:3:42: buckets[0].window: "5" has no unit; write a duration with its unit, such as 90s or 1m30s`},
	"two exchanges of one name": {"name: x\ntitle: x\nexchanges:\n" + strings.Repeat("  - {name: a, request: {method: GET, path: /}, response: {status: 200}, expect: {class: ok, executed: yes, retry: never, scope: call}}\n", 2),
		`x.yaml:5:12: exchanges[1].name: "a" names two exchanges; give each exchange a name of its own`},
}

func TestWhatIsWrongWithAProfileIsToldAtItsPlace(t *testing.T) {
	for name, row := range wrong {
		t.Run(name, func(t *testing.T) {
			_, problems := provider.Read("x.yaml", []byte(row.text))
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(strings.Join(got, "\n"), row.want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

// FuzzRead: no document makes a profile panic, and what is accepted can judge.
func FuzzRead(f *testing.F) {
	for name, row := range wrong {
		if len(name) > 0 {
			f.Add([]byte(row.text))
		}
	}
	f.Add([]byte("name: x\ntitle: x\nrules: [{id: a, when: {json: [{path: '$..a[?@.b]'}]}, then: {class: ok}, wait: [{xml: {name: a, attr: b}, format: s}, {const: 1s}], combine: max}]\n"))
	f.Add([]byte("name: x\ntitle: x\nretry_override: [{header: X, true: ^y, status: [5xx]}]\nexchanges: [{name: a, request: {method: GET, path: /}, failure: refused, expect: {class: ok, executed: no, retry: any, scope: host, remaining: 3}}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, problems := provider.Read("x.yaml", data)
		if len(problems) > 0 {
			return
		}
		j, err := p.Judge()
		if err != nil {
			t.Fatalf("a profile without problems cannot judge: %v", err)
		}
		for i := range p.Exchanges {
			if o := j.Try(&p.Exchanges[i]); o.Wait < 0 {
				t.Errorf("got a wait of %v", o.Wait)
			}
		}
	})
}
