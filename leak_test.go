package heed_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// faulty fails in a way that the path names.
func faulty(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ok":
		io.WriteString(w, strings.Repeat("ok ", 100))
	case "/503":
		w.WriteHeader(503)
		io.WriteString(w, strings.Repeat("busy ", 100))
	case "/429":
		w.WriteHeader(429)
	case "/404":
		http.NotFound(w, r)
	case "/slow":
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
	case "/large":
		w.WriteHeader(500)
		io.Copy(w, io.LimitReader(zeros{}, 200<<10))
	case "/cut":
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "abc")
	default:
		hangUp(w, r.URL.Path)
	}
}

// hangUp resets the connection, or ends it in the middle of a body.
func hangUp(w http.ResponseWriter, how string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	if how == "/chunk" {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
		return
	}
	c.(*net.TCPConn).SetLinger(0)
}

// openFiles counts the descriptors of this process; -1: not known here.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(list)
}

// misuse makes calls of every kind, reads their answers wholly, in part or not
// at all, and closes them.
func misuse(client *http.Client, url string, calls int) {
	paths := [...]string{"/ok", "/503", "/429", "/404", "/large", "/cut", "/chunk", "/reset", "/slow"}
	for n := range calls {
		path := paths[n%len(paths)]
		if (path == "/slow" || path == "/429") && n%450 > 9 { // these take time
			path = "/reset"
		}
		var body io.Reader
		method := http.MethodGet
		if n%4 == 1 {
			method, body = http.MethodPut, io.MultiReader(strings.NewReader(strings.Repeat("x", 1000)))
		}
		req, _ := http.NewRequest(method, url+path, body)
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		if n%3 != 0 {
			io.Copy(io.Discard, io.LimitReader(resp.Body, int64(n%3)*500))
		}
		resp.Body.Close()
	}
}

func TestTenThousandFailuresLeaveNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Setenv("TMPDIR", t.TempDir())
	api := httptest.NewUnstartedServer(http.HandlerFunc(faulty))
	conns := newConns(api)
	api.Start()
	defer api.Close()
	goroutines, files := runtime.NumGoroutine(), openFiles()
	base := heed.NewBase(policy.Policy{}.WithDefaults().Timeouts)
	for _, mode := range []policy.VerifyMode{policy.VerifyHead, policy.VerifyFull} {
		pol := brisk(2)
		pol.Backoff = policy.Backoff{Formula: policy.Exponential, Base: time.Nanosecond, Cap: time.Nanosecond}
		pol.Retry.MinPause, pol.Retry.Tokens.Off = time.Nanosecond, true
		pol.Timeouts.Attempt = 30 * time.Millisecond
		pol.Verify.Mode = mode
		tr := &heed.Transport{Base: base, Policy: pol}
		var g sync.WaitGroup
		for range 10 {
			g.Go(func() { misuse(&http.Client{Transport: tr}, api.URL, 500) })
		}
		g.Wait()
		for _, s := range tr.Gates() {
			if s.InFlight != 0 || s.Waiting != 0 {
				t.Errorf("the gate holds %+v", s)
			}
		}
	}
	base.CloseIdleConnections()
	conns.drained()
	settle(t, goroutines, files)
}

// conns counts the connections of a server.
type conns struct {
	mu   sync.Mutex
	none sync.Cond
	n    int
}

func newConns(api *httptest.Server) *conns {
	c := &conns{}
	c.none.L = &c.mu
	api.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch s {
		case http.StateNew:
			c.n++
		case http.StateClosed, http.StateHijacked:
			c.n--
			c.none.Broadcast()
		}
	}
	return c
}

// drained waits until every connection has ended; one that leaks makes the
// test time out, which is its failure.
func (c *conns) drained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n > 0 {
		c.none.Wait()
	}
}

// settle waits until goroutines and files are back at what they were.
func settle(t *testing.T, goroutines, files int) {
	t.Helper()
	for range 1_000_000 {
		if runtime.NumGoroutine() <= goroutines && openFiles() <= files {
			break
		}
		runtime.Gosched()
	}
	if got := runtime.NumGoroutine(); got > goroutines {
		stacks := make([]byte, 20_000)
		t.Errorf("%d goroutines, began with %d:\n%s", got, goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if got := openFiles(); got > files {
		t.Errorf("%d open files, began with %d", got, files)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
}
