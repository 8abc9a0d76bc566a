package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
)

func get(id, gate string) queue.Call {
	return queue.Call{
		Facts:   queue.Facts{ID: id, Endpoint: "sierra", Gate: gate, Method: "GET", Template: "/", Repeatable: true},
		Request: queue.Request{Path: "/"},
	}
}

func post(id, gate string) queue.Call {
	c := get(id, gate)
	c.Method, c.Repeatable = "POST", false
	return c
}

func enqueue(t testing.TB, s *postgres.Store, calls ...queue.Call) []queue.Receipt {
	t.Helper()
	receipts, err := s.Enqueue(t.Context(), time.Now(), calls)
	if err != nil {
		t.Fatal(err)
	}
	return receipts
}

func claim(t testing.TB, s *postgres.Store, now time.Time) []queue.Claim {
	t.Helper()
	b, err := s.Claim(t.Context(), now, queue.Ask{Max: 100})
	if err != nil {
		t.Fatal(err)
	}
	return b.Claims
}

func ids(claims []queue.Claim) []string {
	var all []string
	for _, c := range claims {
		all = append(all, c.ID)
	}
	slices.Sort(all)
	return all
}

func state(t testing.TB, s *postgres.Store, id string) queue.State {
	t.Helper()
	f, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return f.State
}

const limit = 8

// turnstile lets calls through three at a time, so that some of those which a
// claim took are still under way at the next one.
type turnstile struct {
	mu     sync.Mutex
	inside int
	open   chan struct{}
}

func (u *turnstile) pass(ctx context.Context) {
	u.mu.Lock()
	u.inside++
	wait := u.open
	if u.inside == 3 {
		close(u.open)
		u.inside, u.open = 0, make(chan struct{})
	}
	u.mu.Unlock()
	select {
	case <-wait:
	case <-ctx.Done():
	}
}

// census counts what all gateways have of each gate: never more than it is.
type census struct {
	mu         sync.Mutex
	have, most map[string]int
	gate       map[string]string // of calls by id
}

// counted is the feed of one gateway, under the eye of the census.
type counted struct {
	queue.Feed
	*census
}

func (c counted) Claim(ctx context.Context, now time.Time, ask queue.Ask) (queue.Batch, error) {
	b, err := c.Feed.Claim(ctx, now, ask)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range b.Claims {
		c.gate[k.ID] = k.Gate
		c.have[k.Gate]++
		c.most[k.Gate] = max(c.most[k.Gate], c.have[k.Gate])
	}
	return b, err
}

func (c counted) Settle(ctx context.Context, now time.Time, claims []queue.Settlement) ([]string, error) {
	c.mu.Lock()
	for _, k := range claims {
		c.have[c.gate[k.ID]]--
	}
	c.mu.Unlock()
	return c.Feed.Settle(ctx, now, claims)
}

func TestTwoGatewaysNeverExceedTheLimitOfAKey(t *testing.T) {
	const calls = 40 * limit * 3 / 4
	o := options(t)
	first := open(t, o)
	hard, gates := limit, map[string]*turnstile{"a": {open: make(chan struct{})}, "b": {open: make(chan struct{})}}
	for gate := range gates {
		if err := first.SetGate(t.Context(), time.Now(), queue.GateChange{Endpoint: "sierra", Key: gate, Limit: &hard}); err != nil {
			t.Fatal(err)
		}
		for n := range calls {
			enqueue(t, first, get(fmt.Sprintf("%s%d", gate, n), gate))
		}
	}
	eye := &census{have: map[string]int{}, most: map[string]int{}, gate: map[string]string{}}
	var mu sync.Mutex
	by := map[string]int{}
	done := make(chan struct{})
	for name, s := range map[string]*postgres.Store{"first": first, "second": open(t, o)} {
		w := &queue.Worker{Name: name, Feed: counted{s, eye}, Slots: 64, Share: 64, Poll: time.Millisecond,
			Send: func(ctx context.Context, c queue.Call) queue.Outcome {
				gates[c.Gate].pass(ctx)
				return queue.Outcome{State: queue.Done}
			}, Settled: func(settled []queue.Settlement) {
				mu.Lock()
				defer mu.Unlock()
				by[name] += len(settled)
				if by["first"]+by["second"] == 2*calls {
					close(done)
				}
			}, Failed: func(err error) { t.Error(err) }}
		w.Start(t.Context())
		defer w.Stop()
	}
	<-done
	for gate := range gates {
		if eye.most[gate] != limit {
			t.Errorf("most in flight of gate %s: got %d, want %d", gate, eye.most[gate], limit)
		}
	}
	if by["first"] == 0 || by["second"] == 0 {
		t.Errorf("calls by gateway: got %v, want some by each", by)
	}
	if got, err := first.Gates(t.Context()); err != nil || got[0].Running != 0 || got[1].Running != 0 {
		t.Errorf("gates afterwards: got %v, %v, want nothing running", got, err)
	}
}

// childSchema tells a copy of this test binary to be a gateway that is killed.
const childSchema = "HEED_TEST_CHILD_SCHEMA"

