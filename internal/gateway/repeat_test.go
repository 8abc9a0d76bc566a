package gateway

import (
	"context"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

func TestAWriteWhoseKeyIsQueuedIsNotSentBesideIt(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.async("POST", "/api/pay", "10", "Idempotency-Key", "k", "Heed-Not-Before", "30")
		begun := time.Now()
		a := l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "k")
		wantProblem(t, a, 409, "idempotency-key-in-use")
		if a.Header.Get("Location") != at || time.Since(begun) > time.Second {
			t.Errorf("got %v after %v", a.Header, time.Since(begun))
		}
		wantProblem(t, l.do(l.Gateway, "POST", "/api/pay", "20", "Idempotency-Key", "k"), 422, "idempotency-key-reused")
		l.end(at)
		b := l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "k")
		if b.StatusCode != 200 || b.text != "hello" || b.Header.Get("Heed-Duplicate") != "true" {
			t.Errorf("got %d %q %v, want the first answer", b.StatusCode, b.text, b.Header)
		}
		if n := len(l.sights()); n != 1 {
			t.Errorf("%d requests were sent, want 1", n)
		}
		for range 2 {
			if c := l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "other"); c.StatusCode != 200 || c.Header.Get("Heed-Duplicate") != "" {
				t.Errorf("a key that is not in the queue: got %d %v", c.StatusCode, c.Header)
			}
		}
	})
}

// silent is a store that does not say whether a key is taken.
type silent struct{ Store }

func (silent) Taken(ctx context.Context, _ time.Time, _ *queue.Call) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func TestAWriteDoesNotWaitForAQueueThatIsSilent(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.set.Later.Store = silent{l.store}
		g, begun := New(l.set), time.Now()
		a := l.do(g, "POST", "/api/pay", "10", "Idempotency-Key", "k")
		if took := time.Since(begun); a.StatusCode != 200 || took > answersIn {
			t.Errorf("got %d after %v", a.StatusCode, took)
		}
	})
}

func TestAnEditedPathIsToldByItsTemplate(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.async("PUT", "/api/patrons/1234567", "b", "Heed-Not-Before", "3600")
		var c opened
		l.operate("PATCH", "/_heed/calls/"+l.id(at), `{"path":"/items/7654321?x=1"}`, &c)
		if c.Path != "/items/{id}" {
			t.Errorf("got %q", c.Path)
		}
	})
}

func TestARepeatGetsTheFirstAnswerForAsLongAsItsKeyIsTaken(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Later.Window = 24 * time.Hour }, func(l *later) {
		at := l.async("POST", "/api/pay", "10", "Idempotency-Key", "k1")
		plain := l.async("GET", "/api/x", "")
		l.end(at)
		l.end(plain)
		time.Sleep(23 * time.Hour)
		if _, err := l.store.Sweep(l.Context(), time.Now(), 100); err != nil {
			t.Fatal(err)
		}
		again := l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "k1", "Prefer", "respond-async, wait=5")
		if again.StatusCode != 200 || again.text != "hello" || len(l.sights()) != 2 {
			t.Errorf("got %d %q after %d requests, want the first answer", again.StatusCode, again.text, len(l.sights()))
		}
		if a := l.do(l.Gateway, "GET", plain, ""); a.StatusCode != 404 {
			t.Errorf("the answer of a call without a key is kept as long: got %d", a.StatusCode)
		}
	})
}

func TestAKeyThatNobodyKnowsKeepsNoAnswerForLonger(t *testing.T) {
	bubble(t, func(_ *Settings, p *policy.Policy) { p.Key.From = policy.KeyRandom }, func(l *later) {
		l.set.Later.Window = 24 * time.Hour
		s := l.end(l.async("POST", "/api/pay", "10"))
		if d := s.KeptUntil.Sub(s.Ended); d != time.Hour {
			t.Errorf("kept for %v, want an hour", d)
		}
	})
}
