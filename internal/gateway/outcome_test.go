package gateway

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

func TestTheWaitOfACallerIsNotTheLifeOfWhatIsEnqueuedForIt(t *testing.T) {
	change := func(s *Settings, p *policy.Policy) {
		s.Endpoints[0].Async.Enqueue, s.Endpoints[0].Async.Expiry = true, 2*time.Hour
		p.Breaker.OnOpen, p.Breaker.Consecutive, p.Breaker.Open = policy.OnOpenFail, 1, 20*time.Second
	}
	bubble(t, change, func(l *later) {
		l.api = answers(503, "down")
		trips := l.do(l.Gateway, "POST", "/api/trip", "b", "Idempotency-Key", "k", "Heed-Budget", "3s")
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		held := l.do(l.Gateway, "POST", "/api/held", "b", "Heed-Budget", "3s")
		for _, a := range []answered{trips, held} {
			if a.StatusCode != 202 {
				t.Fatalf("got %d: %s", a.StatusCode, a.text)
			}
			s := l.ask(a.Header.Get("Location"))
			if life := s.Expires.Sub(s.Created).Round(time.Second); life != 2*time.Hour {
				t.Errorf("it is worth sending for %v, want the expiry of the endpoint", life)
			}
		}
		asked := l.ask(l.async("POST", "/api/asked", "b", "Heed-Budget", "3s"))
		if life := asked.Expires.Sub(asked.Created).Round(time.Second); life != 3*time.Second {
			t.Errorf("a call that is handed over with a budget lives for %v, want that", life)
		}
	})
}

func TestAnAnswerThatIsNoneIsNotAskedForAllDay(t *testing.T) {
	for name, c := range map[string]struct {
		attempts, want int
	}{"without a bound of the policy": {0, mostOdd}, "with one": {3, 3}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(_ *Settings, p *policy.Policy) {
				p.Retry.Attempts = c.attempts
			}, func(l *later) {
				rules, bad := classify.New([]classify.Rule{{
					ID: "maintenance", When: classify.Match{Text: regexp.MustCompile("maintenance")}, Then: classify.Verdict{Class: classify.Invalid, Retry: classify.Any},
				}})
				if len(bad) > 0 {
					t.Fatal(bad)
				}
				l.set.Endpoints[0].Transport.Classifier = rules
				l.api = answers(200, "we are in maintenance")
				s := l.end(l.async("GET", "/api/x", ""))
				if s.State != "quarantined" || s.Attempts != c.want || s.Class != "invalid" {
					t.Errorf("got %s (%s) of class %s after %d attempts, want quarantined after %d", s.State, s.Reason, s.Class, s.Attempts, c.want)
				}
			})
		})
	}
}

func TestAWriteThatACrashCutOffTellsItsAttempt(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.worker.Stop()
		at := l.async("POST", "/api/x", "b")
		begun := time.Now().UTC().Truncate(time.Second)
		if _, err := l.store.Claim(l.Context(), time.Now(), queue.Ask{Worker: "w", Max: 1, Lease: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if err := l.store.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		l.open()
		l.end(at)
		var c opened
		l.operate("GET", "/_heed/calls/"+l.id(at), "", &c)
		if c.Attempts != 1 || len(c.Trail) != 1 || c.Trail[0].At.Sub(begun).Abs() > time.Second || c.Trail[0].Reason != queue.ReasonLeaseLost {
			t.Errorf("got %d attempts %+v, want the one at %v", c.Attempts, c.Trail, begun)
		}
		if !strings.Contains(c.Note.Why, "heed ended") || !strings.Contains(c.Note.Why, begun.Format(time.RFC3339)) {
			t.Errorf("why: %q", c.Note.Why)
		}
	})
}

func TestTheTimeOfAPersonIsNoWait(t *testing.T) {
	bubble(t, nil, func(l *later) {
		var mended atomic.Bool
		l.api = func(*http.Request, int) (int, http.Header, string) {
			if mended.Load() {
				return 200, nil, ""
			}
			return 422, nil, ""
		}
		at := l.async("POST", "/api/x", "b")
		l.end(at)
		mended.Store(true)
		time.Sleep(5 * time.Hour)
		l.operate("POST", "/_heed/calls/"+l.id(at)+"/replay", "", &opened{})
		if s := l.end(at); s.State != "done" || s.Waited > 60 {
			t.Errorf("got %s after a wait of %v s", s.State, s.Waited)
		}
	})
}

func TestWaitsInMemoryAreCountedAsTheirTimeIs(t *testing.T) {
	bubble(t, func(_ *Settings, p *policy.Policy) {
		p.Backoff = policy.Backoff{Formula: policy.Exponential, Base: 100 * time.Millisecond, Cap: 200 * time.Millisecond}
	}, func(l *later) {
		l.api = func(_ *http.Request, n int) (int, http.Header, string) {
			if n < 3 {
				return 503, nil, ""
			}
			return 200, nil, ""
		}
		if s := l.end(l.async("GET", "/api/x", "")); s.Attempts != 3 || s.Waits != 2 || s.Waited == 0 {
			t.Errorf("got %d attempts, and %d waits of %v s", s.Attempts, s.Waits, s.Waited)
		}
	})
}

func TestAnEditOfACallThatIsDoneSaysSo(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.async("PUT", "/api/x", "b")
		l.end(at)
		a := l.operate("PATCH", "/_heed/calls/"+l.id(at), `{"path":"/y"}`, nil)
		wantProblem(t, a, 409, "call-state")
		if !strings.Contains(a.text, "it is done") || strings.Contains(a.text, "answer") {
			t.Errorf("got %s", a.text)
		}
	})
}
