package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
)

// canary is planted in every input and must not come out of anything that heed
// itself says.
const canary = "c4n4ry-7f3a"

func TestSecretsComeOutOfNothing(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	note := func(what string, v any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&out, "%s: %v\n", what, v)
	}
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/base/cut/"):
			c, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(c, canary+"\r\n\r\n")
			c.Close()
		case strings.HasPrefix(r.URL.Path, "/base/redirect/"):
			w.Header().Set("Location", r.URL.String()) // repeats our credential
			w.WriteHeader(302)
		default:
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(503)
			io.WriteString(w, canary)
		}
	}, func(r *rig, tr *heed.Transport) {
		tr.Token = token.Query("api_key", canary)
		tr.Observe = func(e heed.Event) {
			b, _ := json.Marshal(e)
			note("event", fmt.Sprintf("%v %+v %s", e, e, b))
		}
		tr.Policy.Breaker = policy.Breaker{Off: true}
		tr.Policy.Allow = []policy.Allow{{Methods: []string{"GET", "POST"}}}
		r.endpoint.RewriteLinks, r.endpoint.SecretQuery = true, "api_key"
		r.settings.Log = logTo(&out)
		r.settings.Clients = []Client{{Name: "c", Token: DigestOf(canary)}, {Name: "weak", Token: DigestOf("weak"), Methods: []string{"HEAD"}}}
	})
	all := http.Header{
		"Heed-Token": {canary}, "Authorization": {"Basic " + canary}, "Cookie": {"s=" + canary}, "Proxy-Authorization": {canary},
		"X-Api-Key": {canary}, "Referer": {"http://x/" + canary}, "Idempotency-Key": {canary},
	}
	for _, c := range []struct{ method, path string }{
		{"GET", "/api/redirect/" + canary + "?patron=" + canary},
		{"POST", "/api/cut/" + canary + "?patron=" + canary},
		{"DELETE", "/api/x/" + canary + "?patron=" + canary},
		{"GET", "/nope/" + canary + "?patron=" + canary},
		{"GET", "/api/..%2f" + canary + "?patron=" + canary},
		{"TRACE", "/api/" + canary},
	} {
		a := r.do(r.request(c.method, c.path, "body "+canary, all))
		told := a.Header.Clone()
		if a.Header.Get("Location") != "" { // the path and the query are the caller's own
			told.Set("Location", strings.Replace(a.Header.Get("Location"), "redirect/"+canary+"?patron="+canary, "", 1))
		}
		note(c.method+" "+strings.ReplaceAll(c.path, canary, "…"), fmt.Sprint(a.StatusCode, told, a.text))
	}
	for _, h := range []http.Header{{"Heed-Token": {"x" + canary}}, {"Heed-Token": {"weak"}, "X": {canary}}, {"Heed-Token": {canary}, "Heed-Budget": {canary}}} {
		note("refused", r.get("/api/"+canary+"?"+canary, h).text)
	}
	admin := httptest.NewServer(r.gateway.Admin())
	defer admin.Close()
	for _, path := range []string{"/_heed/waiting", "/_heed/gates", "/_heed/endpoints", "/_heed/nope"} {
		resp, err := http.Get(admin.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		note(path, string(b))
	}
	mu.Lock()
	defer mu.Unlock()
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.Contains(line, canary) {
			t.Errorf("a secret is told: %s", line)
		}
	}
	if n := strings.Count(out.String(), "event: "); n < 4 {
		t.Errorf("only %d events were looked at", n)
	}
}

func TestWhoHoldsTheSettingsCannotPrintATokenOfAClient(t *testing.T) {
	s := Settings{Clients: []Client{{Name: "c", Token: DigestOf(canary)}}, Admin: DigestOf(canary)}
	if text := fmt.Sprintf("%v %+v %#v", s, s, s); strings.Contains(text, canary) {
		t.Error(text)
	}
}

func TestEndpointsAreShownWithoutUserAndQuery(t *testing.T) {
	u, _ := url.Parse("https://user:" + canary + "@api.test/v1?key=" + canary)
	g := New(Settings{Endpoints: []Endpoint{{Name: "api", URL: u, Transport: &heed.Transport{}}}})
	w := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/_heed/endpoints", nil)
	req.Host = "localhost"
	g.Admin().ServeHTTP(w, req)
	if got := w.Body.String(); strings.Contains(got, canary) || !strings.Contains(got, "https://api.test/v1") {
		t.Errorf("got %s", got)
	}
}