func TestAKilledGateway(t *testing.T) {
	if schema := os.Getenv(childSchema); schema != "" {
		beKilled(t, schema)
	}
	o := options(t)
	s := open(t, o)
	enqueue(t, s, get("r1", "k"), get("r2", "k"), post("w", "k"))
	held := map[string]bool{}
	child := exec.Command(os.Args[0], "-test.run=^TestAKilledGateway$")
	child.Env = append(os.Environ(), childSchema+"="+o.Schema, "HEED_TEST_CHILD_KEY="+key.Reveal())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for len(held) < 3 && lines.Scan() {
		held[lines.Text()] = true
	}
	child.Process.Kill()
	child.Wait()
	if !held["r1"] || !held["r2"] || !held["w"] {
		t.Fatalf("claimed by the one that is killed: got %v, want all three", held)
	}

	now := time.Now()
	if got := claim(t, s, now); len(got) != 0 {
		t.Errorf("claimed within the lease: got %v, want nothing", ids(got))
	}
	got := claim(t, s, now.Add(postgres.DefaultLease))
	if !slices.Equal(ids(got), []string{"r1", "r2"}) {
		t.Errorf("claimed after the lease: got %v, want what may be repeated", ids(got))
	}
	if got := state(t, s, "w"); got != queue.Unknown {
		t.Errorf("the write: got %s, want unknown", got)
	}
}

// key is that of parent and child.
var key = func() *queue.Key {
	if k, err := queue.ParseKey(os.Getenv("HEED_TEST_CHILD_KEY")); err == nil {
		return k
	}
	return queue.NewKey()
}()

// beKilled claims, tells it and waits for its end.
func beKilled(t *testing.T, schema string) {
	s := open(t, postgres.Options{Address: postgres.Address(address(t)), Schema: schema, Keys: queue.NewKeys(key)})
	for _, id := range ids(claim(t, s, time.Now())) {
		fmt.Println(id)
	}
	select {}
}

func TestGatewaysThatStartAtOnceMakeOneSchema(t *testing.T) {
	o := options(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("a", "k")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := ids(claim(t, open(t, o), time.Now())); !slices.Equal(got, []string{"a"}) {
		t.Errorf("calls: got %v, want one", got)
	}
}

func TestAKeyHandedToTwoGatewaysAtOnceIsTakenOnce(t *testing.T) {
	o := options(t)
	stores := []*postgres.Store{open(t, o), open(t, o)}
	const keys = 100
	var mu sync.Mutex
	fresh := map[string]int{}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range keys {
				c := get("", "k")
				c.Key = fmt.Sprint((i + n*13) % keys)
				r, err := stores[n%2].Enqueue(t.Context(), time.Now(), []queue.Call{c})
				if err != nil {
					t.Error(err)
					return
				}
				if r[0].Admission == queue.New {
					mu.Lock()
					fresh[c.Key]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for k, n := range fresh {
		if n != 1 {
			t.Errorf("calls taken in with key %s: got %d, want 1", k, n)
		}
	}
	if len(fresh) != keys {
		t.Errorf("keys taken: got %d, want %d", len(fresh), keys)
	}
}

func TestTheShareIsThatOfOneWorker(t *testing.T) {
	o := options(t)
	a, b := open(t, o), open(t, o)
	for n := range 6 {
		enqueue(t, a, get(fmt.Sprint(n), "k"))
	}
	for _, s := range []*postgres.Store{a, b} {
		for _, want := range []int{2, 0} {
			got, err := s.Claim(t.Context(), time.Now(), queue.Ask{Max: 10, Share: 2})
			if err != nil || len(got.Claims) != want {
				t.Errorf("claimed with a share of two: got %d, %v, want %d", len(got.Claims), err, want)
			}
		}
	}
}

// TestBeginsAndRenewalsDoNotLockEachOtherOut has the server not look for those
// who do: they would wait until they give up.
func TestBeginsAndRenewalsDoNotLockEachOtherOut(t *testing.T) {
	o := options(t)
	o.Address = postgres.Address(with(t, string(o.Address), func(_ *url.URL, q url.Values) { q.Set("deadlock_timeout", "1h") }))
	s := open(t, o)
	for range 32 {
		enqueue(t, s, post("", "k"))
	}
	b, err := s.Claim(t.Context(), time.Now(), queue.Ask{Max: 32, Begins: true})
	if err != nil || len(b.Claims) != 32 {
		t.Fatalf("claim: got %d calls, %v, want 32", len(b.Claims), err)
	}
	back := slices.Clone(b.Claims)
	slices.Reverse(back)
	var wg sync.WaitGroup
	repeat := func(f func() ([]string, error)) {
		wg.Go(func() {
			for range 200 {
				if lost, err := f(); err != nil || len(lost) > 0 {
					t.Errorf("got lost %v, %v", lost, err)
					return
				}
			}
		})
	}
	repeat(func() ([]string, error) { return s.Begin(t.Context(), b.Claims) })
	repeat(func() ([]string, error) { return s.Renew(t.Context(), time.Now().Add(time.Minute), back) })
	wg.Wait()
}

func TestAllOfAGroupWhoseLeasesAreLostAreToldSo(t *testing.T) {
	o := options(t)
	s, other := open(t, o), open(t, o)
	enqueue(t, s, get("a", "k"), get("b", "k"))
	held := claim(t, s, time.Now())
	if got := claim(t, other, time.Now().Add(time.Hour)); len(got) != 2 {
		t.Fatalf("claimed by another gateway after the lease: got %v, want both", ids(got))
	}
	var all []queue.Settlement
	for _, c := range held {
		all = append(all, queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}})
	}
	lost, err := s.Settle(t.Context(), time.Now(), all)
	if slices.Sort(lost); err != nil || !slices.Equal(lost, []string{"a", "b"}) || state(t, s, "a") != queue.Running {
		t.Errorf("settle: got lost %v, %v, want both lost and running", lost, err)
	}
}
