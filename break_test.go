package heed_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// contexts are the two kinds of a caller's context: heed watches the time of
// an attempt in another way when it can be canceled.
func contexts(t *testing.T) map[string]context.Context {
	return map[string]context.Context{
		"a context that can be canceled": t.Context(),
		"a context that never ends":      context.WithoutCancel(t.Context()),
	}
}

// within is a policy whose calls end after budget.
func within(budget time.Duration) policy.Policy {
	pol := brisk(0)
	pol.Retry.Budget = budget
	return pol
}

// protocolErrors is a base transport to an HTTP/2 server that takes every
// request and answers RST_STREAM with PROTOCOL_ERROR, which proves nothing.
func protocolErrors(t *testing.T, seen *atomic.Int32) *http.Transport {
	t.Helper()
	var n atomic.Int32
	return declining(t, &n, func(w io.Writer, stream uint32) {
		n.Store(0) // so that the next one is declined as well
		seen.Add(1)
		frame(w, frameReset, 0, stream, 0, 0, 0, 1)
	})
}

func TestAWriteAfterAProtocolErrorOfHTTP2IsNotRepeated(t *testing.T) {
	for name, dress := range map[string]func(*http.Request){
		"no body":              func(*http.Request) {},
		"http.NoBody":          func(r *http.Request) { r.Body = http.NoBody },
		"body":                 func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("order")), 5 },
		"body with GetBody":    func(r *http.Request) { withGetBody(r, "order") },
		"key that is not used": func(r *http.Request) { withGetBody(r, "order"); r.Header.Set("Idempotency-Key", "mine") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var seen atomic.Int32
				req := request(t, "POST", "")
				dress(req)
				resp, err := (&heed.Transport{Base: protocolErrors(t, &seen), Policy: brisk(0)}).RoundTrip(req)
				if e := refused(t, resp, err); seen.Load() != 1 || e.Reason != heed.NotRepeatable {
					t.Errorf("the server saw %d POSTs, want 1; the call ended with %v", seen.Load(), err)
				}
			})
		})
	}
}

func withGetBody(r *http.Request, text string) {
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength = int64(len(text))
}

func TestTheHTTPStackSendsAnAttemptThreeTimesAtMost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, ctx := range contexts(t) {
			var seen atomic.Int32
			tr := &heed.Transport{Base: protocolErrors(t, &seen), Policy: brisk(1)}
			resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
			if refused(t, resp, err); seen.Load() != 3 {
				t.Errorf("%s: the server saw %d requests, want 3 (%v)", name, seen.Load(), err)
			}
		}
	})
}

func TestAWriteWhoseKeyIsNotUsedIsSentOnceOverAUsedConnection(t *testing.T) {
	for _, method := range []string{"POST", "PATCH", "MOVE", "LOCK", "MKCOL", "PROPPATCH", "post"} {
		t.Run(method, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var writes atomic.Int32
				w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
					if r.Method == "GET" {
						return
					}
					writes.Add(1)
					io.Copy(io.Discard, r.Body)
					c, _, _ := rw.(http.Hijacker).Hijack()
					c.Close()
				})
				defer w.stop()
				tr := &heed.Transport{Base: w.base, Policy: brisk(0)}
				resp, err := tr.RoundTrip(request(t, "GET", ""))
				finish(t, resp, err)
				synctest.Wait() // until the connection is idle
				req := request(t, method, "")
				withGetBody(req, "hello")
				req.Header.Set("Idempotency-Key", "mine")
				resp, err = tr.RoundTrip(req)
				if e := refused(t, resp, err); writes.Load() != 1 || e.Reason != heed.NotRepeatable {
					t.Errorf("the server saw it %d times, want once; the call ended with %v", writes.Load(), err)
				}
			})
		})
	}
}

