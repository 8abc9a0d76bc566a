package heed_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

func TestA503IsRepeatedUntilItSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(503, "down"), says(200, "up"))
		resp, err := (&heed.Transport{Base: p}).RoundTrip(request(t, "GET", ""))
		if status, body := finish(t, resp, err); status != 200 || body != "up" || p.count() != 2 {
			t.Errorf("got %d %q after %d attempts, want 200 up after 2", status, body, p.count())
		}
	})
}

func TestRetryAfterIsNeverEarly(t *testing.T) {
	for seed := uint64(1); seed < 50; seed++ {
		bubble(t, func(t *testing.T) {
			p := plays(says(429, "", "Retry-After", "7"), says(200, "ok"))
			resp, err := (&heed.Transport{Base: p, Seed: seed}).RoundTrip(request(t, "GET", ""))
			finish(t, resp, err)
			if got := p.tries[1].at; got < 7*time.Second || got > 9*time.Second {
				t.Errorf("seed %d: the second attempt left after %v, want 7 s and a little", seed, got)
			}
		})
	}
}

func TestAHintClosesTheKeyForOtherCallers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(429, "", "Retry-After", "20"), says(200, "ok"))
		tr := &heed.Transport{Base: p, Policy: unpaced()}
		once := heed.WithCall(t.Context(), heed.Call{RetryOff: true})
		resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(once))
		if status, _ := finish(t, resp, err); status != 429 {
			t.Fatalf("got %d, want the 429", status)
		}
		resp, err = tr.RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		if got := p.tries[1].at; got < 20*time.Second {
			t.Errorf("another caller left after %v, want 20 s", got)
		}
	})
}

func TestAHintBeyondTheDeadlineHandsOverThe429AtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(429, "slow down", "Retry-After", "120"))
		begun := time.Now()
		resp, err := (&heed.Transport{Base: p}).RoundTrip(request(t, "GET", ""))
		if status, body := finish(t, resp, err); status != 429 || body != "slow down" {
			t.Errorf("got %d %q, want the 429", status, body)
		}
		if got := time.Since(begun); got != 0 || p.count() != 1 {
			t.Errorf("took %v and %d attempts, want none and 1", got, p.count())
		}
	})
}

func TestAClosedKeyBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(429, "", "Retry-After", "120"))
		tr := &heed.Transport{Base: p}
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		begun := time.Now()
		resp, err = tr.RoundTrip(request(t, "GET", ""))
		e := refused(t, resp, err)
		if e.Reason != heed.QuotaWait || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v that is DeadlineExceeded", err, heed.QuotaWait)
		}
		if time.Since(begun) != 0 || p.count() != 1 || e.RetryAt.Before(begun.Add(120*time.Second)) {
			t.Errorf("took %v, %d attempts, try again at %v", time.Since(begun), p.count(), e.RetryAt)
		}
	})
}

func TestCancelDuringAWaitEndsItAtOnceWithTheLastError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := plays(breaks(errReset))
		pol := policy.Policy{Backoff: policy.Backoff{Formula: policy.Exponential, Base: 10 * time.Second}}
		time.AfterFunc(3*time.Second, cancel)
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", "").WithContext(ctx))
		e := refused(t, resp, err)
		if e.Reason != heed.Canceled || !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want canceled with the reset reachable", err)
		}
		if got := time.Since(p.begun); got != 3*time.Second {
			t.Errorf("took %v, want 3 s", got)
		}
	})
}

func TestACallCanceledAtEntryIsNotSentAndTakesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, body := plays(says(200, "")), &closes{}
	tr := &heed.Transport{Base: p, Policy: policy.Policy{Limits: policy.Limits{Concurrency: 1}}}
	req := request(t, "PUT", "").WithContext(ctx)
	req.Body = body
	resp, err := tr.RoundTrip(req)
	if e := refused(t, resp, err); e.Reason != heed.Canceled || p.count() != 0 || body.n != 1 {
		t.Errorf("got %v, %d attempts, body closed %d times", e.Reason, p.count(), body.n)
	}
	for _, g := range tr.Gates() {
		if g.InFlight != 0 || g.Waiting != 0 {
			t.Errorf("the gate holds %+v", g)
		}
	}
}

func TestAnAttemptThatTakesTooLongIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(hangs, says(200, "ok"))
		tr := &heed.Transport{Base: p, Policy: policy.Policy{Timeouts: policy.Timeouts{Attempt: 2 * time.Second}}}
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		if got := p.tries[1].at; got < 2*time.Second {
			t.Errorf("the second attempt left after %v", got)
		}
	})
}

