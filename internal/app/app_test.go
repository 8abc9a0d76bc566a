package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/policy"
)

const canary = "c4n4ry-7f3a"

// journal is a log that many goroutines may write.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func settings(endpoints ...config.Endpoint) *config.Config {
	return &config.Config{
		Version: 1, Endpoints: endpoints,
		Listen: config.Listen{Data: "127.0.0.1:0", Admin: "127.0.0.1:0"},
	}
}

// api starts an upstream and returns it as an endpoint that may be dialed.
func api(t *testing.T, name string, h http.HandlerFunc) config.Endpoint {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return config.Endpoint{
		Name: name, URL: u, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Policy: policy.Policy{Backoff: policy.Backoff{Base: time.Millisecond, Cap: time.Millisecond}},
	}
}

func start(t *testing.T, cfg *config.Config, o Options) *App {
	t.Helper()
	a, err := New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Stop(context.Background()) })
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// get asks the data port and returns status and body.
func get(t *testing.T, addr, path string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Transport{DisableKeepAlives: true}
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode, string(b)
}

func TestOneProcessServesBothPortsAndLogs(t *testing.T) {
	var log journal
	asked := 0
	a := start(t, settings(api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(503)
			return
		}
		io.WriteString(w, "hello")
	})), Options{Out: &log, Version: "v1"})
	if code, body := get(t, a.DataAddr(), "/api/x"); code != 200 || body != "hello" {
		t.Errorf("got %d %q", code, body)
	}
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ready", "/metrics": `heed_attempts_total{`, "/_heed/endpoints": `"name":"api"`, "/_heed/gates": `"endpoint":"api"`,
	} {
		if code, body := get(t, a.AdminAddr(), path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.300s", path, code, body)
		}
	}
	if code, _ := get(t, a.DataAddr(), "/_heed/waiting"); code != 404 {
		t.Errorf("the data port serves the admin API: %d", code)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`"msg":"heed serves"`, `"kind":"attempt"`, `"kind":"call"`, `"status_code":503`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log.String())
		}
	}
}

func TestAddressesThatAnybodyCanReachNeedTokens(t *testing.T) {
	for _, c := range []struct {
		change func(*config.Config)
		want   string
	}{
		{func(c *config.Config) { c.Listen.Data = "0.0.0.0:0" }, "listen.data"},
		{func(c *config.Config) { c.Listen.Admin = ":0" }, "listen.admin_token"},
		{func(c *config.Config) {
			c.Listen.Data = "0.0.0.0:0"
			c.Clients = []config.Client{{Name: "etl", Token: "env:TOKEN"}}
		}, ""},
		{func(c *config.Config) { c.Listen.Admin, c.Listen.AdminToken = "0.0.0.0:0", "env:TOKEN" }, ""},
	} {
		cfg := settings()
		c.change(cfg)
		a, err := New(cfg, Options{Getenv: func(string) string { return "secret" }})
		if err != nil {
			t.Fatal(err)
		}
		err = a.Start(t.Context())
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%+v: got %v, want %q", cfg.Listen, err, c.want)
		}
		a.Stop(context.Background())
	}
}

func TestEveryMissingSecretIsNamedAtOnce(t *testing.T) {
	e := config.Endpoint{Name: "api", URL: &url.URL{Scheme: "http", Host: "h"}, Auth: config.Auth{Kind: config.AuthBasic, User: "env:U", Password: "env:P"}}
	cfg := settings(e)
	cfg.Clients = []config.Client{{Name: "etl", Token: "env:T"}}
	cfg.Listen.AdminToken = "env:A"
	_, err := New(cfg, Options{Getenv: func(string) string { return "" }})
	for _, want := range []string{"endpoints.api.auth.user", "endpoints.api.auth.password", "clients[0].token", "listen.admin_token"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
}

func TestCredentialsReachTheUpstreamAndNothingElse(t *testing.T) {
	var log journal
	for _, c := range []struct {
		auth config.Auth
		want string
	}{
		{config.Auth{Kind: config.AuthHeader, Value: "env:S", Prefix: "apikey "}, "apikey " + canary + " "},
		{config.Auth{Kind: config.AuthHeader, Header: "X-Key", Value: "env:S"}, " " + canary},
		{config.Auth{Kind: config.AuthQuery, Query: "key", Value: "env:S"}, "  key=" + canary},
		{config.Auth{Kind: config.AuthBasic, User: "env:S", Password: "env:S"}, "Basic "},
		{config.Auth{Kind: config.AuthNone}, " "},
	} {
		var got string
		e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization") + " " + r.Header.Get("X-Key")
			if r.URL.RawQuery != "" {
				got += " " + r.URL.RawQuery
			}
		})
		e.Auth = c.auth
		a := start(t, settings(e), Options{Out: &log, Getenv: func(string) string { return canary }})
		_, body := get(t, a.DataAddr(), "/api/x/"+canary, "Authorization", "Bearer the-callers")
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "the-callers") {
			t.Errorf("%s: got %q, want %q", c.auth.Kind, got, c.want)
		}
		for _, path := range []string{"/_heed/endpoints", "/_heed/gates", "/metrics"} {
			_, text := get(t, a.AdminAddr(), path)
			body += text
		}
		a.Stop(context.Background())
		if strings.Contains(body+log.String(), canary) {
			t.Errorf("%s: the secret is told:\n%s\n%s", c.auth.Kind, body, log.String())
		}
	}
}

