package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// queued gives cfg a queue in a folder of its own.
func queued(t *testing.T, cfg *config.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.db")
	cfg.File = "heed.yaml"
	cfg.Queue = &config.Queue{
		Store: config.QueueSQLite, Path: path, ResultTTL: time.Hour, DeadTTL: time.Hour, Window: time.Hour,
		Max: config.QueueMax{Calls: 1000, Body: 1 << 20, Answer: 1 << 20}, Lease: 5 * time.Second, Workers: 8,
	}
	return path
}

// ask sends a request and returns the answer with its body.
func ask(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp, string(b)
}

// async hands a call over and returns where its end can be asked for.
func async(t *testing.T, a *App, method, path, body string, header ...string) string {
	t.Helper()
	resp, text := ask(t, method, "http://"+a.DataAddr()+path, body, append(header, "Prefer", "respond-async")...)
	if resp.StatusCode != 202 {
		t.Fatalf("%s %s: got %d, want 202: %s", method, path, resp.StatusCode, text)
	}
	return resp.Header.Get("Location")
}

// ended waits for the end of a call.
func ended(t *testing.T, a *App, at string) (state string) {
	t.Helper()
	var s struct{ State, Ended string }
	for range 3 {
		_, text := ask(t, "GET", "http://"+a.DataAddr()+at+"?wait=20s", "")
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if s.Ended != "" {
			return s.State
		}
	}
	t.Fatalf("%s does not end: %+v", at, s)
	return ""
}

func TestWhatWasAcceptedOutlivesTheProcess(t *testing.T) {
	var up atomic.Bool
	sent := make(chan struct{}, 1000)
	cfg := settings(api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			sent <- struct{}{}
			return
		}
		b, _ := io.ReadAll(r.Body)
		io.WriteString(w, "got "+string(b)+" under "+r.Header.Get("X-Key"))
	}))
	cfg.Endpoints[0].Policy.Key = policy.Key{Header: "X-Key"}
	queued(t, cfg)
	a := start(t, cfg, Options{})
	at := async(t, a, "POST", "/api/x", "this", "Idempotency-Key", "k-1")
	<-sent
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	up.Store(true)
	b := start(t, cfg, Options{})
	if state := ended(t, b, at); state != "done" {
		t.Errorf("it ended as %s", state)
	}
	if _, text := ask(t, "GET", "http://"+b.DataAddr()+at+"/response", ""); text != "got this under k-1" {
		t.Errorf("got %q", text)
	}
}

func TestAStopGivesBackWhatItCannotFinish(t *testing.T) {
	var hangs atomic.Bool
	hangs.Store(true)
	sent := make(chan struct{}, 1000)
	cfg := settings(api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then the server sees that the caller leaves
		if hangs.Load() {
			sent <- struct{}{}
			<-r.Context().Done()
		}
	}))
	queued(t, cfg)
	a := start(t, cfg, Options{Grace: 50 * time.Millisecond})
	read := async(t, a, "GET", "/api/x", "")
	write := async(t, a, "POST", "/api/y", "b")
	<-sent
	<-sent
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	hangs.Store(false)
	b := start(t, cfg, Options{})
	if state := ended(t, b, read); state != "done" {
		t.Errorf("what may be repeated ended as %s", state)
	}
	if state := ended(t, b, write); state != "unknown" {
		t.Errorf("a write that may have been carried out ended as %s, want unknown", state)
	}
}

func TestTheQueueAndItsKeyAreForTheUserAlone(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	cfg.File = ""
	path := queued(t, cfg)
	var log journal
	a := start(t, cfg, Options{Out: &log})
	async(t, a, "GET", "/api/x", "")
	for _, name := range []string{path, path + "-wal", path + ".keys"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := info.Mode().Perm(); m != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(name), m)
		}
	}
	a.Stop(t.Context())
	if !strings.Contains(log.String(), `"msg":"a key for the queue was made"`) {
		t.Errorf("nobody was told of the key:\n%s", log.String())
	}
}

