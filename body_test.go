package heed_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// closes is a body that counts how often it is closed.
type closes struct {
	io.Reader
	mu sync.Mutex
	n  int
}

func (c *closes) Read(p []byte) (int, error) {
	if c.Reader == nil {
		return 0, io.EOF
	}
	return c.Reader.Read(p)
}

func (c *closes) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return nil
}

func TestGetBodyIsCalledOncePerExtraAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(503, ""), says(503, ""), says(200, ""))
		calls := 0
		req := request(t, "PUT", "hello")
		req.GetBody = func() (io.ReadCloser, error) {
			calls++
			return io.NopCloser(strings.NewReader("hello")), nil
		}
		resp, err := (&heed.Transport{Base: p}).RoundTrip(req)
		finish(t, resp, err)
		var got []string
		for _, a := range p.tries {
			got = append(got, a.body)
		}
		if diff := cmp.Diff([]string{"hello", "hello", "hello"}, got); diff != "" || calls != 2 {
			t.Errorf("GetBody was called %d times, want 2; bodies (-want +got):\n%s", calls, diff)
		}
	})
}

func TestABodyWithoutGetBodyIsSentAgain(t *testing.T) {
	for name, size := range map[string]int{"from memory": 1000, "from a file": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				text := strings.Repeat("0123456789", size/10)
				p := plays(says(503, ""), breaks(errReset), says(200, ""))
				body := &closes{Reader: strings.NewReader(text)}
				req := request(t, "PUT", "")
				req.Body, req.ContentLength = body, int64(len(text))
				resp, err := (&heed.Transport{Base: p}).RoundTrip(req)
				finish(t, resp, err)
				for i, a := range p.tries {
					if a.body != text {
						t.Errorf("attempt %d got %d other bytes, want %d", i+1, len(a.body), len(text))
					}
				}
				if p.count() != 3 || body.n != 1 {
					t.Errorf("got %d attempts, body closed %d times", p.count(), body.n)
				}
			})
		})
	}
}

func TestTheWriterOfAPipedBodyUnblocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		wrote := make(chan error, 1)
		go func() {
			for {
				if _, err := pw.Write(make([]byte, 1000)); err != nil {
					wrote <- err
					return
				}
			}
		}()
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			io.ReadFull(r.Body, make([]byte, 5000))
			r.Body.Close()
			return says(400, "no")(r)
		})
		req := request(t, "PUT", "")
		req.Body, req.ContentLength = pr, -1
		resp, err := (&heed.Transport{Base: base}).RoundTrip(req)
		finish(t, resp, err)
		if err := <-wrote; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the writer got %v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheBodyIsClosedOnceOnEveryPath(t *testing.T) {
	good := plays(says(200, "ok"))
	for name, c := range map[string]struct {
		tr   *heed.Transport
		call heed.Call
	}{
		"success":         {tr: &heed.Transport{Base: good}},
		"invalid policy":  {tr: &heed.Transport{Base: good, Policy: policy.Policy{Retry: policy.Retry{Budget: -1}}}},
		"not allowed":     {tr: &heed.Transport{Base: good, Policy: policy.Policy{Allow: []policy.Allow{{Path: "/x"}}}}},
		"bad key":         {tr: &heed.Transport{Base: good, Policy: policy.Policy{Key: policy.Key{Header: "Idempotency-Key", MaxLen: 3}}}, call: heed.Call{Key: "far too long"}},
		"not before":      {tr: &heed.Transport{Base: good}, call: heed.Call{NotBefore: time.Now().Add(time.Hour)}},
		"attempt failed":  {tr: &heed.Transport{Base: plays(breaks(errReset))}},
		"panic in a hook": {tr: &heed.Transport{Base: good, QuotaKey: func(*http.Request) string { panic("hook") }}},
		"panic at the base": {tr: &heed.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
			panic("base")
		})}},
	} {
		for _, own := range []bool{false, true} {
			body := &closes{Reader: strings.NewReader("text")}
			req := request(t, "POST", "").WithContext(heed.WithCall(t.Context(), c.call))
			req.Body, req.ContentLength = body, 4
			if own {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("text")), nil }
			}
			func() {
				defer func() { _ = recover() }()
				if resp, err := c.tr.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
			}()
			if body.n != 1 {
				t.Errorf("%s, GetBody %v: closed %d times, want once", name, own, body.n)
			}
		}
	}
}

func TestTheCallersRequestIsNotChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := policy.Policy{
			Retry: policy.Retry{Announce: true},
			Key:   policy.Key{Header: "X-Key", From: policy.KeyRandom},
		}
		p := plays(says(503, ""), says(200, ""))
		req := request(t, "POST", "hello")
		req.Header.Set("Idempotency-Key", "mine")
		req.Header.Set("Cookie", "a=b")
		before, url, body := maps.Clone(req.Header), *req.URL, req.Body
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(req)
		finish(t, resp, err)
		if diff := cmp.Diff(before, req.Header); diff != "" || *req.URL != url || req.Body != body {
			t.Errorf("the request was changed (-before +after):\n%s", diff)
		}
		if resp.Request != req {
			t.Error("the answer does not name the caller's request")
		}
	})
}

func TestARequestWithGetBodyMayBeUsedTwiceAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var n atomic.Int32
		p := plays(func(r *http.Request) (*http.Response, error) {
			if n.Add(1) <= 4 {
				return says(503, "")(r)
			}
			return says(200, "ok")(r)
		})
		tr := &heed.Transport{Base: p}
		var g sync.WaitGroup
		for range 4 {
			req, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://api.example/v1/items", bytes.NewReader([]byte("x")))
			for range 2 {
				g.Go(func() {
					own := req.WithContext(req.Context())
					own.Body, _ = req.GetBody()
					if resp, err := tr.RoundTrip(own); err != nil {
						t.Error(err)
					} else {
						resp.Body.Close()
					}
				})
			}
		}
		g.Wait()
	})
}

func TestASpoolFileIsGoneAfterTheCall(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	bubble(t, func(t *testing.T) {
		p := plays(says(503, ""), says(200, ""))
		req := request(t, "PUT", strings.Repeat("x", 2<<20))
		resp, err := (&heed.Transport{Base: p}).RoundTrip(req)
		finish(t, resp, err)
		left, err := os.ReadDir(os.TempDir())
		if err != nil || len(left) != 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
}

func TestAnAnswerWithoutABodyHoldsNothing(t *testing.T) {
	for _, status := range []int{204, 304, 101} {
		tr := &heed.Transport{Base: plays(says(status, "")), Policy: policy.Policy{Limits: policy.Limits{Concurrency: 1}}}
		for range 3 { // the answers are not closed
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			if err != nil || resp.StatusCode != status {
				t.Fatalf("status %d: got %v, %v", status, resp, err)
			}
		}
		if got := tr.Gates()[0].InFlight; got != 0 {
			t.Errorf("status %d: %d in flight", status, got)
		}
	}
}

func TestCloseMayComeWhileAnotherGoroutineReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := &journal{}
		tr := &heed.Transport{Base: plays(streams(func(w *io.PipeWriter) { w.Write([]byte("x")) })), Observe: j.note}
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { io.ReadAll(resp.Body); close(ended) }()
		time.Sleep(time.Second)
		resp.Body.Close()
		<-ended
		if got := j.of(heed.CallDone); len(got) != 1 || got[0].Bytes != 1 {
			t.Errorf("got %d ends, want one: %+v", len(got), got)
		}
	})
}
