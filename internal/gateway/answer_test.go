package gateway

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
)

func TestAPreferredWaitIsToldAsFarAsItWasGranted(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) {}, nil)
	for asked, want := range map[string]string{"wait=7": "wait=7", "wait=999999999999": "wait=10"} {
		if got := r.get("/api/x", http.Header{"Prefer": {asked}}).Header.Get("Preference-Applied"); got != want {
			t.Errorf("%s: got %q, want %q", asked, got, want)
		}
	}
}

func TestAQuotaThatCannotBeReadDoesNotHideOneThatCan(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", "foo")
		w.Header().Set("RateLimit-Policy", "bar")
		w.Header().Set("X-RateLimit-Limit", "100")
		w.Header().Set("X-RateLimit-Remaining", "42")
	}, nil)
	a := r.get("/api/x", nil)
	if got, want := a.Header["Ratelimit"], []string{`"api";r=42`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := a.Header["Ratelimit-Policy"], []string{`"api";q=100`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnOldAnswerIsToldWithTheSettingThatBoundsItsAge(t *testing.T) {
	old := time.Now().Add(-48 * time.Hour).UTC().Format(http.TimeFormat)
	for setting, v := range map[string]policy.Verify{
		"verify.max_age":        {MaxAge: time.Hour},
		"verify.max_unmodified": {MaxUnmodified: time.Hour},
	} {
		r := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Age", "172800")
			w.Header().Set("Last-Modified", old)
		}, func(_ *rig, tr *heed.Transport) { tr.Policy.Verify = v })
		p := wantProblem(t, r.get("/api/x", nil), 502, "stale-answer")
		wantText(t, p.Detail, "The last answer had status 200", "raise "+setting+" of the endpoint")
	}
}

// issuer is a gateway whose endpoint gets its tokens at a token endpoint.
func issuer(t *testing.T, says http.HandlerFunc, change func(*Settings)) *rig {
	t.Helper()
	srv := httptest.NewServer(says)
	t.Cleanup(srv.Close)
	return upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent without a credential") }, func(r *rig, tr *heed.Transport) {
		tr.Token = &token.Source{Fetcher: token.ClientCredentials{TokenURL: srv.URL + "/token?q=canary", ID: "canary-id", Secret: mask.Secret("canary-secret")}}
		t.Cleanup(tr.Token.Close)
		if change != nil {
			change(&r.settings)
		}
	})
}

func TestAMissingCredentialIsToldWithWhatTheIssuerSaid(t *testing.T) {
	for _, c := range []struct {
		name, says string
		status     int
		want       string
	}{
		{"refused", `{"error":"invalid_client","error_description":"canary"}`, 401, "/token, answered with status 401 (invalid_client): the issuer refuses: check the credential and the url."},
		{"no token", `{"token":"canary"}`, 200, "/token, answered with status 200: the answer has no access_token: check the url."},
		{"down", "canary", 503, "/token, answered with status 503."},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := issuer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				w.Write([]byte(c.says))
			}, nil).get("/api/x", http.Header{"Heed-Budget": {"1s"}})
			p := wantProblem(t, a, 502, "token-failed")
			wantText(t, p.Detail, "The issuer, 127.0.0.1:", c.want, "Check the auth block")
			if strings.Contains(a.text, "canary") {
				t.Errorf("got %s", a.text)
			}
		})
	}
}

func TestClientsElsewhereAreNotToldWhereTheIssuerIs(t *testing.T) {
	a := issuer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, func(s *Settings) {
		s.Clients = []Client{{Name: "me", Token: DigestOf("token")}}
	}).get("/api/x", http.Header{"Heed-Token": {"token"}})
	p := wantProblem(t, a, 502, "token-failed")
	wantText(t, p.Detail, "The issuer answered with status 401")
	if strings.Contains(a.text, "127.0.0.1") {
		t.Errorf("got %s", a.text)
	}
}

func TestAnIssuerThatIsNotThereIsToldWithoutItsAddressToClientsElsewhere(t *testing.T) {
	err := &token.Error{Op: "oauth2 token", Host: "login.test", Path: "/token", Err: &net.OpError{
		Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}, Err: syscall.ECONNREFUSED,
	}}
	if got, want := tokenSaid(errors.Join(err), true), "The issuer, login.test/token, gave none: dial tcp 10.0.0.1:443: connection refused."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := tokenSaid(err, false), "The issuer gave no answer."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
