//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stripe"
	"github.com/heedproject/heed/sim/rate"
)

// The crash loop kills a few times in every run of the tests.
// HEED_CRASH_ROUNDS says how often else; from soakRounds on the machine is
// taken to be idle enough for a bound in seconds.
const (
	crashRounds = 3
	soakRounds  = 50
)

func rounds(t *testing.T) int {
	text := os.Getenv("HEED_CRASH_ROUNDS")
	if text == "" {
		return crashRounds
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("HEED_CRASH_ROUNDS is %q; write how often to kill", text)
	}
	return n
}

// till is a Stripe that takes its time, and remembers when it was first called
// since it was asked to.
type till struct {
	*sim.API
	armed atomic.Bool
	first chan time.Time
}

func (s *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.armed.CompareAndSwap(true, false) {
		s.first <- time.Now()
	}
	s.API.ServeHTTP(w, r)
}

func newTill(t *testing.T) (*till, string) {
	t.Helper()
	api, err := sim.New(sim.World{Packs: []sim.Pack{stripe.Pack()}, Limits: []rate.Limit{}, Steps: "charges.create: slow(for=15ms) x1000000"})
	if err != nil {
		t.Fatal(err)
	}
	s := &till{API: api, first: make(chan time.Time, 1)}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.Close(); api.Close() })
	return s, srv.URL
}

// The lease is far longer than the test: a call that was under way when the
// process was killed is only ever sent again because a new process knows that
// it is the owner now.
const crashed = `version: 1
log: {attempts: none, calls: none}
queue:
  path: %[1]s/queue.db
  lease: 1h
endpoints:
  pay:
    url: %[2]s
    profile: stripe
    auth: {kind: header, prefix: "Bearer ", value: "file:%[1]s/credential"}
    networks: [127.0.0.0/8]
    limits: {rate: 5000/s, burst: 5000, concurrency: 16}
`

// crashRun is one gateway that dies again and again, and those who hand calls
// over to it.
type crashRun struct {
	t    *testing.T
	dir  string
	till *till
	rng  *rand.Rand

	mu    sync.Mutex
	moved sync.Cond         // when base changes
	base  string            // where callers reach the gateway; empty: it is dead
	taken map[string]string // key → id of the calls that were answered with 202
	next  int
	over  bool
}

// produce hands calls over, one after the other. A caller that was not
// answered does not know whether its call was taken, and hands it over again
// under the same key, as it would to Stripe itself.
func (c *crashRun) produce() {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for {
		c.mu.Lock()
		if c.over {
			c.mu.Unlock()
			return
		}
		c.next++
		key := fmt.Sprintf("order-%d", c.next)
		c.mu.Unlock()
		id := ""
		for id == "" && c.t.Context().Err() == nil {
			id = c.handOver(client, key)
		}
		c.mu.Lock()
		c.taken[key] = id
		c.mu.Unlock()
	}
}

// move says where the gateway is now, or that it is dead.
func (c *crashRun) move(base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = base
	c.moved.Broadcast()
}

// handOver gives one call to the gateway, and returns its id when it was taken.
func (c *crashRun) handOver(client *http.Client, key string) (id string) {
	c.mu.Lock()
	for c.base == "" {
		c.moved.Wait()
	}
	base := c.base
	c.mu.Unlock()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, base+"/pay/v1/charges",
		strings.NewReader("amount=350&currency=eur&source=tok_visa&description="+key))
	if err != nil {
		c.t.Error(err)
		return ""
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Prefer", "respond-async")
	resp, err := client.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		return ""
	}
	return resp.Header.Get("Heed-Call-Id")
}

// restart starts the gateway, and returns how long it took from there to the
// first attempt, if something was in the queue.
func (c *crashRun) restart() (p *process, took time.Duration, had bool) {
	c.mu.Lock()
	had = c.till.Effects().Charges < len(c.taken)
	c.mu.Unlock()
	c.till.armed.Store(had)
	begun := time.Now()
	p = up(c.t, c.dir)
	if had {
		select {
		case at := <-c.till.first:
			took = at.Sub(begun)
		case <-c.t.Context().Done():
			c.t.Fatal("nothing was sent after a restart, although calls wait")
		}
	}
	c.move("http://" + p.data)
	return p, took, had
}

