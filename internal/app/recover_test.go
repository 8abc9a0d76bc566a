package app

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/policy"
)

// spell is a recovery in its slow phase since an instant.
func spell(since time.Time) *recovery { return &recovery{phase: phaseSlow, since: since} }

func TestAnEndpointIsWellWhenFewAreThrottledAndQuotaIsLeft(t *testing.T) {
	begun := time.Date(2026, 7, 15, 2, 0, 0, 0, time.UTC)
	sees := func(throttled int, remaining, limit int64) *recovery {
		r := spell(begun)
		for i := range 200 {
			e := heed.Event{Kind: heed.AttemptDone, Time: begun.Add(time.Duration(i) * 300 * time.Millisecond), Class: classify.OK}
			if i < throttled {
				e.Class = classify.Throttled
			}
			if limit > 0 {
				e.Remaining, e.HasRemain, e.Limit, e.HasLimit = remaining, true, limit, true
			}
			r.note(&e)
		}
		return r
	}
	after := begun.Add(time.Minute)
	for _, c := range []struct {
		name string
		r    *recovery
		now  time.Time
		want bool
	}{
		{"no throttle, no quota told", sees(0, 0, 0), after, true},
		{"one in two hundred", sees(1, 0, 0), after, true},
		{"one in a hundred", sees(2, 0, 0), after, false},
		{"31 % left", sees(0, 31, 100), after, true},
		{"30 % left", sees(0, 30, 100), after, false},
		{"not a whole window yet", sees(0, 0, 0), begun.Add(59 * time.Second), false},
		{"nobody called", spell(begun), after, false},
		{"the throttles are long ago", sees(20, 0, 0), begun.Add(75 * time.Second), true},
	} {
		if got := c.r.well(c.now, wellWindow); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestARecoveryIsSlower(t *testing.T) {
	for _, c := range []struct {
		concurrency, want int
	}{{0, unlimited / 4}, {8, 2}, {3, 1}} {
		p := policy.Policy{Limits: policy.Limits{Concurrency: c.concurrency}, Backoff: policy.Backoff{Base: 20 * time.Second}}
		slower(&p)
		if p.Limits.Concurrency != c.want || p.Backoff.Base != 40*time.Second || p.Backoff.Cap < p.Backoff.Base {
			t.Errorf("%d becomes %d with a base of %v and a cap of %v, want %d and 40s", c.concurrency, p.Limits.Concurrency, p.Backoff.Base, p.Backoff.Cap, c.want)
		}
	}
}

func TestAnEndpointIsRecoveredAndGoesBackToNormalByItself(t *testing.T) {
	var logins atomic.Int64
	e := api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/token") {
			logins.Add(1)
			w.Write([]byte(`{"access_token":"t","token_type":"bearer","expires_in":3600}`))
			return
		}
		w.Header().Set("X-RateLimit-Limit", "100")
		w.Header().Set("X-RateLimit-Remaining", "80")
	})
	e.Auth.Kind, e.Auth.User, e.Auth.Password = "sierra", "value:u", "value:p"
	e.Policy.Limits.Concurrency = 8
	e.Policy.Breaker = policy.Breaker{Off: true}
	cfg := settings(e)
	a, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.healing.window = 300 * time.Millisecond
	t.Cleanup(func() { a.Stop(context.Background()) })
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, a.DataAddr(), "/api/x")
	before := a.units["api"]
	standing := func() (s struct{ Recovery gateway.Recovery }) {
		_, text := ask(t, "GET", "http://"+a.AdminAddr()+"/_heed/endpoints/api/recover", "")
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return s
	}
	if resp, text := ask(t, "POST", "http://"+a.AdminAddr()+"/_heed/endpoints/api/recover", ""); resp.StatusCode != 200 {
		t.Fatalf("got %d %s", resp.StatusCode, text)
	}
	slow := false
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		s := standing()
		if s.Recovery.Phase == phaseSlow {
			slow = true
			if s.Recovery.Concurrency != 2 || s.Recovery.Base != 0.002 {
				t.Errorf("it is slowed down to %+v", s.Recovery)
			}
		}
		if s.Recovery.Phase == "normal" {
			break
		}
		get(t, a.DataAddr(), "/api/x")
	}
	if !slow || standing().Recovery.Phase != "normal" {
		t.Fatalf("got %+v, after a slow phase: %v", standing().Recovery, slow)
	}
	a.mu.Lock()
	now := a.units["api"]
	a.mu.Unlock()
	if p := now.transport.Policy; p.Limits.Concurrency != 8 || p.Backoff.Base != time.Millisecond || now == before {
		t.Errorf("it goes on with %+v", p)
	}
	if n := logins.Load(); n < 2 {
		t.Errorf("%d logins, want a new credential", n)
	}
	same := *cfg
	if err := a.Reload(&same); err != nil || a.units["api"] != now {
		t.Errorf("a reload that changes nothing renews it again (%v)", err)
	}
}