func TestTheQueueLiesInTheFolderOfTheProcesssState(t *testing.T) {
	dir := t.TempDir()
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	queued(t, cfg)
	cfg.Queue.Path, cfg.File = "", "heed.yaml"
	start(t, cfg, Options{Getenv: func(name string) string { return map[string]string{"XDG_STATE_HOME": dir}[name] }})
	if _, err := os.Stat(filepath.Join(dir, "heed", "queue.db")); err != nil {
		t.Error(err)
	}
	if _, err := New(cfg, Options{}); err == nil || !strings.Contains(err.Error(), "queue.path") {
		t.Errorf("without any folder: got %v", err)
	}
}

func TestTheDemoDoesWithoutAQueueThatItCannotHave(t *testing.T) {
	cfg := config.Demo("http://127.0.0.1:1/demo")
	cfg.Listen = config.Listen{Data: "127.0.0.1:0", Admin: "127.0.0.1:0"}
	var log journal
	a := start(t, cfg, Options{Out: &log})
	if code, body := get(t, a.DataAddr(), "/demo/x", "Prefer", "respond-async"); code != 501 || !strings.Contains(body, "async-not-available") {
		t.Errorf("got %d %s", code, body)
	}
	a.Stop(t.Context())
	if !strings.Contains(log.String(), `"msg":"the demo has no queue"`) || a.NoQueue() == nil {
		t.Errorf("nobody was told: %v\n%s", a.NoQueue(), log.String())
	}
}

func TestTheDemoKeepsItsCallsApart(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Demo("http://127.0.0.1:1/demo")
	cfg.Listen = config.Listen{Data: "127.0.0.1:0", Admin: "127.0.0.1:0"}
	start(t, cfg, Options{Getenv: func(name string) string { return map[string]string{"XDG_STATE_HOME": dir}[name] }})
	files, err := filepath.Glob(filepath.Join(dir, "heed", "*.db"))
	if want := []string{filepath.Join(dir, "heed", "demo.db")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("got %q, %v, want %q", files, err, want)
	}
}

func TestAQueueWithoutItsKeyIsRefusedAndLeftAlone(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	path := queued(t, cfg)
	a := start(t, cfg, Options{})
	at := async(t, a, "GET", "/api/x", "", "Heed-Not-Before", "3600")
	a.Stop(t.Context())
	if err := os.Rename(path+".keys", path+".away"); err != nil {
		t.Fatal(err)
	}
	if b, err := New(cfg, Options{}); err == nil || !strings.Contains(err.Error(), "key") {
		b.Stop(t.Context())
		t.Fatalf("got %v", err)
	}
	if err := os.Rename(path+".away", path+".keys"); err != nil {
		t.Fatal(err)
	}
	b := start(t, cfg, Options{})
	if resp, text := ask(t, "GET", "http://"+b.DataAddr()+at, ""); resp.StatusCode != 200 {
		t.Errorf("got %d %s", resp.StatusCode, text)
	}
}

func TestTheQueueStaysTheSameOverAReload(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	queued(t, cfg)
	a := start(t, cfg, Options{})
	other := *cfg
	q := *cfg.Queue
	q.Workers++
	other.Queue = &q
	if err := a.Reload(&other); err == nil || !strings.Contains(err.Error(), "queue") {
		t.Errorf("got %v", err)
	}
	same := *cfg
	if err := a.Reload(&same); err != nil {
		t.Error(err)
	}
	if state := ended(t, a, async(t, a, "GET", "/api/x", "")); state != "done" {
		t.Errorf("after the reload a call ended as %s", state)
	}
}

func TestAPausedEndpointStaysPausedOverARestart(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	queued(t, cfg)
	a := start(t, cfg, Options{})
	if resp, text := ask(t, "POST", "http://"+a.AdminAddr()+"/_heed/endpoints/api/pause", ""); resp.StatusCode != 200 {
		t.Fatalf("got %d %s", resp.StatusCode, text)
	}
	a.Stop(t.Context())
	b := start(t, cfg, Options{})
	if code, body := get(t, b.DataAddr(), "/api/x"); code != 503 || !strings.Contains(body, "endpoint-paused") {
		t.Errorf("got %d %s", code, body)
	}
	at := async(t, b, "GET", "/api/x", "")
	ask(t, "POST", "http://"+b.AdminAddr()+"/_heed/endpoints/api/resume", "")
	if state := ended(t, b, at); state != "done" {
		t.Errorf("after resume it ended as %s", state)
	}
}

