package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/policy"
)

func TestAPausedEndpointSendsNothingAndTakesInWhatCanWait(t *testing.T) {
	bubble(t, nil, func(l *later) {
		var s endpointStanding
		l.operate("POST", "/_heed/endpoints/api/pause", "", &s)
		if s.Hold == nil || s.Hold.Mode != Paused {
			t.Errorf("got %+v", s)
		}
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", ""), 503, "endpoint-paused")
		at := l.async("GET", "/api/y", "")
		time.Sleep(time.Hour)
		if got := l.ask(at).State; got == "done" || len(l.sights()) != 0 {
			t.Errorf("%d requests were sent, and the call is %s", len(l.sights()), got)
		}
		l.operate("POST", "/_heed/endpoints/api/resume", "", &s)
		if l.end(at).State != "done" || l.do(l.Gateway, "GET", "/api/x", "").StatusCode != 200 {
			t.Error("it does not go on")
		}
	})
}

func TestAnEndpointIsHeldUntilAnInstant(t *testing.T) {
	bubble(t, nil, func(l *later) {
		begun := time.Now()
		l.operate("POST", "/_heed/endpoints/api/hold", `{"for":"10m"}`, &endpointStanding{})
		at := l.async("GET", "/api/y", "")
		a := l.do(l.Gateway, "GET", "/api/x", "")
		if wantProblem(t, a, 503, "endpoint-paused"); a.Header.Get("Retry-After") != "600" {
			t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
		}
		l.end(at)
		if d := l.sights()[0].at.Sub(begun); d < 10*time.Minute || d > 10*time.Minute+2*time.Second {
			t.Errorf("sent after %v, want after 10 min", d)
		}
		for _, body := range []string{`{}`, `{"for":"x"}`, `{"until":"1999-01-01T00:00:00Z"}`, `{"four":"1m"}`} {
			wantProblem(t, l.operate("POST", "/_heed/endpoints/api/hold", body, nil), 400, "bad-request")
		}
	})
}

func TestABreakerIsForcedOpen(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/breaker", `{"state":"open","for":"1m"}`, &endpointStanding{})
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", ""), 503, "breaker-open")
		time.Sleep(time.Minute)
		if a := l.do(l.Gateway, "GET", "/api/x", ""); a.StatusCode != 200 {
			t.Errorf("got %d after its time", a.StatusCode)
		}
		wantProblem(t, l.operate("POST", "/_heed/endpoints/api/breaker", `{"state":"ajar"}`, nil), 400, "bad-request")
	})
}

func TestADrainingEndpointSendsWhatItHasAndTakesNothing(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.async("GET", "/api/y", "", "Heed-Not-Before", "30")
		l.operate("POST", "/_heed/endpoints/api/drain", "", &endpointStanding{})
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", "", "Prefer", "respond-async"), 503, "endpoint-draining")
		if l.end(at).State != "done" {
			t.Error("what was queued is not sent")
		}
		l.operate("POST", "/_heed/endpoints/api/resume", "", &endpointStanding{})
		l.async("GET", "/api/x", "")
	})
}

func TestACallThatFindsTheBreakerOpenIsEnqueued(t *testing.T) {
	change := func(s *Settings, p *policy.Policy) {
		s.Endpoints[0].Async.Enqueue = true
		p.Breaker.OnOpen, p.Breaker.Consecutive, p.Breaker.Open = policy.OnOpenFail, 1, 20*time.Second
	}
	bubble(t, change, func(l *later) {
		down := true
		l.api = func(*http.Request, int) (int, http.Header, string) {
			if down {
				return 503, nil, "down"
			}
			return 200, nil, "up"
		}
		trips := l.do(l.Gateway, "POST", "/api/trip", "one", "Idempotency-Key", "k")
		a := l.do(l.Gateway, "POST", "/api/x", "two", "Idempotency-Key", "k2")
		if trips.StatusCode != 202 || a.StatusCode != 202 {
			t.Fatalf("got %d and %d, want 202: %s", trips.StatusCode, a.StatusCode, a.text)
		}
		if n := len(l.sights()); n != 1 {
			t.Errorf("%d requests were sent while the breaker is open", n)
		}
		time.Sleep(5 * time.Second)
		down = false
		for _, at := range []string{trips.Header.Get("Location"), a.Header.Get("Location")} {
			if s := l.end(at); s.State != "done" {
				t.Errorf("got %+v", s)
			}
		}
		if got := l.sights(); got[len(got)-1].body != "two" && got[len(got)-2].body != "two" {
			t.Errorf("the body was lost: %+v", got)
		}
	})
}

