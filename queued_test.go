package heed_test

import (
	"io"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// queued sends a call that a queue keeps.
func queued(t *testing.T, tr *heed.Transport, c heed.Call) (*heed.Error, heed.Report, int, string) {
	t.Helper()
	c.Queued = true
	resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(heed.WithCall(t.Context(), c)))
	if err != nil {
		e := refused(t, resp, err)
		return e, e.Report, 0, ""
	}
	rep, _ := heed.ReportOf(resp)
	status, text := finish(t, resp, nil)
	return nil, rep, status, text
}

func TestADeferredCallTellsWhatItWouldHaveWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tr := &heed.Transport{Base: plays(says(503, "x", "Retry-After", "5")), Policy: unpaced()}
		if _, rep, _, _ := queued(t, tr, heed.Call{}); rep.WaitSource != policy.WaitRetryAfter {
			t.Errorf("got %q after a Retry-After, want retry_after", rep.WaitSource)
		}
	})
}

func TestAQueuedCallGetsTheAnswerThatIsNotWhatItClaimsToBe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Retry.Attempts = 1
		p := plays(says(200, `{"a":`, "Content-Type", "application/json"))
		_, rep, status, text := queued(t, &heed.Transport{Base: p, Policy: pol}, heed.Call{})
		if status != 200 || text != `{"a":` || rep.Class != classify.Truncated && rep.Class != classify.Invalid || rep.Reason == "" {
			t.Errorf("got %d %q, %s because of %q; want the answer, and why it is none", status, text, rep.Class, rep.Reason)
		}
		if p.open != 0 {
			t.Errorf("%d bodies are left open", p.open)
		}
	})
}

func TestAQueuedCallIsSentAgainWhenItsAnswerIsCutShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Backoff = policy.Backoff{Base: 10 * time.Millisecond, Cap: 20 * time.Millisecond}
		cut := streams(func(w *io.PipeWriter) {
			io.WriteString(w, "half")
			w.CloseWithError(io.ErrUnexpectedEOF)
		})
		p := plays(cut, says(200, "whole"))
		_, rep, status, text := queued(t, &heed.Transport{Base: p, Policy: pol}, heed.Call{})
		if status != 200 || text != "whole" || rep.Attempts != 2 {
			t.Errorf("got %d %q after %d attempts, want the whole after 2", status, text, rep.Attempts)
		}
	})
}

func TestTheCallsOwnObserverIsToldItsSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var all, own journal
		tr := &heed.Transport{Base: plays(says(200, "x", "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "40")), Observe: all.note}
		queued(t, tr, heed.Call{Observe: own.note})
		queued(t, tr, heed.Call{})
		if n, m := len(all.of(heed.AttemptDone)), len(own.of(heed.AttemptDone)); n != 2 || m != 1 {
			t.Errorf("the transport's observer saw %d attempts and the call's own %d, want 2 and 1", n, m)
		}
		if e := own.of(heed.AttemptDone)[0]; !e.HasLimit || e.Limit != 100 || e.Remaining != 40 {
			t.Errorf("got a quota of %d of %d, want 40 of 100", e.Remaining, e.Limit)
		}
	})
}

func TestWhoRestsIsAnsweredAtOnceWhenTheBreakerOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Breaker = policy.Breaker{Consecutive: 2, OnOpen: policy.OnOpenFail, Jitter: -1, Open: 10 * time.Second}
		pol.Backoff = policy.Backoff{Formula: policy.Exponential, Base: 20 * time.Second, Cap: 20 * time.Second}
		tr := &heed.Transport{Base: plays(says(500, "down")), Policy: pol}
		begun, done := time.Now(), make(chan *heed.Error)
		go func() {
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			done <- refused(t, resp, err)
		}()
		time.Sleep(3 * time.Second)
		go tr.RoundTrip(request(t, "GET", "")) // trips it
		e := <-done
		if took := time.Since(begun); e.Reason != heed.BreakerOpen || took != 3*time.Second || e.RetryAt.Sub(begun) != 13*time.Second {
			t.Errorf("ended with %v after %v, to be tried again after %v; want breaker-open after 3 s, and 13 s", e.Reason, took, e.RetryAt.Sub(begun))
		}
		time.Sleep(time.Minute)
	})
}

func TestAQueuedCallDoesNotHoldItsSlotForAFullPathGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Limits.Groups = []policy.Group{{Name: "items", Paths: []string{"/v1/items"}, Concurrency: 1}}
		tr := &heed.Transport{Base: plays(says(200, "x")), Policy: pol}
		first, err := tr.RoundTrip(request(t, "GET", "")) // holds the permit until its body is closed
		if err != nil {
			t.Fatal(err)
		}
		defer first.Body.Close()
		begun := time.Now()
		e, rep, _, _ := queued(t, tr, heed.Call{})
		if e == nil || e.Reason != heed.Deferred || rep.WaitSource != policy.WaitConcurrency || !rep.KeyUntil.IsZero() {
			t.Fatalf("got %+v of %+v, want it deferred for concurrency, and nothing for the others of its key", e, rep)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it held its slot for %v, want a second", took)
		}
	})
}