// TestNothingSecretLeavesTheQueue plants secrets in everything that a caller
// and a provider say, and looks for them wherever heed writes or tells.
func TestNothingSecretLeavesTheQueue(t *testing.T) {
	var mu sync.Mutex
	n := map[string]int{}
	cfg := settings(api(t, "api", func(w http.ResponseWriter, r *http.Request) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		mu.Lock()
		n[kind]++
		mu.Unlock()
		w.Header().Set("X-Secret", canary)
		w.Header().Set("Location", "/"+canary)
		switch kind {
		case "dead":
			w.WriteHeader(422)
		case "unknown":
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
			return
		case "odd":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"error":"`+canary+`"}`)
			return
		case "later":
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
		}
		io.WriteString(w, canary)
	}))
	e := &cfg.Endpoints[0]
	e.Rules = []classify.Rule{{ID: "odd", When: classify.Match{Paths: []string{"/odd/**"}}, Then: classify.Verdict{Class: classify.Invalid, Retry: classify.Never}}}
	path := queued(t, cfg)
	var log journal
	a := start(t, cfg, Options{Out: &log})
	told := plant(t, a)
	for _, p := range []string{"/metrics", "/_heed/calls", "/_heed/queue", "/_heed/gates", "/_heed/waiting", "/_heed/endpoints", "/_heed/endpoints/api"} {
		_, text := ask(t, "GET", "http://"+a.AdminAddr()+p, "")
		told[p] = text
	}
	told["files while it runs"] = files(t, path)
	a.Stop(t.Context())
	told["files"] = files(t, path)
	told["log"] = log.String()
	for where, text := range told {
		if at := strings.Index(text, canary); at >= 0 {
			t.Errorf("%s tells a secret: …%q…", where, text[max(at-80, 0):min(at+40, len(text))])
		}
	}
	if len(told["files"]) == 0 || len(told["/_heed/calls"]) < 100 {
		t.Error("there was nothing to look at")
	}
}

// plant sends calls of every end that are full of secrets, and returns what
// the data port and the admin port tell of each.
func plant(t *testing.T, a *App) map[string]string {
	t.Helper()
	told := map[string]string{}
	// The last one closes the key for the others.
	for _, kind := range []string{"done", "dead", "unknown", "odd", "later"} {
		want := map[string]string{"done": "done", "dead": "dead", "unknown": "unknown", "odd": "quarantined"}[kind]
		at := async(t, a, "POST", "/api/"+kind+"/"+canary+"/x?q="+canary, "body "+canary, "X-Secret", canary, "Cookie", "s="+canary,
			"Authorization", "Bearer "+canary, "Idempotency-Key", canary+"-"+kind)
		if kind == "later" {
			for !strings.Contains(told[at], `"state":"waiting"`) {
				_, told[at] = ask(t, "GET", "http://"+a.DataAddr()+at, "")
			}
		} else if state := ended(t, a, at); state != want {
			t.Errorf("%s ended as %s, want %s", kind, state, want)
		}
		_, told["status of "+kind] = ask(t, "GET", "http://"+a.DataAddr()+at, "")
		_, told["admin of "+kind] = ask(t, "GET", "http://"+a.AdminAddr()+at, "")
		_, told["refused edit of "+kind] = ask(t, "PATCH", "http://"+a.AdminAddr()+at, `{"path":"/../`+canary+`"}`)
		_, told["conflict of "+kind] = ask(t, "POST", "http://"+a.DataAddr()+"/api/"+kind+"/other", canary, "Prefer", "respond-async", "Idempotency-Key", canary+"-"+kind)
	}
	_, told["bad envelope"] = ask(t, "POST", "http://"+a.DataAddr()+"/_heed/calls", `{"heed":1,"endpoint":"api","method":"GET","path":"`+canary+`"}`)
	_, told["bad import"] = ask(t, "POST", "http://"+a.AdminAddr()+"/_heed/calls/import", `{"heed":1,"endpoint":"`+canary+``)
	return told
}

// files reads the database with all that lies beside it, but for the key.
func files(t *testing.T, path string) string {
	t.Helper()
	var all strings.Builder
	for _, suffix := range []string{"", "-wal", "-shm", "-owner", "-journal"} {
		b, err := os.ReadFile(path + suffix)
		if err == nil {
			all.Write(b)
		}
	}
	return all.String()
}

func TestAQueueThatFallsBehindIsToldOnce(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	queued(t, cfg)
	var log journal
	a, err := New(cfg, Options{Out: &log})
	if err != nil {
		t.Fatal(err)
	}
	k, now := a.queue, time.Now()
	if _, err := k.store.Enqueue(t.Context(), now, []queue.Call{{Facts: queue.Facts{Endpoint: "api", Gate: gateway.MainGate, Method: "GET"}}}); err != nil {
		t.Fatal(err)
	}
	late := map[string]bool{}
	k.look(now.Add(lateAfter), late)
	k.look(now.Add(lateAfter+time.Second), late)
	k.look(now.Add(lateAfter+2*time.Second), late)
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), `"alert":"queue_late"`); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, log.String())
	}
}

