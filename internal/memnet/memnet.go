// Package memnet is a network in memory, for tests in a synctest bubble: its
// goroutines wait on condition variables, which a bubble counts as idle, where
// a real socket would hold the virtual clock.
//
// New makes a Network. Listen gives a net.Listener under an address of the
// test's choice; DialContext, in the form that http.Transport wants, connects
// to it. Connections hold up to Buffer bytes each way, so that neither side
// needs the other to read at the same instant, and honour deadlines.
//
// Limits: no loss, no delay, no half-open connections.
package memnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Buffer is how many bytes a connection holds each way.
const Buffer = 64 << 10

// Network is a set of listeners. The zero value is an empty one.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener
	dialed    int
	open      int
}

// Listen opens a listener at addr, which is any text.
func (n *Network) Listen(addr string) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "mem", Addr: Addr(addr), Err: syscall.EADDRINUSE}
	}
	if n.listeners == nil {
		n.listeners = map[string]*Listener{}
	}
	l := &Listener{network: n, addr: Addr(addr), queue: make(chan net.Conn, 128), done: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// DialContext connects to the listener at addr. Without one, the connection is
// refused.
func (n *Network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: Addr(addr), Err: syscall.ECONNREFUSED}
	}
	here, there := n.pair(Addr("client"), l.addr)
	select {
	case l.queue <- there:
		return here, nil
	case <-l.done:
		here.Close()
		there.Close()
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: Addr(addr), Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		here.Close()
		there.Close()
		return nil, fmt.Errorf("memnet: dial %s: %w", addr, ctx.Err())
	}
}

// Dialed is how many connections were made, Open how many ends are not closed.
func (n *Network) Dialed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialed
}

// Open is how many ends of connections are not closed.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

func (n *Network) pair(from, to Addr) (client, server *conn) {
	n.mu.Lock()
	n.dialed++
	n.open += 2
	n.mu.Unlock()
	up, down := newStream(), newStream()
	closed := func() {
		n.mu.Lock()
		n.open--
		n.mu.Unlock()
	}
	return &conn{in: down, out: up, local: from, remote: to, closed: closed},
		&conn{in: up, out: down, local: to, remote: from, closed: closed}
}

// Addr is the address of a listener.
type Addr string

// Network implements net.Addr.
func (Addr) Network() string { return "mem" }

// String implements net.Addr.
func (a Addr) String() string { return string(a) }

// Listener implements net.Listener.
type Listener struct {
	network *Network
	addr    Addr
	queue   chan net.Conn
	done    chan struct{}
	once    sync.Once
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "mem", Addr: l.addr, Err: net.ErrClosed}
	}
}

// Close implements net.Listener. Connections that nobody accepted are reset.
func (l *Listener) Close() error {
	err := errors.New("memnet: the listener is closed already")
	l.once.Do(func() {
		err = nil
		close(l.done)
		l.network.mu.Lock()
		delete(l.network.listeners, string(l.addr))
		l.network.mu.Unlock()
		for {
			select {
			case c := <-l.queue:
				c.Close()
			default:
				return
			}
		}
	})
	return err
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.addr }