// kill ends the process at an instant by chance, however far it is with what
// it does.
func (c *crashRun) kill(p *process) {
	<-time.After(time.Duration(50+c.rng.IntN(400)) * time.Millisecond)
	p.signal(syscall.SIGKILL)
	p.end()
	c.move("")
}

// TestNothingAcknowledgedIsLostAndNothingDoneTwiceByKill9 kills the gateway
// under load, round after round, and then looks at every call that was
// answered with 202, and at the books of the provider.
func TestNothingAcknowledgedIsLostAndNothingDoneTwiceByKill9(t *testing.T) {
	n := rounds(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d rounds", seed, n)
	s, url := newTill(t)
	c := &crashRun{t: t, dir: t.TempDir(), till: s, rng: rand.New(rand.NewPCG(seed, 9)), taken: map[string]string{}}
	c.moved.L = &c.mu
	writeFile(t, filepath.Join(c.dir, "credential"), "sk_test_1")
	writeFile(t, filepath.Join(c.dir, "heed.yaml"), fmt.Sprintf(crashed, c.dir, url))
	p, _, _ := c.restart()
	var producers sync.WaitGroup
	for range 16 {
		producers.Go(c.produce)
	}
	var took []time.Duration
	for range n {
		c.kill(p)
		var d time.Duration
		var had bool
		if p, d, had = c.restart(); had {
			took = append(took, d)
		}
	}
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	producers.Wait()
	charges := c.settle()
	p.signal(syscall.SIGTERM)
	p.end()
	if len(took) == 0 {
		t.Fatal("no round left a call behind: nothing was proven")
	}
	slices.Sort(took)
	most := took[len(took)-1]
	t.Logf("%d calls; first attempt %s after a restart in the median, %s at most, in %d restarts with a backlog",
		len(c.taken), took[len(took)/2], most, len(took))
	if n >= soakRounds && most > time.Second {
		t.Errorf("first attempt after a restart: got %s, want at most 1s", most)
	}
	e := s.Effects()
	if e.Charges != len(c.taken) || len(charges) != len(c.taken) {
		t.Errorf("charges at the provider: got %d, of which %d are answers of calls; want %d, one for each call", e.Charges, len(charges), len(c.taken))
	}
	t.Logf("%d requests were answered from the memory of their key", e.Replayed)
}

// settle waits for the end of every call that was taken, and returns the
// charges that they made.
func (c *crashRun) settle() map[string]string {
	charges := map[string]string{} // charge → key
	var mu sync.Mutex
	var all sync.WaitGroup
	keys := make(chan string)
	for range readers {
		all.Go(func() {
			for key := range keys {
				charge, err := chargeOf(c.base, c.taken[key])
				mu.Lock()
				if other, twice := charges[charge]; err == nil && twice {
					err = fmt.Errorf("its charge is that of %s", other)
				}
				if err != nil {
					c.t.Errorf("%s (call %s) was acknowledged: %v", key, c.taken[key], err)
				} else {
					charges[charge] = key
				}
				mu.Unlock()
			}
		})
	}
	for key := range c.taken {
		keys <- key
	}
	close(keys)
	all.Wait()
	return charges
}

// chargeOf waits for the end of a call and returns the charge it made.
func chargeOf(base, id string) (string, error) {
	at := base + "/_heed/calls/" + id
	var call callRow
	for !call.state().Ended() {
		if err := getJSON(at+"?wait=60s", &call); err != nil {
			return "", err
		}
	}
	if call.State != "done" {
		return "", fmt.Errorf("it ended as %s (%s)", call.State, call.Reason)
	}
	var charge struct{ ID string }
	err := getJSON(at+"/response", &charge)
	if err == nil && charge.ID == "" {
		err = fmt.Errorf("its answer is no charge")
	}
	return charge.ID, err
}

// reading keeps a connection for each reader: a new one for each of tens of
// thousands of answers would use up the ports of the machine.
var reading = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readers}}

const readers = 8

func getJSON(url string, into any) error {
	resp, err := reading.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body.String())
	}
	return json.Unmarshal(body.Bytes(), into)
}

// testKey seals the queues of tests that outlive a process. It seals nothing
// that is worth reading.
const testKey = "heed-key-1 78ee5deeb9ab6f82 YSBrZXkgZm9yIHRlc3RzLCBrbm93biB0byBldmVyeW8="

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
