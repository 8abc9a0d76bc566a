package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// quick is a policy whose retries take no noticeable time.
var quick = policy.Policy{
	Endpoint: "api",
	Retry:    policy.Retry{Budget: 10 * time.Second, MinPause: time.Millisecond},
	Backoff:  policy.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond},
	Hints:    policy.Hints{JitterMax: -1},
}

// rig is a gateway in front of an upstream, on loopback.
type rig struct {
	*testing.T
	*httptest.Server
	gateway  *Gateway
	endpoint Endpoint
	settings Settings
}

// upstream starts an API and a gateway in front of it. change may be nil.
func upstream(t *testing.T, api http.HandlerFunc, change func(*rig, *heed.Transport)) *rig {
	t.Helper()
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{DisableCompression: true}
	t.Cleanup(base.CloseIdleConnections)
	tr := &heed.Transport{Base: base, Policy: quick, Seed: 1}
	r := &rig{T: t, endpoint: Endpoint{Name: "api", URL: u, Transport: tr}}
	if change != nil {
		change(r, tr)
	}
	r.settings.Endpoints = append(r.settings.Endpoints, r.endpoint)
	r.gateway = New(r.settings)
	r.Server = httptest.NewServer(r.gateway)
	t.Cleanup(r.Server.Close)
	return r
}

func (r *rig) request(method, path, body string, header http.Header) *http.Request {
	r.Helper()
	req, err := http.NewRequest(method, r.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	maps.Copy(req.Header, header)
	return req
}

// answer is an answer that was read to its end.
type answered struct {
	*http.Response
	text string
}

func (r *rig) do(req *http.Request) answered {
	r.Helper()
	resp, err := r.Client().Transport.RoundTrip(req)
	if err != nil {
		r.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatalf("%s %s: read the answer: %v", req.Method, req.URL, err)
	}
	return answered{resp, string(b)}
}

func (r *rig) get(path string, header http.Header) answered {
	r.Helper()
	return r.do(r.request("GET", path, "", header))
}

// problem reads an answer of the gateway's own.
func (a answered) problem(t *testing.T) problem {
	t.Helper()
	if ct := a.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("status %d, content type %q: not a problem: %s", a.StatusCode, ct, a.text)
	}
	if a.Header.Get("Heed-Origin") != "gateway" || !strings.HasPrefix(a.Header.Get("Proxy-Status"), "heed; error=") {
		t.Errorf("a problem does not say whose it is: %v", a.Header)
	}
	var p problem
	d := json.NewDecoder(strings.NewReader(a.text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatalf("the problem is not readable: %v: %s", err, a.text)
	}
	if p.Status != a.StatusCode {
		t.Errorf("the problem says %d, the status line %d", p.Status, a.StatusCode)
	}
	return p
}

func wantProblem(t *testing.T, a answered, status int, name string) problem {
	t.Helper()
	p := a.problem(t)
	if p.Status != status || p.Type != problemPath+name {
		t.Errorf("got %d %s, want %d %s", p.Status, p.Type, status, problemPath+name)
	}
	if (status == 429 || status == 503) && a.Header.Get("Retry-After") == "" {
		t.Errorf("%d without Retry-After", status)
	}
	return p
}

func TestRequestArrivesAsItWasSent(t *testing.T) {
	var got string
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header["X-Multi"], " ", r.ContentLength, " ", string(b))
	}, nil)
	r.do(r.request("PUT", "/api/a%2Fb/c;v=1?q=%20x&q=2", "hello", http.Header{"X-Multi": {"1", "2"}}))
	if want := "PUT /base/a%2Fb/c;v=1?q=%20x&q=2 [1 2] 5 hello"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnswerComesBackAsItWas(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Multi"] = []string{"1", "2"}
		w.Header().Set("Content-Type", "text/x")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(418)
		io.WriteString(w, "raw")
	}, nil)
	a := r.get("/api/x", http.Header{"Accept-Encoding": {"gzip"}})
	if a.StatusCode != 418 || a.text != "raw" || a.Header.Get("Content-Type") != "text/x" || a.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %d %q %v", a.StatusCode, a.text, a.Header)
	}
	if diff := cmp.Diff(a.Header["X-Multi"], []string{"1", "2"}); diff != "" {
		t.Error(diff)
	}
	if a.Header.Get("Heed-Origin") != "" {
		t.Error("the upstream's answer claims to be the gateway's")
	}
}

func TestAnswerTellsWhatItTook(t *testing.T) {
	var n atomic.Int32
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) < 3 {
			w.WriteHeader(503)
			return
		}
		w.Header().Set("X-RateLimit-Limit", "100")
		w.Header().Set("X-RateLimit-Remaining", "42")
		w.Header().Set("X-RateLimit-Reset", "30")
		io.WriteString(w, "ok")
	}, nil)
	a := r.get("/api/x", nil)
	got := map[string]string{}
	for _, k := range []string{"Heed-Attempts", "Heed-Breaker", "Heed-Wait-Source", "Ratelimit", "Ratelimit-Policy"} {
		got[k] = a.Header.Get(k)
	}
	want := map[string]string{
		"Heed-Attempts": "3", "Heed-Breaker": "closed", "Heed-Wait-Source": "backoff",
		"Ratelimit": `"api";r=42;t=30`, "Ratelimit-Policy": `"api";q=100`,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if id := a.Header.Get("Heed-Call-Id"); len(id) != 16 {
		t.Errorf("call id %q", id)
	}
	if w := a.Header.Get("Heed-Waited"); !strings.HasPrefix(w, "0.0") {
		t.Errorf("waited %q, want seconds", w)
	}
}

