package heed_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
)

// dialect knows an error that comes as 200.
func dialect(t *testing.T) *classify.Classifier {
	t.Helper()
	c, bad := classify.New([]classify.Rule{{
		ID:   "dressed",
		When: classify.Match{Statuses: []classify.StatusRange{{From: 200, To: 299}}, Text: regexp.MustCompile("SYSTEM ERROR")},
		Then: classify.Verdict{Class: classify.Invalid, Executed: classify.Maybe, Retry: classify.Idempotent},
	}})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return c
}

func TestAnErrorDressedAs200IsRepeatedForGET(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(200, "SYSTEM ERROR"), says(200, "fine"))
		resp, err := (&heed.Transport{Base: p, Classifier: dialect(t)}).RoundTrip(request(t, "GET", ""))
		if _, body := finish(t, resp, err); body != "fine" {
			t.Errorf("got %q, want fine", body)
		}
	})
}

func TestAnErrorDressedAs200EndsAPOSTAsInvalidAnswer(t *testing.T) {
	p := plays(says(200, "SYSTEM ERROR"))
	resp, err := (&heed.Transport{Base: p, Classifier: dialect(t)}).RoundTrip(request(t, "POST", "x"))
	if e := refused(t, resp, err); e.Reason != heed.InvalidAnswer || e.Status != 200 || p.count() != 1 {
		t.Errorf("got %v after %d attempts", err, p.count())
	}
	if p.open != 0 {
		t.Errorf("%d answers are not closed", p.open)
	}
}

func TestAPeekedBodyIsHandedOverWhole(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000)
	resp, err := (&heed.Transport{Base: plays(says(200, text)), Classifier: dialect(t)}).RoundTrip(request(t, "GET", ""))
	if _, body := finish(t, resp, err); body != text {
		t.Errorf("got %d other bytes, want %d", len(body), len(text))
	}
}

// cutOff answers with text and then breaks off, as a chunked body without its
// last chunk does.
func cutOff(text string) step {
	return func(r *http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(text), brokenReader{})
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, Request: r}, nil
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestABodyCutWithinThePeekIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(cutOff("fin"), says(200, "fine"))
		resp, err := (&heed.Transport{Base: p, Classifier: dialect(t)}).RoundTrip(request(t, "GET", ""))
		if _, body := finish(t, resp, err); body != "fine" || p.count() != 2 {
			t.Errorf("got %q after %d attempts, want fine after 2", body, p.count())
		}
	})
}

func TestVerifyFullRepeatsACutAnswerAndThenSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := policy.Policy{Verify: policy.Verify{Mode: policy.VerifyFull}, Retry: policy.Retry{Attempts: 2}}
		p := plays(cutOff("abc"), says(200, "abcdef"))
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		if _, body := finish(t, resp, err); body != "abcdef" {
			t.Errorf("got %q, want all of it", body)
		}
		p = plays(cutOff("abc"))
		resp, err = (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "POST", "x"))
		if e := refused(t, resp, err); e.Reason != heed.TruncatedAnswer || p.count() != 1 {
			t.Errorf("got %v after %d attempts", err, p.count())
		}
	})
}

func TestAnAnswerBeyondTheSpoolLimitIsNotFetchedAgain(t *testing.T) {
	pol := policy.Policy{Verify: policy.Verify{Mode: policy.VerifyFull, SpoolLimit: 1000}}
	p := plays(says(200, strings.Repeat("x", 100_000)))
	resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
	e := refused(t, resp, err)
	if e.Reason != heed.PermanentFailure || p.count() != 1 || !strings.Contains(e.Err.Error(), "verify the head only") {
		t.Errorf("got %v after %d attempts", err, p.count())
	}
}

