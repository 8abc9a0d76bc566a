package provider_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
)

// exchange is one entry of a golden file.
type exchange struct {
	name, method, path, body string
	status                   int
	header                   map[string]string
	expect                   classify.Verdict
}

func (x *exchange) table() sheet.Value {
	v := &x.expect
	return sheet.Block{Fields: []sheet.Field{
		{Name: "name", Value: sheet.Text(&x.name), Required: true},
		{Name: "request", Required: true, Value: sheet.Block{Fields: []sheet.Field{
			{Name: "method", Value: sheet.Text(&x.method), Required: true},
			{Name: "path", Value: sheet.Text(&x.path), Required: true},
		}}},
		{Name: "response", Required: true, Value: sheet.Block{Fields: []sheet.Field{
			{Name: "status", Value: sheet.Int(&x.status, 100), Required: true},
			{Name: "header", Value: sheet.Map[string]{P: &x.header, One: sheet.Text}},
			{Name: "body", Value: sheet.Text(&x.body)},
		}}},
		{Name: "expect", Required: true, Value: sheet.Block{Fields: []sheet.Field{
			{Name: "class", Required: true, Value: sheet.OneOf(&v.Class, classify.OK, classify.Throttled, classify.Overloaded,
				classify.Transient, classify.Unauthorized, classify.Permanent, classify.Invalid)},
			{Name: "executed", Required: true, Value: sheet.OneOf(&v.Executed, classify.No, classify.Maybe, classify.Yes)},
			{Name: "retry", Required: true, Value: sheet.OneOf(&v.Retry, classify.Never, classify.Idempotent, classify.Any,
				classify.Once, classify.Refresh)},
			{Name: "scope", Required: true, Value: sheet.OneOf(&v.Scope, classify.ScopeCall, classify.ScopeKey, classify.ScopeHost)},
			{Name: "wait", Value: sheet.Duration(&v.Wait)},
			{Name: "rule", Value: sheet.Text(&v.Rule)},
		}}},
	}}
}

func exchanges(t *testing.T, profile string) []exchange {
	t.Helper()
	data, err := golden.Files.ReadFile(profile + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	node, problems := sheet.ReadYAML(profile+".yaml", data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var all []exchange
	r := sheet.Reader{File: profile + ".yaml"}
	sheet.Block{Fields: []sheet.Field{{
		Name:  "exchanges",
		Value: sheet.List(&all, func(x *exchange) sheet.Value { return x.table() }),
	}}}.Read(&r, node, "")
	for _, p := range r.Problems {
		t.Error(p)
	}
	return all
}

// judge classifies the answer as the road does: as much of the body as is asked for.
func judge(c *classify.Classifier, x exchange) classify.Verdict {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	in := classify.Exchange{
		Method: x.method, Path: x.path, Status: x.status, Header: http.Header{}, ContentLength: int64(len(x.body)),
		SentAt: now.Add(-time.Second), Now: now,
	}
	for name, value := range x.header {
		in.Header.Set(name, value)
	}
	if c.Peek(&in) > 0 {
		in.Body, in.BodyEnd, in.Peeked = []byte(x.body), true, true
	}
	return c.Classify(&in, &policy.Verify{Mode: policy.VerifyHead})
}

func TestGoldenExchangesMeanWhatTheyShould(t *testing.T) {
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		c, problems := classify.New(p.Rules)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, x := range exchanges(t, name) {
			t.Run(name+"/"+x.name, func(t *testing.T) {
				got := judge(c, x)
				if x.expect.Rule == "" {
					got.Rule = "" // the neutral table's words for it are its own matter
				}
				if diff := cmp.Diff(tell(got), tell(x.expect)); diff != "" {
					t.Errorf("verdict differs (-got +want):\n%s", diff)
				}
			})
		}
	}
}

func tell(v classify.Verdict) string {
	return fmt.Sprintf("%v, executed %v, retry %v, scope %v, wait %v, rule %q", v.Class, v.Executed, v.Retry, v.Scope, v.Wait, v.Rule)
}

func TestEveryRuleIsMatchedByAGoldenExchange(t *testing.T) {
	matched := map[string]bool{}
	for _, name := range provider.Names() {
		for _, x := range exchanges(t, name) {
			matched[x.expect.Rule] = true
		}
	}
	for _, name := range provider.Names() {
		p, err := provider.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Rules {
			if !matched[r.ID] {
				t.Errorf("rule %s is matched by no golden exchange", r.ID)
			}
		}
	}
}
