package check_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/check"
)

// keeper is a gateway that has a token for all callers.
type keeper struct {
	leads string // where it leads
	// renews after a 401, once for all who wait.
	renews bool
	// adds is what it writes below every failure.
	adds string

	mu    sync.Mutex
	token string
}

// fresh returns a token other than the one that was refused.
func (k *keeper) fresh(refused string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token != "" && (k.token != refused || !k.renews) {
		return k.token
	}
	resp, err := http.Post(k.leads+"/oauth/token", "application/x-www-form-urlencoded", strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var made struct {
		Token string `json:"access_token"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&made) // none is no token
	k.token = made.Token
	return k.token
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	token := k.fresh("")
	for try := range 2 {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, k.leads+r.URL.String(), bytes.NewReader(body))
		if err != nil {
			http.Error(w, "no such place", http.StatusBadGateway)
			return
		}
		out.Header = r.Header.Clone()
		if out.Header.Get("Authorization") == "" {
			out.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			http.Error(w, "nobody there"+k.adds, http.StatusBadGateway)
			return
		}
		if resp.StatusCode == 401 && try == 0 && k.renews {
			resp.Body.Close()
			token = k.fresh(token)
			continue
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // who asked may be gone
		return
	}
}

// through grades a gateway and returns the marks.
func through(t *testing.T, k *keeper, only ...string) map[string]string {
	t.Helper()
	listen := freePort(t)
	k.leads = "http://" + listen
	gateway := httptest.NewServer(k)
	defer gateway.Close()
	r, err := check.Run(t.Context(), check.Options{Client: check.Bare(), Claims: []check.Claim{check.Tokens, check.Remembers, check.Polls, check.Webhooks},
		Listen: listen, Via: gateway.URL, Only: only})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range r.Results {
		if got[one.ID] = string(one.Mark); one.Mark == check.NA {
			got[one.ID] += ": " + one.Cause
		}
	}
	return got
}

func TestAGatewayThatHoldsTheTokenIsGraded(t *testing.T) {
	got := through(t, &keeper{renews: true}, "tokens", "final/401")
	want := map[string]string{"tokens/expire": "pass", "tokens/flight": "pass", "tokens/refused": "pass", "final/401": "pass"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestAGatewayThatNeverRenewsItsTokenFailsWhereItEnds(t *testing.T) {
	got := through(t, &keeper{token: "tok-before"}, "tokens") // whichever case is first
	want := map[string]string{"tokens/expire": "fail", "tokens/flight": "fail", "tokens/refused": "pass"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestPollingAndWebhooksAreNotTheBusinessOfAGateway(t *testing.T) {
	got := through(t, &keeper{renews: true}, "jobs/poll", "jobs/webhook-twice", "final/404")
	want := map[string]string{"final/404": "pass",
		"jobs/poll":          "n/a: it is the program before a gateway that looks again; check that program",
		"jobs/webhook-twice": "n/a: webhooks come to the program, not through its gateway; check that program"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAGatewayAddsToAFailureIsItsOutput(t *testing.T) {
	if got := through(t, &keeper{adds: " at hc-0-secrets-broken-0"}, "secrets/broken"); got["secrets/broken"] != "fail" {
		t.Errorf("got %v", got)
	}
	if got := through(t, &keeper{}, "secrets/broken"); got["secrets/broken"] != "pass" {
		t.Errorf("got %v", got)
	}
}