func TestAStreamThatIsCutEndsInErrTruncatedAndCountsForTheBreaker(t *testing.T) {
	j := &journal{}
	tr := &heed.Transport{Base: plays(cutOff("abc")), Observe: j.note, Policy: policy.Policy{Breaker: policy.Breaker{Consecutive: 1}}}
	resp, err := tr.RoundTrip(request(t, "GET", ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if string(got) != "abc" || !errors.Is(err, heed.ErrTruncated) {
		t.Errorf("got %q, %v", got, err)
	}
	end := j.of(heed.CallDone)
	if len(end) != 1 || end[0].Reason != string(heed.TruncatedAnswer) || end[0].Bytes != 3 || end[0].Class != classify.Truncated {
		t.Errorf("the call ended as %+v", end)
	}
	if got := tr.Gates()[0].Breaker; got != "open" {
		t.Errorf("the breaker is %s, want open", got)
	}
}

func TestACallerThatGivesUpWhileReadingIsNotATruncation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := &journal{}
		pol := policy.Policy{Breaker: policy.Breaker{Consecutive: 1}}
		tr := &heed.Transport{Base: plays(streams(func(w *io.PipeWriter) { w.Write([]byte("abc")) })), Policy: pol, Observe: j.note}
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, cancel)
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) || errors.Is(err, heed.ErrTruncated) {
			t.Errorf("got %v, want canceled", err)
		}
		if got := j.of(heed.CallDone); len(got) != 1 || got[0].Reason != string(heed.Canceled) || tr.Gates()[0].Breaker != "closed" {
			t.Errorf("the call ended as %+v, the breaker is %s", got, tr.Gates()[0].Breaker)
		}
	})
}

func TestACallerThatGivesUpDuringVerificationIsNotATruncation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := policy.Policy{Breaker: policy.Breaker{Consecutive: 1}, Verify: policy.Verify{Mode: policy.VerifyFull}}
		tr := &heed.Transport{Base: plays(streams(func(w *io.PipeWriter) { w.Write([]byte("abc")) })), Policy: pol}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
		if e := refused(t, resp, err); e.Reason != heed.DeadlineExceeded || tr.Gates()[0].Breaker != "closed" {
			t.Errorf("got %v, the breaker is %s", err, tr.Gates()[0].Breaker)
		}
	})
}

func TestAStaleAnswerIsAskedForOncePastTheCaches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := policy.Policy{Verify: policy.Verify{MaxAge: time.Minute}}
		p := plays(says(200, "old", "Age", "3600"), says(200, "new"))
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		if _, body := finish(t, resp, err); body != "new" || p.tries[1].header.Get("Cache-Control") != "no-cache" || p.tries[1].at != 0 {
			t.Errorf("got %q; second attempt %+v", body, p.tries[1])
		}
		p = plays(says(200, "old", "Age", "3600"))
		resp, err = (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		if e := refused(t, resp, err); e.Reason != heed.StaleAnswer || p.count() != 2 {
			t.Errorf("got %v after %d attempts", err, p.count())
		}
	})
}

func TestTheAllowListIsAsked(t *testing.T) {
	p, j := plays(says(200, "x")), &journal{}
	tr := &heed.Transport{Base: p, Observe: j.note, Policy: policy.Policy{Allow: []policy.Allow{{Methods: []string{"GET"}, Path: "/v1/*"}}}}
	resp, err := tr.RoundTrip(request(t, "GET", ""))
	finish(t, resp, err)
	resp, err = tr.RoundTrip(request(t, "DELETE", ""))
	if e := refused(t, resp, err); e.Reason != heed.NotAllowed || p.count() != 1 {
		t.Errorf("got %v after %d attempts", err, p.count())
	}
	if got := j.of(heed.CallDone); len(got) != 2 || got[1].Reason != string(heed.NotAllowed) {
		t.Errorf("told the ends %+v, want one for each call", got)
	}
}

func TestARequestWithoutAHostIsRefused(t *testing.T) {
	resp, err := (&heed.Transport{}).RoundTrip(&http.Request{Method: "GET"})
	if e := refused(t, resp, err); e.Reason != heed.PermanentFailure {
		t.Errorf("got %v", err)
	}
}

func TestABaseThatSaysNothingIsAnError(t *testing.T) {
	base := plays(func(*http.Request) (*http.Response, error) { return nil, nil })
	ctx := heed.WithCall(t.Context(), heed.Call{RetryOff: true})
	resp, err := (&heed.Transport{Base: base}).RoundTrip(request(t, "GET", "").WithContext(ctx))
	refused(t, resp, err)
}

func TestAnAnswerThatComesWithAnErrorIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("both"))}, errors.New("broken below")
		})
		resp, err := (&heed.Transport{Base: p, Policy: brisk(2)}).RoundTrip(request(t, "GET", ""))
		if refused(t, resp, err); p.open != 0 || p.count() != 2 {
			t.Errorf("%d bodies of %d attempts are open", p.open, p.count())
		}
	})
}

