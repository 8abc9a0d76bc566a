package app

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/policy"
)

func TestReloadDropsNoCallInFlight(t *testing.T) {
	a, first, hold := busy(t)
	fresh := api(t, "api", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "new") })
	if err := a.Reload(settings(fresh, api(t, "more", func(http.ResponseWriter, *http.Request) {}))); err != nil {
		t.Fatal(err)
	}
	if _, body := get(t, a.DataAddr(), "/api/x"); body != "new" {
		t.Errorf("a new call got %q", body)
	}
	if code, _ := get(t, a.DataAddr(), "/more/x"); code != 200 {
		t.Errorf("the added endpoint got %d", code)
	}
	close(hold)
	if got := <-first; got != (result{200, "old"}) {
		t.Errorf("the call in flight got %+v", got)
	}
}

func TestReloadKeepsWhatUnchangedEndpointsHaveLearned(t *testing.T) {
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	e.Policy.Retry.Off = true
	e.Policy.Breaker = policy.Breaker{Consecutive: 1, Open: time.Hour, OpenMax: time.Hour, OnOpen: policy.OnOpenFail}
	e.Rules = []classify.Rule{{ID: "r", When: classify.Match{Text: regexp.MustCompile("x+")}}}
	a := start(t, settings(e), Options{})
	get(t, a.DataAddr(), "/api/x")
	if code, _ := get(t, a.DataAddr(), "/api/x"); code != 503 {
		t.Fatalf("the breaker is not open: %d", code)
	}
	same := e
	same.Rules = []classify.Rule{{ID: "r", When: classify.Match{Text: regexp.MustCompile("x+")}}} // read anew
	if err := a.Reload(settings(same)); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, a.DataAddr(), "/api/x"); code != 503 {
		t.Errorf("got %d, want the breaker still open", code)
	}
	same.Policy.Retry.Attempts = 7
	if err := a.Reload(settings(same)); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, a.DataAddr(), "/api/x"); code != 500 {
		t.Errorf("got %d, want a changed endpoint to begin anew", code)
	}
}

func TestReloadForgetsNoRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Endpoint)
		kept   bool
	}{
		"another policy": {func(e *config.Endpoint) { e.Policy.Retry.Attempts = 7 }, true},
		"another credential": {func(e *config.Endpoint) {
			e.Auth = config.Auth{Kind: config.AuthHeader, Header: "X-Key", Value: "value:k"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(429)
			})
			a := start(t, settings(e), Options{})
			get(t, a.DataAddr(), "/api/x")
			c.change(&e)
			if err := a.Reload(settings(e)); err != nil {
				t.Fatal(err)
			}
			get(t, a.DataAddr(), "/api/x")
			if got := asked.Load() == 1; got != c.kept {
				t.Errorf("the server was asked %d times, want it left alone: %t", asked.Load(), c.kept)
			}
		})
	}
}

func TestReloadTakesUpAChangedSecretFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	var got string
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Key") })
	e.Auth = config.Auth{Kind: config.AuthHeader, Header: "X-Key", Value: config.Secret("file:" + file)}
	a := start(t, settings(e), Options{})
	for _, want := range []string{"one", "two"} {
		write(want)
		if err := a.Reload(settings(e)); err != nil {
			t.Fatal(err)
		}
		if get(t, a.DataAddr(), "/api/x"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReloadOfABadConfigurationChangesNothing(t *testing.T) {
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	a := start(t, settings(e), Options{Getenv: func(string) string { return "" }})
	moved := settings(e)
	moved.Listen.Data, moved.Log.Level = "127.0.0.1:1", "debug"
	broken := settings(e)
	broken.Endpoints[0].Policy.Retry.Budget = -1
	secret := settings(e)
	secret.Endpoints[0].Auth = config.Auth{Kind: config.AuthHeader, Value: "env:NONE"}
	guarded := settings(e)
	guarded.Clients = []config.Client{{Name: "c", Token: "value:x"}}
	for want, cfg := range map[string]*config.Config{
		"listen cannot be changed": moved, "retry.budget": broken, "endpoints.api.auth.value": secret, "clients": guarded,
	} {
		if err := a.Reload(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if code, body := get(t, a.DataAddr(), "/api/x"); code != 200 || body != "ok" {
		t.Errorf("got %d %q", code, body)
	}
}