// stalled sends a body that says "abc" and then nothing, and returns how the
// call ended, after how long.
func stalled(t *testing.T, ctx context.Context, pol policy.Policy) (*heed.Error, time.Duration) {
	t.Helper()
	w := serve(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	defer w.stop()
	pr, pw := io.Pipe()
	go pw.Write([]byte("abc"))
	req := request(t, "PUT", "").WithContext(ctx)
	req.Body, req.ContentLength = pr, -1
	tr, begun := &heed.Transport{Base: w.base, Policy: pol}, time.Now()
	resp, err := tr.RoundTrip(req)
	took := time.Since(begun)
	if g := tr.Gates()[0]; g.InFlight != 0 || g.Waiting != 0 {
		t.Errorf("the gate still holds %+v", g)
	}
	return refused(t, resp, err), took
}

func TestABodyThatStallsEndsWithTheBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, ctx := range contexts(t) {
			e, took := stalled(t, ctx, within(5*time.Second))
			if e.Reason != heed.DeadlineExceeded || took != 5*time.Second {
				t.Errorf("%s: ended after %v with %v", name, took, e)
			}
		}
	})
}

func TestABodyThatStallsEndsWithTheCallersContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if e, took := stalled(t, ctx, within(time.Minute)); e.Reason != heed.DeadlineExceeded || took != 2*time.Second {
			t.Errorf("the deadline of the context: ended after %v with %v", took, e)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		if e, took := stalled(t, ctx, within(time.Minute)); e.Reason != heed.Canceled || took != 3*time.Second {
			t.Errorf("a cancellation: ended after %v with %v", took, e)
		}
	})
}

// zipped is a document of JSON whose white space is n bytes.
func zipped(t *testing.T, n int64) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, io.LimitReader(blanks{}, n)); err != nil {
		t.Fatal(err)
	}
	io.WriteString(z, "{}")
	z.Close()
	return b.String()
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte(" "), len(p)))
	return len(p), nil
}

func verifying(budget time.Duration) policy.Policy {
	pol := within(budget)
	pol.Verify.Mode = policy.VerifyFull
	return pol
}

func TestAnAnswerThatInflatesTooFarSaysThatItDoes(t *testing.T) {
	p := plays(says(200, zipped(t, 8<<20), "Content-Type", "application/json", "Content-Encoding", "gzip"))
	resp, err := (&heed.Transport{Base: p, Policy: verifying(time.Minute)}).RoundTrip(request(t, "GET", ""))
	e := refused(t, resp, err)
	if e.Reason != heed.PermanentFailure || p.count() != 1 || p.open != 0 || !strings.Contains(e.Error(), "inflates to more than 1 MiB and 100 times its size") {
		t.Errorf("got %v after %d attempts, %d answers open", err, p.count(), p.open)
	}
}

func TestAnAnswerThatInflatesBeyondTheSpoolLimitNamesThat(t *testing.T) {
	p := plays(says(200, zipped(t, 900<<10), "Content-Type", "application/json", "Content-Encoding", "gzip"))
	pol := verifying(time.Minute)
	pol.Verify.SpoolLimit = 64 << 10
	resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
	if e := refused(t, resp, err); e.Reason != heed.PermanentFailure || !strings.Contains(e.Error(), "larger than the limit") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatInflatesALittleIsVerified(t *testing.T) {
	text := zipped(t, 900<<10)
	p := plays(says(200, text, "Content-Type", "application/json", "Content-Encoding", "gzip"))
	resp, err := (&heed.Transport{Base: p, Policy: verifying(time.Minute)}).RoundTrip(request(t, "GET", ""))
	_, body := finish(t, resp, err)
	if r, _ := heed.ReportOf(resp); body != text || !r.Verified {
		t.Errorf("got %d bytes, want %d as they came; the report says %+v", len(body), len(text), r)
	}
}

// lateReader takes its time and does not look at any context.
type lateReader struct {
	io.Reader
	by time.Duration
}

func (r *lateReader) Read(p []byte) (int, error) {
	time.Sleep(r.by)
	r.by = 0
	return r.Reader.Read(p)
}

func TestNothingIsInflatedAfterTheBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		text := zipped(t, 100<<10)
		p := plays(func(r *http.Request) (*http.Response, error) {
			resp, err := says(200, text, "Content-Type", "application/json", "Content-Encoding", "gzip")(r)
			resp.Body = io.NopCloser(&lateReader{resp.Body, 2 * time.Second})
			return resp, err
		})
		resp, err := (&heed.Transport{Base: p, Policy: verifying(time.Second)}).RoundTrip(request(t, "GET", ""))
		if e := refused(t, resp, err); e.Reason != heed.DeadlineExceeded || e.Report.Verified || p.count() != 1 || p.open != 0 {
			t.Errorf("got %v after %d attempts, %d answers open", err, p.count(), p.open)
		}
	})
}

