package heed_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// step is what a provider does with one attempt.
type step func(*http.Request) (*http.Response, error)

// try is one attempt as the provider saw it.
type try struct {
	at     time.Duration // since the provider was made
	header http.Header
	body   string
}

// provider plays its steps in order and then the last one for ever. It keeps
// the contract of a RoundTripper: it reads the body and closes it.
type provider struct {
	mu    sync.Mutex
	begun time.Time
	steps []step
	tries []try
	open  int // bodies of answers that are not closed
}

func plays(steps ...step) *provider { return &provider{begun: time.Now(), steps: steps} }

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	p.mu.Lock()
	next := p.steps[min(len(p.tries), len(p.steps)-1)]
	p.tries = append(p.tries, try{time.Since(p.begun), r.Header.Clone(), body})
	p.mu.Unlock()
	resp, err := next(r)
	if resp != nil && resp.Body != nil && resp.Body != http.NoBody {
		p.mu.Lock()
		p.open++
		p.mu.Unlock()
		resp.Body = &counted{ReadCloser: resp.Body, p: p}
	}
	return resp, err
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tries)
}

type counted struct {
	io.ReadCloser
	p    *provider
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.p.mu.Lock()
		c.p.open--
		c.p.mu.Unlock()
	})
	return c.ReadCloser.Close()
}

// says answers with status, the header in pairs, and a body.
func says(status int, body string, header ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		resp := &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}
		if body == "" {
			resp.Body = http.NoBody
		}
		return resp, nil
	}
}

// breaks ends the attempt with err.
func breaks(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

var errReset = &netError{"read", syscall.ECONNRESET}

type netError struct {
	op  string
	err error
}

func (e *netError) Error() string { return e.op + ": " + e.err.Error() }
func (e *netError) Unwrap() error { return e.err }

// hangs waits for the end of the attempt.
func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// streams answers with what w is written, until the attempt ends.
func streams(write func(w *io.PipeWriter)) step {
	return func(r *http.Request) (*http.Response, error) {
		pr, pw := io.Pipe()
		context.AfterFunc(r.Context(), func() { pw.CloseWithError(r.Context().Err()) })
		go write(pw)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: pr, ContentLength: -1, Request: r}, nil
	}
}

// request makes one; body "" is none. The body has no GetBody.
func request(t testing.TB, method, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://api.example/v1/items", nil)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	return req
}

// finish reads and closes the answer and returns its status and text.
func finish(t testing.TB, resp *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatalf("RoundTrip: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	resp.Body.Close()
	return resp.StatusCode, string(b)
}

// refused returns the *heed.Error that a call must end with.
func refused(t testing.TB, resp *http.Response, err error) *heed.Error {
	t.Helper()
	if resp != nil {
		t.Fatalf("got an answer with status %d, want none (%v)", resp.StatusCode, err)
	}
	e, ok := errors.AsType[*heed.Error](err)
	if !ok {
		t.Fatalf("got %T %v, want a *heed.Error", err, err)
	}
	return e
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// unpaced is a policy without a learned pace, so that only what is tested waits.
func unpaced() policy.Policy {
	return policy.Policy{Limits: policy.Limits{Learn: policy.Learn{Off: true}}}
}

// journal keeps events.
type journal struct {
	mu     sync.Mutex
	events []heed.Event
}

func (j *journal) note(e heed.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

func (j *journal) of(kind heed.EventKind) (list []heed.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}
