package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

func TestPreferWait(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  time.Duration
		has   bool
	}{
		{[]string{"wait=10"}, 10 * time.Second, true},
		{[]string{"Wait = 10"}, 10 * time.Second, true},
		{[]string{`wait="10"`}, 10 * time.Second, true},
		{[]string{"respond-async, wait=10"}, 10 * time.Second, true},
		{[]string{"respond-async=true , wait=7;x=1"}, 7 * time.Second, true},
		{[]string{"return=minimal", "wait=5"}, 5 * time.Second, true},
		{[]string{"wait=5, wait=9"}, 5 * time.Second, true},
		{[]string{`foo="a, wait=1", wait=2`}, 2 * time.Second, true},
		{[]string{`foo="a\", wait=1", wait=2`}, 2 * time.Second, true},
		{[]string{"wait=99999999999"}, maxBudget, true},
		{[]string{"respond-async; wait=10"}, 0, false}, // a parameter
		{[]string{"wait=x, wait=9"}, 0, false},         // the first counts
		{[]string{"wait=0"}, 0, false},
		{[]string{"wait=-1"}, 0, false},
		{[]string{"wait=+1"}, 0, false},
		{[]string{"wait=1e9"}, 0, false},
		{[]string{"wait=1.5"}, 0, false},
		{[]string{"wait"}, 0, false},
		{[]string{"wait="}, 0, false},
		{[]string{"waiting=3"}, 0, false},
		{[]string{"respond-async"}, 0, false},
		{[]string{""}, 0, false},
		{nil, 0, false},
	} {
		got, has := preferWait(c.lines)
		if got != c.want || has != c.has {
			t.Errorf("%q: got %v %v, want %v %v", c.lines, got, has, c.want, c.has)
		}
	}
}

func FuzzPreferWaitIsNeverNegative(f *testing.F) {
	for _, s := range []string{"wait=10", `a="b;c", wait="3"`, `wait="`, `\`, "wait=9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if d, ok := preferWait([]string{line}); d < 0 || ok && d == 0 {
			t.Fatalf("%q gave %v", line, d)
		}
	})
}

func TestRespondAsyncIsReadAsTheRFCSays(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  preference
	}{
		{[]string{"respond-async"}, preference{async: true}},
		{[]string{"Respond-Async"}, preference{async: true}},
		{[]string{"respond-async, wait=10"}, preference{true, true, 10 * time.Second}},
		{[]string{"wait=10", "respond-async"}, preference{true, true, 10 * time.Second}},
		{[]string{"respond-async; wait=10"}, preference{async: true}}, // a parameter is not the preference
		{[]string{`respond-async, wait="10"`}, preference{true, true, 10 * time.Second}},
		{[]string{"respond-async, wait=0"}, preference{async: true, waits: true}},
		{[]string{"respond-async, wait=-1"}, preference{async: true}},
		{[]string{"respond-async, wait=1e9"}, preference{async: true}},
		{[]string{"respond-async, wait"}, preference{async: true}},
		{[]string{"respond-async, wait=5, wait=9"}, preference{true, true, 5 * time.Second}},
		{[]string{"respond-async=true"}, preference{}},
		{[]string{`x="respond-async"`}, preference{}},
		{[]string{""}, preference{}},
		{[]string{"wait=10"}, preference{false, true, 10 * time.Second}},
	} {
		if got := preferAsync(c.lines); got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.lines, got, c.want)
		}
	}
}

func TestTheProviderIsToldThePreferencesThatAreItsOwn(t *testing.T) {
	for given, want := range map[string][]string{
		"respond-async":                              nil,
		"respond-async, wait=10":                     nil,
		"return=minimal, respond-async":              {"return=minimal"},
		`handling=lenient; x="a, b", wait=3, return`: {`handling=lenient; x="a, b", return`},
	} {
		if got := withoutAsync([]string{given}); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func FuzzPreferAsync(f *testing.F) {
	for _, s := range []string{"respond-async, wait=10", `a="\"", wait="1"`, ";;,,=", "wait=99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := preferAsync([]string{s})
		if p.wait < 0 || p.wait > 0 && !p.waits {
			t.Errorf("%q: got %+v", s, p)
		}
		left := withoutAsync([]string{s})
		if again := preferAsync(left); again.async || again.waits {
			t.Errorf("%q: what is left still asks heed: %q", s, left)
		}
	})
}

func FuzzEnvelopeRequest(f *testing.F) {
	f.Add("api", "/x?y=1", "X-A", "b")
	f.Add("api", "//evil.test/x", "Host", "evil.test")
	f.Add("a/b", "/%2e%2e/", "X\r\n", "c\nd")
	from := httptest.NewRequest("POST", "/_heed/calls", nil)
	f.Fuzz(func(t *testing.T, endpoint, path, name, value string) {
		e := queue.Envelope{Version: 1, Endpoint: endpoint, Method: "GET", Path: path, Header: http.Header{name: {value}}}
		r, err := requestOf(&e, from)
		if err != nil {
			return
		}
		if r.URL.Host != "" || r.URL.Scheme != "" || r.URL.User != nil {
			t.Errorf("%q %q leads to %q", endpoint, path, r.URL)
		}
		for k, lines := range r.Header {
			if strings.ContainsAny(k+strings.Join(lines, ""), "\r\n\x00") {
				t.Errorf("%q: %q can end a line", k, lines)
			}
		}
	})
}
