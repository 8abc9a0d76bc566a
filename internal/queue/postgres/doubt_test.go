package postgres_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
)

// cutter stands between a store and the server. Armed, it lets commits happen
// and cuts the connection before the store hears of it, each arm once.
type cutter struct {
	net.Listener
	server string
	arms   atomic.Int32
	down   atomic.Bool
	mu     sync.Mutex
	open   map[net.Conn]bool
	wg     sync.WaitGroup
}

// committed is how the server answers COMMIT: the tag of a CommandComplete
// message (postgresql.org/docs, 55.7).
var committed = []byte("COMMIT\x00")

// through makes a store whose connections go through a cutter.
func through(t testing.TB, o *postgres.Options) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, open: map[net.Conn]bool{}}
	o.Address = postgres.Address(with(t, string(o.Address), func(u *url.URL, _ url.Values) {
		c.server, u.Host = u.Host, l.Addr().String()
	}))
	c.wg.Go(c.accept)
	t.Cleanup(func() {
		l.Close()
		c.cut()
		c.wg.Wait()
	})
	return c
}

func (c *cutter) accept() {
	for {
		client, err := c.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", c.server)
		if err != nil || c.down.Load() {
			client.Close()
			continue
		}
		c.mu.Lock()
		c.open[client], c.open[server] = true, true
		c.mu.Unlock()
		c.wg.Go(func() {
			io.Copy(server, client)
			c.close(client, server)
		})
		c.wg.Go(func() {
			c.answers(client, server)
			c.close(client, server)
		})
	}
}

// answers hands on what the server says, up to the commit that is cut off.
func (c *cutter) answers(client, server net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := server.Read(b)
		if bytes.Contains(b[:n], committed) && c.take() {
			return
		}
		if _, e := client.Write(b[:n]); err != nil || e != nil {
			return
		}
	}
}

func (c *cutter) take() bool {
	for n := c.arms.Load(); n > 0; n = c.arms.Load() {
		if c.arms.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

func (c *cutter) close(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
		delete(c.open, conn)
	}
}

// cut ends all connections.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Close()
	}
}

// fall cuts the server off until rise.
func (c *cutter) fall() {
	c.down.Store(true)
	c.cut()
}

func (c *cutter) rise() { c.down.Store(false) }

func TestAnEnqueueWhoseCommitIsNotHeardOfIsStoredOnce(t *testing.T) {
	o := options(t)
	c := through(t, &o)
	s := open(t, o)
	enqueue(t, s, get("", "k"))
	call := get("", "k")
	call.Key = "key"
	c.arms.Store(1)
	r := enqueue(t, s, call)
	if c.arms.Load() != 0 {
		t.Fatal("no commit was cut off")
	}
	if r[0].Admission != queue.New {
		t.Errorf("receipt: got %s, want new", r[0].Admission)
	}
	if got := ids(claim(t, s, time.Now())); len(got) != 2 || !slices.Contains(got, r[0].ID) {
		t.Errorf("calls: got %v, want two, %s among them", got, r[0].ID)
	}
}

func TestCallsOfAClaimThatIsNotHeardOfAreHandedBack(t *testing.T) {
	o := options(t)
	c := through(t, &o)
	s := open(t, o)
	enqueue(t, s, post("w", "k"))
	if got := claim(t, s, time.Now().Add(-time.Hour)); len(got) != 0 { // the gate is known
		t.Fatalf("claimed before its time: %v", ids(got))
	}
	c.arms.Store(1)
	got := claim(t, s, time.Now()) // tries again by itself, when the call runs under a token that nobody has
	if c.arms.Load() != 0 {
		t.Fatal("no commit was cut off")
	}
	if len(got) == 0 {
		got = claim(t, s, time.Now())
	}
	if !slices.Equal(ids(got), []string{"w"}) {
		t.Fatalf("claimed again, within the lease: got %v, want the write, which was not sent", ids(got))
	}
	lost, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: "w", Lease: got[0].Lease, Outcome: queue.Outcome{State: queue.Done}}})
	if err != nil || len(lost) != 0 {
		t.Errorf("settle: got %v, %v, want it done", lost, err)
	}
	if g, err := s.Gates(t.Context()); err != nil || g[0].Running != 0 {
		t.Errorf("gates: got %+v, %v, want nothing running", g, err)
	}
}

func TestASettlementThatIsNotHeardOfIsNotLost(t *testing.T) {
	o := options(t)
	c := through(t, &o)
	s := open(t, o)
	enqueue(t, s, post("w", "k"))
	got := claim(t, s, time.Now())
	c.arms.Store(1)
	lost, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: "w", Lease: got[0].Lease, Outcome: queue.Outcome{State: queue.Done}}})
	if c.arms.Load() != 0 {
		t.Fatal("no commit was cut off")
	}
	if err != nil || len(lost) != 0 {
		t.Errorf("settle: got %v, %v, want it done", lost, err)
	}
	if got := state(t, s, "w"); got != queue.Done {
		t.Errorf("state: got %s, want done", got)
	}
	if g, err := s.Gates(t.Context()); err != nil || g[0].Running != 0 {
		t.Errorf("gates: got %+v, %v, want nothing running", g, err)
	}
}

func TestAServerThatIsGoneIsToldAndFoundAgain(t *testing.T) {
	o := options(t)
	c := through(t, &o)
	s := open(t, o)
	enqueue(t, s, get("a", "k"))
	held := claim(t, s, time.Now())
	c.fall()
	_, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("b", "k")})
	isErr(t, "enqueue", err, queue.ErrStorage)
	_, err = s.Claim(t.Context(), time.Now(), queue.Ask{Max: 1})
	isErr(t, "claim", err, queue.ErrStorage)
	done := []queue.Settlement{{ID: "a", Lease: held[0].Lease, Outcome: queue.Outcome{State: queue.Done}}}
	_, err = s.Settle(t.Context(), time.Now(), done)
	isErr(t, "settle", err, queue.ErrStorage)
	_, err = s.Get(t.Context(), "a")
	isErr(t, "get", err, queue.ErrStorage)
	c.rise()
	lost, err := s.Settle(t.Context(), time.Now(), done)
	if err != nil || len(lost) != 0 {
		t.Errorf("settle when it is back: got %v, %v, want it done", lost, err)
	}
	enqueue(t, s, get("b", "k"))
	if got := ids(claim(t, s, time.Now())); !slices.Equal(got, []string{"b"}) {
		t.Errorf("claimed when it is back: got %v, want b", got)
	}
}

func TestAServerThatDoesNotAnswerIsTold(t *testing.T) {
	o := options(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o.Address = postgres.Address(with(t, string(o.Address), func(u *url.URL, q url.Values) {
		u.Host = l.Addr().String()
		q.Set("connect_timeout", "1")
	}))
	_, err = postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrStorage)
}

func TestACallerThatGivesUpReadingIsToldSo(t *testing.T) {
	s := open(t, options(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, "a")
	isErr(t, "get", err, context.Canceled)
}