// drips answers with a byte every 100 ms, without an end.
func drips(r *http.Request) (*http.Response, error) {
	return streams(func(w *io.PipeWriter) {
		for {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})(r)
}

func TestAnAnswerThatDripsEndsWithTheBudget(t *testing.T) {
	for name, tr := range map[string]*heed.Transport{
		"in the peek":         {Policy: within(550 * time.Millisecond), Classifier: dialect(t)},
		"in the verification": {Policy: verifying(550 * time.Millisecond)},
	} {
		bubble(t, func(t *testing.T) {
			for kind, ctx := range contexts(t) {
				p := plays(drips)
				own := &heed.Transport{Base: p, Policy: tr.Policy, Classifier: tr.Classifier}
				own.Policy.Timeouts.Idle = 10 * time.Second
				begun := time.Now()
				resp, err := own.RoundTrip(request(t, "GET", "").WithContext(ctx))
				took := time.Since(begun)
				if e := refused(t, resp, err); e.Reason != heed.DeadlineExceeded || took != 550*time.Millisecond {
					t.Errorf("%s, %s: ended after %v with %v", name, kind, took, err)
				}
				if g := own.Gates()[0]; g.InFlight != 0 || p.open != 0 {
					t.Errorf("%s, %s: %d in flight, %d answers open", name, kind, g.InFlight, p.open)
				}
			}
			time.Sleep(time.Second) // the writers end
		})
	}
}

func TestNoShutKeyIsForgottenAmongManyOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const keys = 1300
		pol := within(time.Second)
		p := plays(says(429, "", "Retry-After", "60"))
		tr := &heed.Transport{Base: p, Policy: pol}
		for range 2 {
			for i := range keys {
				req := request(t, "GET", "")
				req.Header.Set("Authorization", fmt.Sprint("Bearer key-", i))
				if resp, err := tr.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
			}
		}
		if p.count() != keys || len(tr.Gates()) != keys {
			t.Errorf("the server saw %d requests within the minute, want one for each of %d keys; %d keys are remembered", p.count(), keys, len(tr.Gates()))
		}
	})
}

// shutting is a Transport of which n keys are shut for a minute; next is a call
// for one more.
func shutting(t *testing.T, n int) (tr *heed.Transport, next func()) {
	t.Helper()
	keys := 0
	tr = &heed.Transport{Base: plays(says(429, "", "Retry-After", "60")), Policy: within(time.Second), QuotaKey: func(*http.Request) string {
		keys++
		return fmt.Sprint("key-", keys)
	}}
	next = func() {
		if resp, err := tr.RoundTrip(request(t, "GET", "")); err == nil {
			resp.Body.Close()
		}
	}
	for range n {
		next()
	}
	return tr, next
}

func TestANewKeyDoesNotLookAtAllThatAreShut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const keys, calls = 3000, 200
		_, next := shutting(t, keys)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			next()
		}
		runtime.ReadMemStats(&after)
		// The list of what could go has an entry for each of them.
		if got := (after.TotalAlloc - before.TotalAlloc) / calls; got > 24*keys {
			t.Errorf("a call for a new key takes %d bytes beside %d keys that are shut", got, keys)
		}
	})
}

func TestKeysThatWereShutAreForgottenOnceTheyAreOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tr, next := shutting(t, 3000)
		time.Sleep(time.Hour)
		for range 1000 {
			next()
		}
		if got := len(tr.Gates()); got > 1024 {
			t.Errorf("%d keys are remembered an hour after 3000 were shut", got)
		}
	})
}