func TestTheCallersDeadlineIsFinalAndNeutralForTheBreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := policy.Policy{Timeouts: policy.Timeouts{Attempt: time.Hour}, Breaker: policy.Breaker{Consecutive: 1}}
		p := plays(hangs)
		tr := &heed.Transport{Base: p, Policy: pol}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
		if e := refused(t, resp, err); e.Reason != heed.DeadlineExceeded || p.count() != 1 || time.Since(p.begun) != 5*time.Second {
			t.Errorf("got %v after %d attempts and %v", err, p.count(), time.Since(p.begun))
		}
		if got := tr.Gates()[0].Breaker; got != "closed" {
			t.Errorf("the breaker is %s", got)
		}
	})
}

func TestTheTimeoutOfAnHTTPClientIsSeenAsADeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(429, "", "Retry-After", "30"))
		client := &http.Client{Transport: &heed.Transport{Base: p}, Timeout: 10 * time.Second}
		resp, err := client.Get("http://api.example/v1/items")
		if status, _ := finish(t, resp, err); status != 429 || time.Since(p.begun) != 0 {
			t.Errorf("got %d after %v, want 429 at once", status, time.Since(p.begun))
		}
	})
}

func TestABodyMayTakeFarLongerThanTheHeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(streams(func(w *io.PipeWriter) {
			for range 100 {
				time.Sleep(10 * time.Second)
				w.Write([]byte("x"))
			}
			w.Close()
		}))
		pol := policy.Policy{Timeouts: policy.Timeouts{Header: time.Second}, Retry: policy.Retry{Budget: 5 * time.Second}}
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		if _, body := finish(t, resp, err); len(body) != 100 {
			t.Errorf("got %d bytes, want 100", len(body))
		}
	})
}

func TestASilentBodyIsCut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(streams(func(w *io.PipeWriter) { w.Write([]byte("abc")) }))
		pol := policy.Policy{Timeouts: policy.Timeouts{Idle: 30 * time.Second}}
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if string(got) != "abc" || !errors.Is(err, heed.ErrTruncated) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %q, %v; want abc and a truncation by time", got, err)
		}
		if took := time.Since(p.begun); took < 30*time.Second || took > 60*time.Second {
			t.Errorf("took %v, want 30 s to 60 s", took)
		}
	})
}

func TestACallerThatReadsSlowlyIsNotSilence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(streams(func(w *io.PipeWriter) {
			for range 5 {
				w.Write([]byte("x"))
			}
			w.Close()
		}))
		pol := policy.Policy{Timeouts: policy.Timeouts{Idle: time.Second}}
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			time.Sleep(time.Hour)
			if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
				t.Fatalf("read %d: %v", n, err)
			}
		}
		resp.Body.Close()
	})
}

func TestAttemptTimeCoversTheBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(streams(func(w *io.PipeWriter) {
			for {
				time.Sleep(time.Second)
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
			}
		}))
		pol := policy.Policy{Timeouts: policy.Timeouts{Attempt: 10 * time.Second}}
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(resp.Body)
		if !errors.Is(err, heed.ErrTruncated) || time.Since(p.begun) != 10*time.Second {
			t.Errorf("got %v after %v, want a cut after 10 s", err, time.Since(p.begun))
		}
		resp.Body.Close()
		time.Sleep(time.Second) // the writer notices
	})
}

func TestAWriteWithoutAKeyIsRepeatedOnlyWhenItWasNotDone(t *testing.T) {
	refusedConn := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		first step
		want  int
	}{
		"500":                  {says(500, "x"), 1},
		"502":                  {says(502, "x"), 1},
		"504":                  {says(504, "x"), 1},
		"503":                  {says(503, "x"), 1},
		"connection ended":     {breaks(io.EOF), 1},
		"connection reset":     {breaks(errReset), 1},
		"connection refused":   {breaks(refusedConn), 2},
		"429":                  {says(429, "x"), 2},
		"503 with Retry-After": {says(503, "x", "Retry-After", "1"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := plays(c.first, says(201, "made"))
				resp, err := (&heed.Transport{Base: p}).RoundTrip(request(t, "POST", "order"))
				if err == nil {
					resp.Body.Close()
				}
				if p.count() != c.want || p.tries[p.count()-1].body != "order" {
					t.Errorf("got %d attempts, want %d, each with the body", p.count(), c.want)
				}
			})
		})
	}
}

func TestQueuedCallsAreDeferredWhereOthersSleep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(503, "x", "Retry-After", "5"))
		ctx := heed.WithCall(t.Context(), heed.Call{Queued: true})
		resp, err := (&heed.Transport{Base: p}).RoundTrip(request(t, "GET", "").WithContext(ctx))
		e := refused(t, resp, err)
		if e.Reason != heed.Deferred || e.Status != 503 || time.Since(p.begun) != 0 || time.Until(e.RetryAt) < 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(p.begun))
		}
	})
}

