// Package gateway lets a program in any language send its calls through heed
// by changing a base URL: http://127.0.0.1:8642/{endpoint}/{path}.
//
// The upstream's answer comes back as it was, with a few Heed-* fields beside
// it. When heed itself answers it is an RFC 9457 problem, with Heed-Origin and
// Proxy-Status (RFC 9209), so that a caller can always tell our 503 from the
// provider's. The type of a problem is a path on the gateway itself,
// /_heed/problems/{name}, where it is explained; the name of one that ends a
// call is the heed.Reason.
//
// A call whose caller does not want to wait (Prefer: respond-async), or cannot
// be sent now, goes into a queue (Later) and is answered with 202 once it is on
// disk. Its status, and its answer while that is kept, are at
// /_heed/calls/{id}; a queue.Worker sends it with Send. Whoever hands a call
// over does not lose it by leaving: it goes on. A call that is not queued ends
// with its caller, unless the endpoint makes writes with a key Durable.
//
// A Gateway is made by New from Settings and serves until the process ends;
// Swap puts other Settings in its place while calls in flight finish on those
// they began with. What it does not do: it is no forward proxy (no CONNECT,
// no absolute targets), it does not tunnel WebSockets, it does not send request
// trailers on (they could carry what the head may not), and it does not open
// listeners by itself: Listen does, and refuses an address that anybody could
// reach without a token.
package gateway

import (
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/heedproject/heed"
)

// Endpoint is one upstream that the gateway serves under its name.
type Endpoint struct {
	Name      string
	URL       *url.URL
	Transport *heed.Transport
	// Passthrough sends the caller's own Authorization and Cookie on.
	Passthrough bool
	// RewriteLinks turns Location and Link targets that point back to the
	// provider into targets that go through the gateway.
	RewriteLinks bool
	// FollowSameOrigin follows redirects of safe requests within URL.
	FollowSameOrigin bool
	// ForceQuery sets request parameters, whatever the caller sent.
	ForceQuery map[string]string
	// Async is what the endpoint does later.
	Async Async
	// SecretQuery names the parameter that carries the credential, which is
	// taken out of the links in the head of an answer. Empty: none does.
	SecretQuery string
}

// Bounds protect the gateway itself.
type Bounds struct {
	HeaderBytes int   // of a request; default 64 KiB
	BodyBytes   int64 // of a request; default 1 GiB
	AnswerBytes int64 // of an answer; 0: unbounded
	Calls       int   // at once; default 4096
}

func (b Bounds) withDefaults() Bounds {
	if b.HeaderBytes <= 0 {
		b.HeaderBytes = 64 << 10
	}
	if b.BodyBytes <= 0 {
		b.BodyBytes = 1 << 30
	}
	if b.Calls <= 0 {
		b.Calls = 4096
	}
	return b
}

// Settings are what a Gateway serves. They are not changed after New or Swap.
type Settings struct {
	Version   string
	Endpoints []Endpoint
	// Clients, when there are any, are the only ones who may use the data
	// port, also on loopback. Empty: everybody who can reach it.
	Clients []Client
	// Admin is what the admin port asks for. Zero: nothing.
	Admin  Digest
	Bounds Bounds
	// Metrics is served at /metrics of the admin port. nil: nothing is.
	Metrics http.Handler
	// Later keeps the calls that are answered later. nil: all callers wait. It
	// is the same in all Settings of a Gateway.
	Later *Later
	// Roads lets operators renew the road of an endpoint. nil: they cannot.
	Roads Roads
	// Log is told of defects of the gateway itself. nil: nobody is.
	Log *slog.Logger
}

// Gateway serves Settings. It is safe for use by many goroutines.
type Gateway struct {
	current atomic.Pointer[table]
	calls   atomic.Int64 // in flight
	ready   atomic.Bool
	holds   holds
	buffers sync.Pool // of *[bufferSize]byte
	floor   []byte    // see heapFloor
}

// bufferSize is what is moved of a body at once.
const bufferSize = 32 << 10

// heapFloor is memory that is held and never touched: it costs an address range
// and nothing else, and counts as live. Without it a gateway, which holds some
// 3 MiB, collects garbage after every 4 MiB, some 300 calls; with it after 12.
const heapFloor = 8 << 20

// New returns a Gateway that serves s.
func New(s Settings) *Gateway {
	g := &Gateway{floor: make([]byte, heapFloor)}
	g.buffers.New = func() any { return new([bufferSize]byte) }
	g.current.Store(newTable(s))
	return g
}

// Swap puts s in the place of the current Settings. Calls in flight finish on
// the old ones; the channel is closed when the last of them has ended.
func (g *Gateway) Swap(s Settings) <-chan struct{} {
	old := g.current.Swap(newTable(s))
	old.retire()
	return old.drained
}

// Ready says whether /readyz tells that calls are welcome. A new Gateway is not.
func (g *Gateway) Ready(is bool) { g.ready.Store(is) }

// Calls is how many calls are in flight.
func (g *Gateway) Calls() int { return int(g.calls.Load()) }

// ServeHTTP serves the data port.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := g.enter()
	x := exchange{g: g, table: t, w: w, r: r}
	defer x.end()
	defer g.leave(t) // first: a body that nobody reads takes no place
	defer x.rescue()
	x.serve()
}

// enter counts a call, and returns the table that holds for it.
func (g *Gateway) enter() *table {
	g.calls.Add(1)
	return g.use()
}

// use returns the current table, counted as in use until its leave.
func (g *Gateway) use() *table {
	for {
		if t := g.current.Load(); t.enter() {
			return t
		}
	}
}

func (g *Gateway) leave(t *table) {
	g.calls.Add(-1)
	t.leave()
}

// table is Settings in the form that is looked up, with the count of the
// calls that use it.
type table struct {
	Settings
	routes  map[string]*route
	users   atomic.Int64
	host    atomic.Pointer[string] // the last that was found to be this machine
	drained chan struct{}
	once    sync.Once
}

// retired is added to users of a table that no new call may enter.
const retired = 1 << 62

func newTable(s Settings) *table {
	s.Bounds = s.Bounds.withDefaults()
	t := &table{Settings: s, routes: make(map[string]*route, len(s.Endpoints)), drained: make(chan struct{})}
	for i := range s.Endpoints {
		t.routes[s.Endpoints[i].Name] = newRoute(&s.Endpoints[i])
	}
	return t
}

func (t *table) enter() bool {
	if t.users.Add(1) < retired {
		return true
	}
	t.leave()
	return false
}

func (t *table) leave() {
	if t.users.Add(-1) == retired {
		t.drain()
	}
}

func (t *table) retire() {
	if t.users.Add(retired) == retired {
		t.drain()
	}
}

func (t *table) drain() { t.once.Do(func() { close(t.drained) }) }