func TestAWriteThatMayHaveArrivedIsNotEnqueuedAgain(t *testing.T) {
	change := func(s *Settings, p *policy.Policy) {
		s.Endpoints[0].Async.Enqueue = true
		p.Key.Header = ""
		p.Breaker.OnOpen, p.Breaker.Consecutive = policy.OnOpenFail, 1
	}
	bubble(t, change, func(l *later) {
		l.api = answers(503, "down")
		if a := l.do(l.Gateway, "POST", "/api/x", "b"); a.StatusCode == 202 {
			t.Errorf("it was enqueued: %s", a.text)
		}
		if a := l.do(l.Gateway, "POST", "/api/x", "b"); a.StatusCode != 202 {
			t.Errorf("one that was never sent got %d", a.StatusCode)
		}
	})
}

func TestAWriteWithAKeyOutlivesItsCaller(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Endpoints[0].Async.Durable = true }, func(l *later) {
		l.api = func(*http.Request, int) (int, http.Header, string) {
			time.Sleep(5 * time.Second)
			return 201, nil, "made"
		}
		ctx, leave := context.WithCancel(l.Context())
		time.AfterFunc(time.Second, leave)
		l.leaves(ctx, "POST", "/api/pay", "10", "Idempotency-Key", "k")
		wantProblem(t, l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "k"), 409, "idempotency-key-in-use")
		time.Sleep(10 * time.Second)
		a := l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "k")
		if a.StatusCode != 201 || a.text != "made" || a.Header.Get("Heed-Duplicate") != "true" || len(l.sights()) != 1 {
			t.Errorf("got %d %q after %d requests, want the first answer of one", a.StatusCode, a.text, len(l.sights()))
		}
		b := l.do(l.Gateway, "POST", "/api/pay", "20", "Idempotency-Key", "k2")
		if b.StatusCode != 201 || b.Header.Get("Heed-Duplicate") != "" || !strings.HasPrefix(b.Header.Get("Content-Location"), callsPath) {
			t.Errorf("a caller who stays got %d %v", b.StatusCode, b.Header)
		}
	})
}

func TestACallThatWouldWaitForTooLongIsDeferredToTheQueue(t *testing.T) {
	change := func(s *Settings, p *policy.Policy) {
		s.Endpoints[0].Async.Enqueue = true
		p.Retry.OverCeiling, p.Retry.Ceiling = policy.Defer, time.Minute
	}
	bubble(t, change, func(l *later) {
		l.api = func(_ *http.Request, n int) (int, http.Header, string) {
			if n == 1 {
				return 429, http.Header{"Retry-After": {"600"}}, "later"
			}
			return 200, nil, "now"
		}
		begun := time.Now()
		a := l.do(l.Gateway, "POST", "/api/x", "b", "Idempotency-Key", "k")
		if a.StatusCode != 202 {
			t.Fatalf("got %d: %s", a.StatusCode, a.text)
		}
		if s := l.end(a.Header.Get("Location")); s.State != "done" || l.sights()[1].at.Sub(begun) < 10*time.Minute || l.sights()[1].body != "b" {
			t.Errorf("got %s after %v", s.State, l.sights()[1].at.Sub(begun))
		}
	})
}