func TestSessionIsFetchedThroughTheGuard(t *testing.T) {
	var paths []string
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.Method+" "+r.URL.Path+" "+strings.Fields(r.Header.Get("Authorization") + " -")[0])
		if r.Method == "POST" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token":"t0k3n","token_type":"bearer","expires_in":3600}`)
		}
	})
	e.Auth = config.Auth{Kind: config.AuthSierra, User: "env:S", Password: "env:S"}
	a := start(t, settings(e), Options{Getenv: func(string) string { return canary }})
	if code, body := get(t, a.DataAddr(), "/api/v6/bibs"); code != 200 {
		t.Fatalf("got %d %s", code, body)
	}
	if got, want := strings.Join(paths, ", "), "POST /v6/token Basic, GET /v6/bibs Bearer"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	paths, e.Networks = nil, nil // the issuer is on loopback too
	e.Policy.Retry.Off = true
	b := start(t, settings(e), Options{Getenv: func(string) string { return canary }})
	if code, body := get(t, b.DataAddr(), "/api/v6/bibs", "Heed-Budget", "1s"); code < 500 || paths != nil || strings.Contains(body, canary) {
		t.Errorf("got %d %s after %v, want it blocked", code, body, paths)
	}
}

func TestGatewayIsNeverItsOwnUpstream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cfg := settings(config.Endpoint{
		Name: "self", URL: &url.URL{Scheme: "http", Host: addr}, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	cfg.Listen.Data = addr
	a := start(t, cfg, Options{})
	if code, body := get(t, a.DataAddr(), "/self/self/x"); code != 502 || !strings.Contains(body, "the address of this gateway itself") {
		t.Errorf("got %d %s", code, body)
	}
}

func TestNameThatMovesToAPrivateAddressIsNotDialed(t *testing.T) {
	e := config.Endpoint{Name: "api", URL: &url.URL{Scheme: "http", Host: "rebind.test"}}
	a := start(t, settings(e), Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
	}})
	if code, body := get(t, a.DataAddr(), "/api/latest/meta-data"); code != 502 || !strings.Contains(body, "a cloud metadata service") {
		t.Errorf("got %d %s", code, body)
	}
}

type result struct {
	code int
	body string
}

// busy starts a process with one call in flight, to /api/slow, whose upstream
// answers when hold is closed. Its result goes to first.
func busy(t *testing.T) (a *App, first chan result, hold chan struct{}) {
	t.Helper()
	arrived, first, hold := make(chan struct{}), make(chan result), make(chan struct{})
	a = start(t, settings(api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		io.WriteString(w, "old")
	})), Options{})
	addr := a.DataAddr()
	go func() {
		code, body := get(t, addr, "/api/slow")
		first <- result{code, body}
	}()
	<-arrived
	return a, first, hold
}

func TestStopLetsCallsInFlightFinish(t *testing.T) {
	a, first, hold := busy(t)
	addr := a.DataAddr()
	stopped := make(chan error)
	go func() { stopped <- a.Stop(context.Background()) }()
	for !refused(addr) {
		runtime.Gosched()
	}
	if code, body := get(t, a.AdminAddr(), "/readyz"); code != 503 {
		t.Errorf("readyz says %d %s while heed stops", code, body)
	}
	close(hold)
	if got := <-first; got != (result{200, "old"}) {
		t.Errorf("the call in flight got %+v", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func refused(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err == nil {
		c.Close()
	}
	return err != nil
}

func TestStopGivesUpWhenItsContextEnds(t *testing.T) {
	a, first, _ := busy(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	err := a.Stop(ctx)
	if err == nil || !strings.Contains(err.Error(), "1 call(s) were given up: enough") {
		t.Errorf("got %v", err)
	}
	if got := <-first; got.code != 503 || !strings.Contains(got.body, "/_heed/problems/canceled") {
		t.Errorf("the call that was given up got %+v", got)
	}
}

func TestStopAfterNewAloneReleasesEverything(t *testing.T) {
	a, err := New(settings(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := a.Start(t.Context()); err == nil {
		t.Error("it was started after it was stopped")
	}
}

func TestNoGoroutineIsLeftAfterStop(t *testing.T) {
	e := api(t, "api", func(http.ResponseWriter, *http.Request) {})
	a := start(t, settings(e), Options{Out: io.Discard})
	get(t, a.DataAddr(), "/api/x")
	if err := a.Reload(settings(e)); err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		left := ours()
		if left == "" {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("goroutines are left:\n%s", left)
		default:
			runtime.Gosched() // connections close on goroutines of their own
		}
	}
}

// ours returns the stacks of goroutines that run heed's own code, tests apart.
func ours() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var left []string
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(g, "heedproject/heed") && !strings.Contains(g, "testing.tRunner") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}
