package app

import (
	"compress/zlib"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
)

func open(t *testing.T, e config.Endpoint, observe func(heed.Event)) *Endpoint {
	t.Helper()
	got, err := Open(settings(e), e.Name, Options{Getenv: func(string) string { return canary }}, observe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(got.Close)
	return got
}

func TestAnOpenedEndpointRetriesAndCarriesTheCredential(t *testing.T) {
	var keys []string
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		if keys = append(keys, r.Header.Get("X-Key")); len(keys) == 1 {
			w.WriteHeader(503)
		}
	})
	e.Auth = config.Auth{Kind: config.AuthHeader, Header: "X-Key", Value: "env:S"}
	e.Networks = nil // no guard stands in the way of the one who runs the program
	var done []string
	ep := open(t, e, func(ev heed.Event) {
		if ev.Kind == heed.CallDone {
			done = append(done, ev.Endpoint)
		}
	})
	u, err := ep.URL("/x")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := ep.Transport.RoundTrip(&http.Request{Method: "GET", URL: u, Header: http.Header{}})
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if got := strings.Join(keys, " "); resp.StatusCode != 200 || got != canary+" "+canary {
		t.Errorf("got %d with the keys %q", resp.StatusCode, got)
	}
	if got := strings.Join(done, " "); got != "api" {
		t.Errorf("ends told: got %q, want one of api", got)
	}
}

func TestTheURLOfAnOpenedEndpointStaysWithinIt(t *testing.T) {
	e := api(t, "api", func(http.ResponseWriter, *http.Request) {})
	e.URL.Path = "/v1"
	e.ForceQuery = map[string]string{"f": "json"}
	ep := open(t, e, nil)
	for path, want := range map[string]string{
		"": "/v1?f=json", "/": "/v1/?f=json", "?q=1": "/v1?q=1&f=json", "/a/../b?q=1&f=xml": "/v1/b?q=1&f=json", "/a b": "/v1/a%20b?f=json",
	} {
		got, err := ep.URL(path)
		if err != nil || got.RequestURI() != want || got.Host != e.URL.Host {
			t.Errorf("%q: got %v, %v, want %s", path, got, err, want)
		}
	}
	for _, path := range []string{"/..", "/%2e%2e/x", "//elsewhere.example/", "https://elsewhere.example/", "/%zz"} {
		if got, err := ep.URL(path); err == nil {
			t.Errorf("%q: got %v, want an error", path, got)
		}
	}
}

func TestAnUnknownEndpointIsToldWithThoseThereAre(t *testing.T) {
	cfg := settings(config.Endpoint{Name: "a"}, config.Endpoint{Name: "b"})
	cfg.File = "heed.yaml"
	_, err := Open(cfg, "c", Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), `no endpoint "c"; heed.yaml has a, b`) {
		t.Errorf("got %v", err)
	}
}

func TestAFactThatNobodyVerifiedIsToldOnce(t *testing.T) {
	var log journal
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Again", "1")
		w.WriteHeader(418)
	})
	teapot := classify.Match{Statuses: []classify.StatusRange{{From: 418, To: 418}}}
	e.Rules = []classify.Rule{{ID: "teapot", When: teapot, Then: classify.Verdict{Class: classify.Permanent, Rule: "teapot"}}}
	e.Hints = []hint.Source{{Header: "X-Again", Field: hint.Wait, Format: hint.Seconds}}
	e.Policy.Limits.Rate = 100
	e.Doubtful = map[string]provider.Grade{"teapot": provider.General, "X-Again": provider.Unverified, "limits": provider.Unverified}
	a := start(t, settings(e), Options{Out: &log})
	get(t, a.DataAddr(), "/api/x")
	get(t, a.DataAddr(), "/api/x")
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"fact":"teapot","grade":"general"`, `"fact":"X-Again","grade":"unverified"`, `"fact":"limits","grade":"unverified"`} {
		if got := strings.Count(log.String(), `"msg":"unverified fact used","endpoint":"api",`+want); got != 1 {
			t.Errorf("%s told %d times, want once:\n%s", want, got, log.String())
		}
	}
}

func TestAnOpenedEndpointTellsOnceOfAFactThatNobodyVerified(t *testing.T) {
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(418) })
	teapot := classify.Match{Statuses: []classify.StatusRange{{From: 418, To: 418}}}
	e.Rules = []classify.Rule{{ID: "teapot", When: teapot, Then: classify.Verdict{Class: classify.Permanent, Rule: "teapot"}}}
	e.Doubtful = map[string]provider.Grade{"teapot": provider.General, "limits": provider.Unverified, "idle": provider.Unverified}
	var told []Doubt
	ep, err := Open(settings(e), "api", Options{Doubt: func(d Doubt) { told = append(told, d) }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ep.Close)
	for range 2 {
		resp, err := ep.Transport.RoundTrip(&http.Request{Method: "GET", URL: e.URL, Header: http.Header{}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if diff := cmp.Diff(told, []Doubt{{"api", "limits", provider.Unverified}, {"api", "teapot", provider.General}}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestABrowsersCodingsDoNotHideAThrottle(t *testing.T) {
	var asked []string
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Accept-Encoding"))
		switch {
		case len(asked) > 1:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "[]")
		case strings.Contains(asked[0], "br"): // as a server does that likes it best
			w.Header().Set("Content-Encoding", "br")
			w.WriteHeader(403)
			_, _ = io.WriteString(w, "\x8b\x03\x80")
		default:
			w.Header().Set("Content-Encoding", "deflate")
			w.WriteHeader(403)
			z := zlib.NewWriter(w)
			_, _ = io.WriteString(z, `[{"errorCode":"REQUEST_LIMIT_EXCEEDED"}]`)
			_ = z.Close()
		}
	})
	limit := classify.Match{Statuses: []classify.StatusRange{{From: 403, To: 403}}, Text: regexp.MustCompile("REQUEST_LIMIT_EXCEEDED")}
	e.Rules = []classify.Rule{{ID: "limit", When: limit, Then: classify.Verdict{Class: classify.Throttled, Executed: classify.No, Retry: classify.Any}}}
	a := start(t, settings(e), Options{})
	status, body := get(t, a.DataAddr(), "/api/x", "Accept-Encoding", "gzip, deflate, br, zstd")
	if status != 200 || body != "[]" {
		t.Errorf("got %d %q, want the answer behind the throttle", status, body)
	}
	if diff := cmp.Diff(asked, []string{"gzip, deflate", "gzip, deflate"}); diff != "" {
		t.Errorf("asked for, -got +want:\n%s", diff)
	}
}

func TestGlobsAreOfThePathBelowTheURL(t *testing.T) {
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {})
	e.URL.Path = "/iii/sierra-api"
	e.Policy.Allow = []policy.Allow{{Path: "/v6/bibs/**"}}
	a := start(t, settings(e), Options{})
	for path, want := range map[string]int{"/api/v6/bibs/1": 200, "/api/v6/patrons/1": 403} {
		if got, _ := get(t, a.DataAddr(), path); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}