func TestADeferredCallTellsHowFarItCameAndWhenItsKeyOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(429, "x", "Retry-After", "5"), says(200, "x"))
		tr := &heed.Transport{Base: p, Policy: unpaced()}
		send := func(l call.Ladder) (*http.Response, error) {
			ctx := heed.WithCall(t.Context(), heed.Call{Queued: true, Ladder: l})
			return tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
		}
		resp, err := send(call.Ladder{})
		e := refused(t, resp, err)
		if l := e.Report.Ladder; l.Attempts != 1 || l.Retries != 1 {
			t.Errorf("got %+v after one attempt", l)
		}
		if until := time.Until(e.Report.KeyUntil); until < 5*time.Second || until > 6*time.Second {
			t.Errorf("the key opens in %v, want 5 s and a jitter", until)
		}
		resp, err = send(e.Report.Ladder)
		if e := refused(t, resp, err); e.Reason != heed.Deferred || e.Report.Ladder.Attempts != 1 {
			t.Errorf("got %v with %d attempts before the key opens, want deferred with 1", e.Reason, e.Report.Ladder.Attempts)
		}
		time.Sleep(time.Until(e.RetryAt))
		resp, err = send(e.Report.Ladder)
		finish(t, resp, err)
		if r, _ := heed.ReportOf(resp); r.Attempts != 2 {
			t.Errorf("got %d attempts in all, want 2", r.Attempts)
		}
	})
}

func TestNotBeforeIsWaitedForOrDeferred(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(200, "x"))
		tr := &heed.Transport{Base: p, Policy: unpaced()}
		ctx := heed.WithCall(t.Context(), heed.Call{NotBefore: p.begun.Add(20 * time.Second)})
		resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
		finish(t, resp, err)
		if got := p.tries[0].at; got != 20*time.Second {
			t.Errorf("left after %v, want 20 s", got)
		}
		at := time.Now().Add(time.Hour)
		ctx = heed.WithCall(t.Context(), heed.Call{NotBefore: at, Queued: true})
		resp, err = tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
		if e := refused(t, resp, err); e.Reason != heed.Deferred || !e.RetryAt.Equal(at) {
			t.Errorf("got %v until %v, want deferred until %v", e.Reason, e.RetryAt, at)
		}
	})
}

func TestNestedTransportsDoNotMultiply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(503, "x"))
		pol := unpaced()
		pol.Retry.Attempts, pol.Breaker.Off = 3, true
		inner := &heed.Transport{Base: p, Policy: pol}
		resp, err := (&heed.Transport{Base: inner, Policy: pol}).RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		if p.count() != 3 {
			t.Errorf("got %d attempts, want 3", p.count())
		}
	})
}

func TestCallsThatFailTogetherDoNotWaitInStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var waits []time.Duration
		j := &journal{}
		p := plays(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second) // so that all have begun when the first fails
			return says(503, "x")(r)
		})
		pol := unpaced()
		pol.Retry.Attempts, pol.Breaker.Off, pol.Backoff.Base = 2, true, 30*time.Second
		tr := &heed.Transport{Base: p, Policy: pol, Observe: j.note}
		for range 8 {
			go func() {
				if resp, err := tr.RoundTrip(request(t, "GET", "")); err == nil {
					resp.Body.Close()
				}
			}()
		}
		time.Sleep(2 * time.Minute)
		seen := map[time.Duration]bool{}
		for _, e := range j.of(heed.AttemptDone) {
			if e.Retry {
				waits = append(waits, e.Delay)
				seen[e.Delay] = true
			}
		}
		if len(waits) != 8 || len(seen) != 8 {
			t.Errorf("got the waits %v, want 8 different ones", waits)
		}
	})
}

func TestAnAnswerOfAnotherKindThanWasAskedForIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(200, "<html>log in</html>", "Content-Type", "text/html"), says(200, "{}", "Content-Type", "application/json"))
		c, bad := classify.New([]classify.Rule{{
			ID: "page", When: classify.Match{Asked: []string{"application/json"}, NotMedia: []string{"application/json"}},
			Then: classify.Verdict{Class: classify.Invalid, Retry: classify.Idempotent},
		}})
		if bad != nil {
			t.Fatal(bad)
		}
		r := request(t, "GET", "")
		r.Header = http.Header{"Accept": {"application/json"}}
		resp, err := (&heed.Transport{Base: p, Classifier: c}).RoundTrip(r)
		if _, got := finish(t, resp, err); got != "{}" || p.count() != 2 {
			t.Errorf("got %q after %d attempts, want the JSON after 2", got, p.count())
		}
	})
}
