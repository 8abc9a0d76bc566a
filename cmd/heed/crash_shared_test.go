//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The calls of both gateways go through one gate, eight at a time. The lease
// is short, so that the test sees it run out.
const shared = `version: 1
queue:
  store: postgres
  dsn: file:%[1]s/dsn
  keys: ["file:%[1]s/keys"]
  lease: 3s
endpoints:
  %[2]s:
    url: %[3]s
    networks: [127.0.0.0/8]
    limits: {rate: 5000/s, burst: 5000, concurrency: %[4]d}
`

const sharedLimit = 8

// crowd counts requests in flight, as the provider sees them, and holds back
// those that are asked to wait.
type crowd struct {
	mu           sync.Mutex
	inside, most int
	asked        map[string]int // times a path was requested
	held         chan struct{}  // of requests that wait; nil: none does
	arrived      chan string    // paths of those that wait
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.inside++
	c.most = max(c.most, c.inside)
	c.asked[r.URL.Path]++
	held := c.held
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.inside--
		c.mu.Unlock()
	}()
	if held != nil {
		c.arrived <- r.URL.Path
		select {
		case <-held:
		case <-r.Context().Done(): // the gateway died
			return
		}
	}
	fmt.Fprint(w, "here")
}

// release lets go on whoever waits.
func (c *crowd) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.held)
	c.held = nil
}

// pair is two gateways on one database.
type pair struct {
	t        *testing.T
	dsn, url string
	name     string // of the endpoint; no other run of the test has it
}

func (p *pair) up() *process {
	p.t.Helper()
	home := p.t.TempDir()
	writeFile(p.t, filepath.Join(home, "dsn"), p.dsn)
	writeFile(p.t, filepath.Join(home, "keys"), testKey)
	writeFile(p.t, filepath.Join(home, "heed.yaml"), fmt.Sprintf(shared, home, p.name, p.url, sharedLimit))
	return up(p.t, home)
}

// hand hands a read over to one of them, and returns its id.
func (p *pair) hand(g *process, n int) string {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, fmt.Sprintf("http://%s/%s/%d", g.data, p.name, n), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Prefer", "respond-async")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get("Heed-Call-Id")
	if resp.StatusCode != http.StatusAccepted || id == "" {
		p.t.Fatalf("got %s, want 202 with an id", resp.Status)
	}
	return id
}

// done wants a call to end well, whichever gateway is asked.
func (p *pair) done(g *process, id string) {
	p.t.Helper()
	var call callRow
	for !call.state().Ended() {
		if err := getJSON("http://"+g.data+"/_heed/calls/"+id+"?wait=60s", &call); err != nil {
			p.t.Fatal(err)
		}
	}
	if call.State != "done" {
		p.t.Errorf("call %s: got %s (%s), want done", id, call.State, call.Reason)
	}
}

func TestTwoGatewaysShareALimitAndOneTakesOverWhatTheOtherHad(t *testing.T) {
	p := &pair{t: t, dsn: os.Getenv("HEED_TEST_POSTGRES"), name: fmt.Sprintf("pair-%d", time.Now().UnixNano())}
	if p.dsn == "" {
		t.Skip("HEED_TEST_POSTGRES names no server: ./test starts one")
	}
	c := &crowd{asked: map[string]int{}, arrived: make(chan string, 100)}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	p.url = srv.URL
	a, b := p.up(), p.up()

	// Both work at one backlog, and the provider never sees more than the limit.
	var ids []string
	for n := range 200 {
		ids = append(ids, p.hand([]*process{a, b}[n%2], n))
	}
	for n, id := range ids {
		p.done([]*process{b, a}[n%2], id)
	}
	c.mu.Lock()
	if c.most > sharedLimit {
		t.Errorf("in flight at once: got %d, want at most %d", c.most, sharedLimit)
	}
	c.held = make(chan struct{})
	c.mu.Unlock()

	// One of them dies while it has calls under way.
	ids = ids[:0]
	for n := range 2 * sharedLimit {
		ids = append(ids, p.hand(a, 1000+n))
	}
	for range sharedLimit {
		<-c.arrived
	}
	a.signal(syscall.SIGKILL)
	a.end()
	killed := time.Now()
	c.release()
	for _, id := range ids {
		p.done(b, id)
	}
	t.Logf("all calls of the dead gateway were done %s after it died, with a lease of 3s", time.Since(killed).Round(time.Millisecond))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most > sharedLimit {
		t.Errorf("in flight at once: got %d, want at most %d", c.most, sharedLimit)
	}
}