func TestQuotaThatTheUpstreamTellsIsNotReplaced(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("RateLimit", `"x";r=7;t=1`)
	}, nil)
	if got := r.get("/api/x", nil).Header["Ratelimit"]; !slices.Equal(got, []string{`"x";r=7;t=1`}) {
		t.Errorf("got %q", got)
	}
}

func TestUpstreamCannotSpeakAsTheGateway(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Heed-Origin", "gateway")
		w.Header().Set("Heed-Call-Id", "forged")
	}, nil)
	h := r.get("/api/x", nil).Header
	if h.Get("Heed-Origin") != "" || h.Get("Heed-Call-Id") == "forged" {
		t.Errorf("got %v", h)
	}
}

func TestCredentialsOfTheCallerStayHere(t *testing.T) {
	secrets := http.Header{
		"Authorization": {"Basic x"}, "Cookie": {"a=b"}, "Proxy-Authorization": {"Basic y"}, "Heed-Tenant": {"t"}, "Heed-Anything": {"z"},
	}
	for _, c := range []struct {
		passthrough bool
		want        []string
	}{
		{false, nil},
		{true, []string{"Authorization", "Cookie"}},
	} {
		var got []string
		r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
			for k := range r.Header {
				if _, secret := secrets[k]; secret {
					got = append(got, k)
				}
			}
		}, func(r *rig, _ *heed.Transport) { r.endpoint.Passthrough = c.passthrough })
		r.get("/api/x", secrets)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("passthrough %v: %v arrived, want %v", c.passthrough, got, c.want)
		}
	}
}

func TestHopByHopFieldsEndAtEachHop(t *testing.T) {
	var got http.Header
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Connection", "X-Down")
		w.Header().Set("X-Down", "1")
		w.Header().Set("Keep-Alive", "timeout=1")
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("X-End", "1")
	}, nil)
	a := r.get("/api/x", http.Header{
		"Connection": {"X-Up, keep-alive", "x-up-2"}, "X-Up": {"1"}, "X-Up-2": {"1"}, "Keep-Alive": {"1"},
		"Proxy-Connection": {"close"}, "Te": {"trailers, deflate"}, "Upgrade": {"h2c"}, "X-End": {"1"}, "Expect": {"100-continue"},
	})
	for _, k := range []string{"X-Up", "X-Up-2", "Keep-Alive", "Proxy-Connection", "Upgrade", "Connection", "Expect"} {
		if got[k] != nil {
			t.Errorf("%s crossed towards the upstream", k)
		}
	}
	for _, k := range []string{"X-Down", "Keep-Alive", "Proxy-Authenticate"} {
		if a.Header[k] != nil {
			t.Errorf("%s crossed towards the caller", k)
		}
	}
	if got.Get("Te") != "trailers" || got.Get("X-End") != "1" || a.Header.Get("X-End") != "1" {
		t.Errorf("end-to-end fields got lost: %v, %v", got, a.Header)
	}
}

func TestUserAgentIsTheCallersOrNone(t *testing.T) {
	var got []string
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header["User-Agent"] }, nil)
	r.get("/api/x", http.Header{"User-Agent": {"mine"}})
	if !slices.Equal(got, []string{"mine"}) {
		t.Errorf("got %q", got)
	}
	req := r.request("GET", "/api/x", "", nil)
	req.Header["User-Agent"] = []string{""} // sends none
	r.do(req)
	if got != nil {
		t.Errorf("got %q, want none", got)
	}
}

func TestAnswerTrailersCrossAndRequestTrailersDoNot(t *testing.T) {
	var got http.Header
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got = r.Trailer
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Late", "1")
	}, nil)
	req := r.request("POST", "/api/x", "", nil)
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader("up")), -1
	req.Trailer = http.Header{"X-Up": {"7"}, "Authorization": {"Bearer evil"}, "Heed-Token": {"x"}}
	a := r.do(req)
	if len(got) > 0 {
		t.Errorf("the upstream got the trailers %v", got)
	}
	if a.Trailer.Get("X-Sum") != "42" || a.Trailer.Get("X-Late") != "1" {
		t.Errorf("the caller got the trailers %v", a.Trailer)
	}
}

func TestRedirectsAreReturned(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/base/next", http.StatusFound) }, nil)
	a := r.get("/api/x", nil)
	if a.StatusCode != 302 || a.Header.Get("Location") != "/base/next" {
		t.Errorf("got %d to %q", a.StatusCode, a.Header.Get("Location"))
	}
}

