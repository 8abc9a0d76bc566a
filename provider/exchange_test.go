package provider_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider"
)

// one reads a document with one exchange.
func one(t *testing.T, text string) *provider.Exchange {
	t.Helper()
	all, problems := provider.ReadExchanges("x.yaml", []byte("exchanges:\n  - name: x\n"+text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &all[0]
}

const get = "    request: {method: GET, path: '/a?b=c'}\n"
const fine = "    expect: {class: ok, executed: yes, retry: never, scope: call}\n"

// try says what x means to a profile with these rules.
func try(t *testing.T, rules string, x *provider.Exchange) provider.Outcome {
	t.Helper()
	p, problems := provider.Read("x.yaml", []byte("name: x\ntitle: x\nrules:\n"+rules))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	j, err := p.Judge()
	if err != nil {
		t.Fatal(err)
	}
	return j.Try(x)
}

const envelope = "  - {id: x/e, when: {status: [200], json: [{path: $.error}]}, then: {class: invalid}}\n"

func TestABodyThatIsSentCompressedIsReadLikeAnyOther(t *testing.T) {
	x := one(t, get+"    response: {status: 200, header: {Content-Type: application/json}, body: '{\"error\":1}', encoding: gzip}\n"+fine)
	if wire, _ := x.Response.Wire(); strings.Contains(string(wire), "error") {
		t.Errorf("got %q on the wire, want it compressed", wire)
	}
	if got := try(t, envelope, x).Verdict.Rule; got != "x/e" {
		t.Errorf("got %q, want x/e", got)
	}
}

func TestACodingThatIsNotKnownHidesTheBody(t *testing.T) {
	x := one(t, get+"    response: {status: 200, header: {Content-Type: application/json, Content-Encoding: br}, body: '{\"error\":1}'}\n"+fine)
	if got := try(t, envelope, x).Verdict.Class; got != classify.OK {
		t.Errorf("got %v, want ok", got)
	}
}

func TestACutEndsTheBodyAndNotItsLength(t *testing.T) {
	x := one(t, get+"    response: {status: 200, header: {Content-Type: text/plain}, body: hello, cut: 2}\n"+fine)
	wire, length := x.Response.Wire()
	if string(wire) != "he" || length != 5 {
		t.Errorf("got %q of %d bytes, want he of 5", wire, length)
	}
	if got := try(t, envelope, x).Verdict.Class; got != classify.Truncated {
		t.Errorf("got %v, want truncated", got)
	}
}

func TestAFailureHasNoAnswer(t *testing.T) {
	x := one(t, get+"    failure: refused\n    expect: {class: transient, executed: no, retry: any, scope: host}\n")
	o := try(t, envelope, x)
	if diff := cmp.Diff(x.Differs(&o), []string(nil)); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestThePathOfARuleIsThatOfTheRequestWithoutItsQuery(t *testing.T) {
	x := one(t, get+"    response: {status: 200}\n"+fine)
	rules := "  - {id: x/p, when: {paths: [/a]}, then: {class: permanent}}\n"
	if got := try(t, rules, x).Verdict.Rule; got != "x/p" {
		t.Errorf("got %q, want x/p", got)
	}
}

func TestEveryDifferenceIsTold(t *testing.T) {
	x := one(t, get+`    response: {status: 429, header: {Retry-After: '7', X-RateLimit-Remaining: '3'}}
    expect: {class: overloaded, executed: maybe, retry: once, scope: host, wait: 9s, source: X-Wait, rule: x/none, remaining: 0}
`)
	o := try(t, envelope, x)
	want := []string{"class: got throttled, want overloaded", "executed: got no, want maybe", "retry: got any, want once",
		"scope: got key, want host", "wait: got 7s, want 9s", "source: got retry-after, want x-wait",
		"rule: got none, want x/none", "remaining: got 3, want 0"}
	if diff := cmp.Diff(x.Differs(&o), want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestWhatMakesACallerWait(t *testing.T) {
	const throttle = "  - {id: x/t, when: {status: [429], header: {X-Rule: present}}, then: {class: throttled, wait: 20s}}\n" +
		"  - {id: x/c, when: {status: [429], header: {X-Call: present}}, then: {class: throttled, scope: call}}\n"
	for _, row := range []struct{ name, header, wait, source string }{
		{"the header", "Retry-After: '7'", "7s", "Retry-After"},
		{"the rule", "X-Rule: a", "20s", "x/t"},
		{"the longer of the two, the rule", "X-Rule: a, Retry-After: '7'", "20s", "x/t"},
		{"the longer of the two, the header", "X-Rule: a, Retry-After: '70'", "1m10s", "Retry-After"},
		{"the reset of a quota that is used up", "X-RateLimit-Remaining: '0', X-RateLimit-Reset: '9'", "9s", "X-Ratelimit-Reset"},
		{"not the reset of a quota that is left", "X-RateLimit-Remaining: '1', X-RateLimit-Reset: '9'", "0s", ""},
		{"not the reset, where it concerns one call", "X-Call: a, X-RateLimit-Remaining: '0', X-RateLimit-Reset: '9'", "0s", ""},
		{"nothing", "X-A: b", "0s", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := try(t, throttle, one(t, get+"    response: {status: 429, header: {"+row.header+"}}\n"+fine))
			if diff := cmp.Diff([]string{o.Wait.String(), o.Source}, []string{row.wait, row.source}); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestAnExchangeKnowsWhereItIsWritten(t *testing.T) {
	x := one(t, get+"    response: {status: 200}\n"+fine)
	if x.File != "x.yaml" || x.Line != 2 {
		t.Errorf("got %s:%d, want x.yaml:2", x.File, x.Line)
	}
}

func TestWhatIsWrongWithAnExchangeIsTold(t *testing.T) {
	for text, want := range map[string]string{
		get + "    response: {status: 200, body: a, base64: YQ==}\n" + fine:                   "exchanges[0].response.base64: there are two bodies",
		get + "    response: {status: 200, base64: '%'}\n" + fine:                             "exchanges[0].response.base64: this is not base64",
		get + "    response: {status: 20}\n" + fine:                                           "exchanges[0].response.status: 20 is too small",
		get + "    failure: tired\n" + fine:                                                   `exchanges[0].failure: "tired" is not known`,
		"    request: {method: get, path: /}\n    response: {status: 200}\n" + fine:           `exchanges[0].request.method: "get" is not a method`,
		get + "    response: {status: 200, header: {'a b': c}}\n" + fine:                      "exchanges[0].response.header.a b: this is not the name of a header",
		get + "    response: {status: 200}\n    expect: {class: ok}\n":                        "exchanges[0].expect.executed: executed is missing",
		get + "    response: {status: 200}\n" + strings.Replace(fine, "}", ", source: x}", 1): "exchanges[0].expect.source: there is no wait that could have a source",
	} {
		_, problems := provider.ReadExchanges("x.yaml", []byte("exchanges:\n  - name: x\n"+text))
		if len(problems) == 0 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("got %v, want %s", problems, want)
		}
	}
}

func TestAStandardHeaderInAnotherUnitIsAMatterOfHints(t *testing.T) {
	p, problems := provider.Read("x.yaml", []byte("name: x\ntitle: x\nhints: {sources: [{header: Retry-After, field: wait, format: ms}]}\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	j, err := p.Judge()
	if err != nil {
		t.Fatal(err)
	}
	o := j.Try(one(t, get+"    response: {status: 429, header: {Retry-After: '1337'}}\n"+fine))
	if got := o.Wait.String(); got != "1.337s" {
		t.Errorf("got %s, want 1.337s", got)
	}
}
