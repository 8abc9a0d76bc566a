package check_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// memory is a network within the process, so that a check runs in a synctest
// bubble, in no time.
type memory struct {
	mu    sync.Mutex
	ports map[string]*port
	next  int
}

func newMemory() *memory { return &memory{ports: map[string]*port{}, next: 9000} }

// Listen takes the next port, whatever addr says.
func (m *memory) Listen(string) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	p := &port{addr: "127.0.0.1:" + strconv.Itoa(m.next), calls: make(chan net.Conn), over: make(chan struct{})}
	m.ports[strconv.Itoa(m.next)] = p
	return p, nil
}

// Dial finds the listener by its port, as all hosts are here.
func (m *memory) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	_, number, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	p := m.ports[number]
	m.mu.Unlock()
	if p == nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	select {
	case p.calls <- far:
		return near, nil
	case <-p.over:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// transport makes connections of its own over the memory, or over TCP where
// there is none.
func (m *memory) transport() *http.Transport {
	if m == nil {
		return &http.Transport{MaxIdleConnsPerHost: 64}
	}
	return &http.Transport{DialContext: m.Dial, MaxIdleConnsPerHost: 64}
}

type port struct {
	addr  string
	calls chan net.Conn
	once  sync.Once
	over  chan struct{}
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error   { p.once.Do(func() { close(p.over) }); return nil }
func (p *port) Addr() net.Addr { return named(p.addr) }

type named string

func (n named) Network() string { return "memory" }
func (n named) String() string  { return string(n) }