func TestRedirectsWithinTheEndpointAreFollowedWhereAskedFor(t *testing.T) {
	var asked []string
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		switch r.URL.Path {
		case "/base/a":
			http.Redirect(w, r, "b", http.StatusFound)
		case "/base/b":
			http.Redirect(w, r, "/base/c", http.StatusTemporaryRedirect)
		case "/base/out":
			http.Redirect(w, r, "/admin", http.StatusFound)
		case "/base/away":
			http.Redirect(w, r, "http://other.test/", http.StatusFound)
		case "/base/loop":
			http.Redirect(w, r, "loop", http.StatusFound)
		default:
			io.WriteString(w, "end")
		}
	}, func(r *rig, _ *heed.Transport) { r.endpoint.FollowSameOrigin = true })
	if a := r.get("/api/a", nil); a.text != "end" {
		t.Errorf("got %d %q", a.StatusCode, a.text)
	}
	for _, req := range []*http.Request{
		r.request("GET", "/api/out", "", nil), r.request("GET", "/api/away", "", nil),
		r.request("POST", "/api/a", "x", nil), r.request("GET", "/api/loop", "", nil),
	} {
		if a := r.do(req); a.StatusCode != 302 {
			t.Errorf("%s %s: got %d, want the redirect itself", req.Method, req.URL.Path, a.StatusCode)
		}
	}
	if slices.Contains(asked, "GET /admin") {
		t.Error("a redirect led out of the base path")
	}
}

func TestPagingStaysOnTheGateway(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", fmt.Sprintf(`<http://%s/base/x?page=2>; rel="next"`, r.Host))
		w.Header().Set("Location", "/base/x/1")
	}, func(r *rig, _ *heed.Transport) { r.endpoint.RewriteLinks = true })
	a := r.get("/api/x", nil)
	if got, want := a.Header.Get("Link"), `<`+r.URL+`/api/x?page=2>; rel="next"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := a.Header.Get("Location"), r.URL+"/api/x/1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIdempotencyKeyGoesUnderTheProvidersName(t *testing.T) {
	var n atomic.Int32
	var mu sync.Mutex
	var got [][]string
	api := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, []string{r.Header.Get("X-Request-Key"), r.Header.Get("Idempotency-Key")})
		mu.Unlock()
		if n.Add(1) == 1 {
			w.WriteHeader(500)
		}
	}
	r := upstream(t, api, func(_ *rig, tr *heed.Transport) { tr.Policy.Key.Header = "X-Request-Key" })
	a := r.do(r.request("POST", "/api/x", "pay", http.Header{"Idempotency-Key": {`"abc-1"`}}))
	if a.StatusCode != 200 {
		t.Errorf("got %d", a.StatusCode)
	}
	if diff := cmp.Diff(got, [][]string{{"abc-1", ""}, {"abc-1", ""}}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestIdempotencyKeyCrossesWhereTheProviderHasNoNameForIt(t *testing.T) {
	var got string
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("Idempotency-Key") }, nil)
	r.do(r.request("PUT", "/api/x", "x", http.Header{"Idempotency-Key": {`"abc"`}}))
	if got != `"abc"` {
		t.Errorf("got %q", got)
	}
}

func TestSwapLetsCallsInFlightFinishOnTheOldSettings(t *testing.T) {
	hold, arrived := make(chan struct{}), make(chan struct{})
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-hold
		io.WriteString(w, "old")
	}, nil)
	got := make(chan answered)
	go func() { got <- r.get("/api/x", nil) }()
	<-arrived
	drained := r.gateway.Swap(Settings{})
	wantProblem(t, r.get("/api/x", nil), 404, "unknown-endpoint")
	select {
	case <-drained:
		t.Error("the old settings are said to be unused while a call is in flight")
	default:
	}
	close(hold)
	if a := <-got; a.text != "old" {
		t.Errorf("got %d %q", a.StatusCode, a.text)
	}
	<-drained
}

func TestSwapOfIdleSettingsDrainsAtOnce(t *testing.T) {
	g := New(Settings{})
	<-g.Swap(Settings{})
}

func TestPanicIsAnsweredAndTellsNothing(t *testing.T) {
	var log bytes.Buffer
	g := New(Settings{
		Endpoints: []Endpoint{{Name: "api", URL: &url.URL{Scheme: "http", Host: "h"}, Transport: &heed.Transport{Policy: quick, Base: thrower{}}}},
		Log:       logTo(&log),
	})
	w := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/api/x", nil)
	req.Host = "localhost"
	g.ServeHTTP(w, req)
	a := answered{w.Result(), w.Body.String()}
	wantProblem(t, a, 500, "internal-error")
	if strings.Contains(a.text, "hunter2") || strings.Contains(log.String(), "hunter2") {
		t.Errorf("what was thrown is told: %s %s", a.text, log.String())
	}
	if !strings.Contains(log.String(), "gateway failed") {
		t.Errorf("nothing was logged: %s", log.String())
	}
	if g.Calls() != 0 {
		t.Errorf("%d calls are in flight", g.Calls())
	}
}

type thrower struct{}

func (thrower) RoundTrip(*http.Request) (*http.Response, error) { panic("hunter2") }