func TestWhatBrokeIsToldBeforeItIsErased(t *testing.T) {
	cfg := settings(api(t, "api", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(422) }))
	queued(t, cfg)
	var log journal
	a := start(t, cfg, Options{Out: &log})
	if state := ended(t, a, async(t, a, "POST", "/api/x", "b")); state != "dead" {
		t.Fatalf("it ended as %s", state)
	}
	a.queue.warn(time.Now()) // it is kept for an hour, and told a day before
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"alert":"queue_erases"`) {
		t.Errorf("nobody is told:\n%s", log.String())
	}
}

func TestAStopDoesNotWaitForThoseWhoWaitForACall(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	queued(t, cfg)
	a := start(t, cfg, Options{Grace: 20 * time.Second})
	at := async(t, a, "GET", "/api/x", "", "Heed-Not-Before", "3600")
	for a.gateway.Calls() > 0 { // the one that handed it over
		runtime.Gosched()
	}
	said := make(chan string, 1)
	go func() {
		defer close(said) // also if it is told nothing
		_, text := ask(t, "GET", "http://"+a.DataAddr()+at+"?wait=60s", "")
		said <- text
	}()
	for a.gateway.Calls() == 0 {
		runtime.Gosched()
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatalf("it was waited for: %v", err)
	}
	if text := <-said; !strings.Contains(text, `"state":"waiting"`) {
		t.Errorf("the one who waited was told %s", text)
	}
}

// deaf is a store on which nothing can be begun.
type deaf struct {
	queue.Feed
	asked atomic.Int32
}

func (d *deaf) Begin(context.Context, []queue.Claim) ([]string, error) {
	d.asked.Add(1)
	return nil, queue.ErrStorage
}

func TestAWriteLeavesOnlyAfterTheQueueKnowsThatItIsBegun(t *testing.T) {
	var arrived atomic.Int32
	cfg := settings(api(t, "api", func(w http.ResponseWriter, r *http.Request) { arrived.Add(1) }))
	queued(t, cfg)
	a, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	feed := &deaf{Feed: a.queue.store}
	a.queue.worker.Feed = feed
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := async(t, a, "POST", "/api/x", "this")
	ask(t, "GET", "http://"+a.DataAddr()+at+"?wait=1s", "")
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if feed.asked.Load() == 0 || arrived.Load() != 0 {
		t.Errorf("the queue was asked %d times and the server %d times, want at least once and never", feed.asked.Load(), arrived.Load())
	}
}
