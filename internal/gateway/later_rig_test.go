package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
	"github.com/heedproject/heed/policy"
)

// later is a gateway with a queue in front of an API, in virtual time and
// without a network.
type later struct {
	*testing.T
	*Gateway
	store  *sqlite.Store
	worker *queue.Worker
	path   string
	keys   *queue.Keys
	set    Settings
	log    bytes.Buffer
	logMu  sync.Mutex

	mu   sync.Mutex
	seen []sight
	api  func(*http.Request, int) (int, http.Header, string)
}

// sight is a request as the API saw it.
type sight struct {
	at     time.Time
	method string
	url    string
	header http.Header
	body   string
}

// Write keeps the log.
func (l *later) Write(p []byte) (int, error) {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	return l.log.Write(p)
}

func (l *later) logged() string {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	return l.log.String()
}

// RoundTrip implements http.RoundTripper. A status of 0 breaks the connection.
func (l *later) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	l.mu.Lock()
	l.seen = append(l.seen, sight{time.Now(), r.Method, r.URL.String(), r.Header.Clone(), body})
	n := len(l.seen)
	l.mu.Unlock()
	status, h, text := l.api(r, n)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r}, nil
}

func (l *later) sights() []sight {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]sight(nil), l.seen...)
}

// calm is a policy without a learned pace and without jitter.
func calm() policy.Policy {
	return policy.Policy{
		Endpoint: "api", Retry: policy.Retry{Budget: time.Minute},
		Backoff: policy.Backoff{Formula: policy.Exponential, Base: 2 * time.Second, Cap: 8 * time.Second},
		Hints:   policy.Hints{JitterMax: -1}, Limits: policy.Limits{Learn: policy.Learn{Off: true}},
		Breaker: policy.Breaker{Jitter: -1},
		Key:     policy.Key{Header: "Idempotency-Key"},
	}
}

// answers is an API that gives one answer to everything.
func answers(status int, text string) func(*http.Request, int) (int, http.Header, string) {
	return func(*http.Request, int) (int, http.Header, string) { return status, nil, text }
}

// bubble runs f with a gateway in virtual time. change may be nil.
func bubble(t *testing.T, change func(*Settings, *policy.Policy), f func(*later)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := &later{T: t, path: filepath.Join(dir, "queue.db"), keys: queue.NewKeys(queue.NewKey())}
		l.api = answers(200, "hello")
		p := calm()
		l.set = Settings{Log: slog.New(slog.NewJSONHandler(l, nil)), Later: &Later{Body: 1 << 20, Answer: 1 << 20, Window: time.Hour}}
		u := &url.URL{Scheme: "http", Host: "api.test", Path: "/base"}
		l.set.Endpoints = []Endpoint{{Name: "api", URL: u}}
		if change != nil {
			change(&l.set, &p)
		}
		l.set.Endpoints[0].Transport = &heed.Transport{Base: l, Policy: p, Seed: 1}
		l.open()
		defer func() { l.close() }()
		f(l)
	})
}

// open opens the queue, as a start of the process does.
func (l *later) open() {
	l.Helper()
	var err error
	if l.store, err = sqlite.Open(l.Context(), sqlite.Options{Path: l.path, Keys: l.keys}); err != nil {
		l.Fatal(err)
	}
	bell := &queue.Bell{}
	l.worker = &queue.Worker{Feed: l.store, Share: 32, Poll: time.Minute, StopWithin: time.Second, Settled: bell.Settled,
		Send:   l.send,
		Failed: func(err error) { l.Errorf("the store failed: %v", err) }}
	l.set.Later.Store, l.set.Later.Bell, l.set.Later.Wake = l.store, bell, l.worker.Wake
	l.Gateway = New(l.set)
	l.worker.Start(l.Context())
}

func (l *later) send(ctx context.Context, c queue.Call) queue.Outcome { return l.Gateway.Send(ctx, c) }

func (l *later) close() {
	l.worker.Stop()
	if err := l.store.Close(); err != nil {
		l.Error(err)
	}
}

// do sends a request through h and returns the answer.
func (l *later) do(h http.Handler, method, path, body string, header ...string) answered {
	l.Helper()
	var r *http.Request
	if body == "" {
		r = httptest.NewRequestWithContext(l.Context(), method, path, nil)
	} else {
		r = httptest.NewRequestWithContext(l.Context(), method, path, strings.NewReader(body))
	}
	r.Host = "127.0.0.1:8642"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answered{w.Result(), w.Body.String()}
}

// async hands a call over and returns where its end can be asked for.
func (l *later) async(method, path, body string, header ...string) string {
	l.Helper()
	a := l.do(l.Gateway, method, path, body, append(header, "Prefer", "respond-async")...)
	if a.StatusCode != 202 {
		l.Fatalf("%s %s: got %d, want 202: %s", method, path, a.StatusCode, a.text)
	}
	return a.Header.Get("Location")
}

// ask asks how a call stands.
func (l *later) ask(location string) (s standing) {
	l.Helper()
	a := l.do(l.Gateway, "GET", location, "")
	if a.StatusCode != 200 {
		l.Fatalf("GET %s: got %d: %s", location, a.StatusCode, a.text)
	}
	l.decode(a, &s)
	return s
}

func (l *later) decode(a answered, v any) {
	l.Helper()
	if err := json.Unmarshal([]byte(a.text), v); err != nil {
		l.Fatalf("%v: %s", err, a.text)
	}
}

// end waits for the end of a call.
func (l *later) end(location string) standing {
	l.Helper()
	for range 10_000 {
		if s := l.ask(location); s.State == "done" || s.State == "dead" || s.State == "quarantined" || s.State == "unknown" || s.State == "cancelled" {
			return s
		}
		time.Sleep(time.Second)
	}
	l.Fatalf("%s does not end: %+v", location, l.ask(location))
	return standing{}
}

// operate sends a request to the admin port and decodes the answer into v.
func (l *later) operate(method, path, body string, v any) answered {
	l.Helper()
	a := l.do(l.Admin(), method, path, body)
	if v != nil {
		if a.StatusCode != 200 {
			l.Fatalf("%s %s: got %d: %s", method, path, a.StatusCode, a.text)
		}
		l.decode(a, v)
	}
	return a
}

// leaves sends a request whose caller leaves when ctx ends.
func (l *later) leaves(ctx context.Context, method, path, body string, header ...string) {
	l.Helper()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8642"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	defer func() {
		if thrown := recover(); thrown != http.ErrAbortHandler {
			l.Errorf("got %v, want the connection to be given up", thrown)
		}
	}()
	l.ServeHTTP(httptest.NewRecorder(), r)
}

// id is the id of the call at a location.
func (l *later) id(location string) string { return strings.TrimPrefix(location, callsPath+"/") }
