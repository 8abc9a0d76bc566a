package gateway

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heedproject/heed"
)

// scoped starts a gateway with two clients.
func scoped(t *testing.T, api http.HandlerFunc, passthrough bool) *rig {
	return upstream(t, api, func(r *rig, _ *heed.Transport) {
		r.endpoint.Passthrough = passthrough
		r.settings.Clients = []Client{
			{Name: "etl", Token: DigestOf("etl-token"), Endpoints: []string{"api"}, Methods: []string{"GET"}},
			{Name: "other", Token: DigestOf("other-token"), Endpoints: []string{"elsewhere"}},
			{Name: "all", Token: DigestOf("all-token")},
		}
	})
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func TestClientsDoWhatTheirTokenPermits(t *testing.T) {
	r := scoped(t, func(http.ResponseWriter, *http.Request) {}, false)
	for _, c := range []struct {
		method string
		header http.Header
		status int
	}{
		{"GET", bearer("etl-token"), 200},
		{"GET", http.Header{"Authorization": {"bearer  etl-token"}}, 200},
		{"GET", http.Header{"Heed-Token": {"etl-token"}}, 200},
		{"POST", bearer("etl-token"), 403},
		{"GET", bearer("other-token"), 403},
		{"DELETE", bearer("all-token"), 200},
		{"GET", bearer("etl-token2"), 401},
		{"GET", bearer(""), 401},
		{"GET", http.Header{"Authorization": {"Basic etl-token"}}, 401},
		{"GET", http.Header{"Heed-Token": {"wrong"}, "Authorization": {"Bearer etl-token"}}, 401},
		{"GET", http.Header{"Heed-Token": {"etl-token", "etl-token"}}, 401},
		{"GET", nil, 401},
	} {
		if got := r.do(r.request(c.method, "/api/x", "", c.header)); got.StatusCode != c.status {
			t.Errorf("%s with %v: got %d, want %d", c.method, c.header, got.StatusCode, c.status)
		}
	}
}

func TestMissingTokenIsAProblemThatNamesTheScheme(t *testing.T) {
	r := scoped(t, nil, false)
	a := r.get("/api/x", nil)
	wantProblem(t, a, 401, "token-required")
	if got := a.Header.Get("WWW-Authenticate"); got != `Bearer realm="heed"` {
		t.Errorf("got %q", got)
	}
}

func TestNamesOfEndpointsAreNotListedForClients(t *testing.T) {
	r := scoped(t, nil, false)
	if p := wantProblem(t, r.get("/nope", bearer("etl-token")), 404, "unknown-endpoint"); p.Endpoints != nil {
		t.Errorf("got %v", p.Endpoints)
	}
}

func TestClientTokenIsNotPassedThrough(t *testing.T) {
	var got string
	r := scoped(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }, true)
	r.get("/api/x", bearer("all-token"))
	if got != "" {
		t.Errorf("the provider got %q", got)
	}
	r.get("/api/x", http.Header{"Heed-Token": {"all-token"}, "Authorization": {"Bearer the-providers"}})
	if got != "Bearer the-providers" {
		t.Errorf("the provider got %q", got)
	}
}

func TestPagesInBrowsersCannotUseAnOpenGateway(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) {}, nil)
	for _, c := range []struct {
		method, host string
		header       http.Header
		status       int
	}{
		{"GET", "", nil, 200},
		{"GET", "localhost:8642", nil, 200},
		{"GET", "LOCALHOST", nil, 200},
		{"GET", "[::1]:1", nil, 200},
		{"GET", "heed.localhost", nil, 200},
		{"GET", "evil.test", nil, 421}, // rebinding
		{"GET", "127.0.0.1.evil.test", nil, 421},
		{"GET", "10.0.0.1", nil, 421},
		{"GET", "localhost.evil.test:80", nil, 421},
		{"GET", "", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 421},
		{"GET", "", http.Header{"Sec-Fetch-Site": {"same-site"}}, 421},
		{"GET", "", http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"POST", "", http.Header{"Origin": {"https://evil.test"}}, 421},
		{"POST", "", http.Header{"Origin": {"null"}}, 421},
	} {
		req := r.request(c.method, "/api/x", "", c.header)
		req.Host = c.host
		if got := r.do(req); got.StatusCode != c.status {
			t.Errorf("%s %s %v: got %d, want %d", c.method, c.host, c.header, got.StatusCode, c.status)
		}
	}
}

func TestListenersThatAnybodyCanReachNeedTokens(t *testing.T) {
	for _, c := range []struct {
		addr    string
		guarded bool
		ok      bool
	}{
		{"127.0.0.1:0", false, true},
		{"localhost:0", false, true},
		{"0.0.0.0:0", false, false},
		{":0", false, false},
		{"0.0.0.0:0", true, true},
		{"unix:" + filepath.Join(t.TempDir(), "s"), false, true},
		{"nonsense", false, false},
	} {
		l, err := Listen("listen.data", c.addr, c.guarded)
		if (err == nil) != c.ok {
			t.Errorf("%s, guarded %v: got %v", c.addr, c.guarded, err)
		}
		if err == nil {
			l.Close()
		} else if !strings.Contains(err.Error(), "listen.data") {
			t.Errorf("%s: the error does not say where: %v", c.addr, err)
		}
	}
}

func TestSocketOfADeadProcessIsTakenOverAndALiveOneIsNot(t *testing.T) {
	addr := "unix:" + filepath.Join(t.TempDir(), "s")
	l, err := Listen("listen.data", addr, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("listen.data", addr, false); err == nil {
		t.Error("a live socket was taken over")
	}
	l.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	l.Close()
	l, err = Listen("listen.data", addr, false)
	if err != nil {
		t.Fatalf("a dead socket was not taken over: %v", err)
	}
	l.Close()
}

func admin(t *testing.T, s Settings) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(New(s).Admin())
	t.Cleanup(srv.Close)
	return srv
}

func status(t *testing.T, method, url, host string, header http.Header) int {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	maps.Copy(req.Header, header)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestAdminPortChecksWhoAsks(t *testing.T) {
	open := admin(t, Settings{})
	locked := admin(t, Settings{Admin: DigestOf("root-token")})
	for _, c := range []struct {
		srv          *httptest.Server
		method, path string
		host         string
		header       http.Header
		status       int
	}{
		{open, "GET", "/_heed/waiting", "", nil, 200},
		{open, "GET", "/healthz", "", nil, 200},
		{open, "GET", "/readyz", "", nil, 503},
		{open, "GET", "/metrics", "", nil, 404},
		{open, "GET", "/_heed/waiting", "evil.test", nil, 421},
		{open, "GET", "/_heed/waiting", "", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 421},
		{open, "POST", "/_heed/waiting", "", http.Header{"Origin": {"https://evil.test"}}, 421},
		{open, "POST", "/_heed/waiting", "", nil, 405},
		{locked, "GET", "/_heed/waiting", "", nil, 401},
		{locked, "GET", "/_heed/waiting", "any.name", bearer("root-token"), 200},
		{locked, "GET", "/_heed/gates", "", bearer("wrong"), 401},
		{locked, "GET", "/healthz", "", nil, 200},
	} {
		if got := status(t, c.method, c.srv.URL+c.path, c.host, c.header); got != c.status {
			t.Errorf("%s %s %s %v: got %d, want %d", c.method, c.path, c.host, c.header, got, c.status)
		}
	}
}