func TestReportOfTellsWhatItTook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(429, "", "Retry-After", "3"), says(200, "ok", "RateLimit-Remaining", "70", "RateLimit-Limit", "100"))
		resp, err := (&heed.Transport{Base: p, Policy: unpaced()}).RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		r, ok := heed.ReportOf(resp)
		if !ok || r.Attempts != 2 || r.WireAttempts != 2 || r.Waited < 3*time.Second || r.WaitSource != policy.WaitRetryAfter ||
			r.Class != classify.OK || !r.HasRemaining || r.Remaining != 70 || r.Breaker != "closed" || r.CallID == 0 {
			t.Errorf("got %+v, %v", r, ok)
		}
	})
	if _, ok := heed.ReportOf(&http.Response{Body: http.NoBody}); ok {
		t.Error("a report of an answer that no Transport got")
	}
}

func TestAClientWithATimeoutLosesNoReport(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tr := &heed.Transport{Base: plays(says(503, ""), says(200, "ok")), Policy: unpaced()}
		resp, err := (&http.Client{Transport: tr, Timeout: time.Minute}).Do(request(t, "GET", ""))
		finish(t, resp, err)
		if rep, ok := heed.ReportOf(resp); !ok || rep.Attempts != 2 {
			t.Errorf("got %+v, %t, want the report of two attempts", rep, ok)
		}
	})
}

func TestACredentialThatIsThereIsNoWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tr := &heed.Transport{Base: plays(says(200, "ok")), Policy: unpaced(), Token: token.Static("X-Key", "k")}
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		if rep, _ := heed.ReportOf(resp); rep.WaitSource != "" || rep.Waited != 0 {
			t.Errorf("got a wait of %v for %q, want none", rep.Waited, rep.WaitSource)
		}
	})
}

func TestTheBodyOfARedirectIsNotVerified(t *testing.T) {
	for _, body := range []string{"", `{"moved":`} {
		bubble(t, func(t *testing.T) {
			moved := says(302, body, "Content-Type", "application/json", "Location", "/elsewhere")
			p := plays(moved, moved)
			tr := &heed.Transport{Base: p, Policy: policy.Policy{Verify: policy.Verify{Mode: policy.VerifyFull}}}
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			if status, got := finish(t, resp, err); status != 302 || got != body || p.count() != 1 {
				t.Errorf("got %d %q after %d attempts, want the redirect at once", status, got, p.count())
			}
		})
	}
}

func TestNoAnswerHasNoReport(t *testing.T) {
	if got, ok := heed.ReportOf(nil); ok {
		t.Errorf("got %+v of no answer", got)
	}
}

// collapses is a body that panics, as that of a middleware with a bug does.
type collapses struct{ io.ReadCloser }

func (collapses) Read([]byte) (int, error) { panic("a bug below") }

func TestABodyThatPanicsDuringVerificationPanicsInTheCallersGoroutine(t *testing.T) {
	p := plays(func(r *http.Request) (*http.Response, error) {
		resp, err := says(200, "abc")(r)
		resp.Body = collapses{resp.Body}
		return resp, err
	})
	pol := policy.Policy{Verify: policy.Verify{Mode: policy.VerifyFull}}
	tr := &heed.Transport{Base: p, Policy: pol}
	func() {
		defer func() {
			if got := recover(); got != "a bug below" {
				t.Errorf("RoundTrip panicked with %v", got)
			}
		}()
		tr.RoundTrip(request(t, "GET", ""))
	}()
	if g := tr.Gates()[0]; g.InFlight != 0 || p.open != 0 {
		t.Errorf("%d in flight, %d answers open after it", g.InFlight, p.open)
	}
}

func TestAnAnswerShorterThanItsContentLengthIsNotVerified(t *testing.T) {
	p := plays(func(r *http.Request) (*http.Response, error) { // net/http would say so itself
		resp, err := says(200, "abc")(r)
		resp.ContentLength = 5
		return resp, err
	})
	tr := &heed.Transport{Base: p, Policy: verifying(time.Second)}
	resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(heed.WithCall(t.Context(), heed.Call{RetryOff: true})))
	if e := refused(t, resp, err); e.Class != classify.Truncated || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}
