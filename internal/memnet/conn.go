package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection.
type conn struct {
	in, out       *stream
	local, remote Addr
	closed        func()
	once          sync.Once
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

func (c *conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

// Close ends both directions: the peer reads what was written and then EOF,
// and its writes fail.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.end(&c.out.finished)
		c.in.end(&c.in.abandoned)
		c.closed()
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.readBy.set(c.in, t)
	c.out.writeBy.set(c.out, t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.in.readBy.set(c.in, t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.writeBy.set(c.out, t); return nil }

// stream is one direction.
type stream struct {
	mu        sync.Mutex
	change    *sync.Cond
	data      []byte
	finished  bool // the writer closed
	abandoned bool // the reader closed
	readBy    deadline
	writeBy   deadline
}

func newStream() *stream {
	s := &stream{}
	s.change = sync.NewCond(&s.mu)
	return s
}

func (s *stream) end(flag *bool) {
	s.mu.Lock()
	*flag = true
	s.readBy.stop()
	s.writeBy.stop()
	s.mu.Unlock()
	s.change.Broadcast()
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.abandoned:
			return 0, net.ErrClosed
		case s.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case len(s.data) > 0:
			n := copy(p, s.data)
			s.data = s.data[n:]
			if len(s.data) == 0 {
				s.data = nil
			}
			s.change.Broadcast()
			return n, nil
		case s.finished:
			return 0, io.EOF
		}
		s.change.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch room := Buffer - len(s.data); {
		case s.finished:
			return n, net.ErrClosed
		case s.abandoned:
			return n, syscall.EPIPE
		case s.writeBy.passed:
			return n, os.ErrDeadlineExceeded
		case len(p) == 0:
			return n, nil
		case room > 0:
			k := min(room, len(p))
			s.data = append(s.data, p[:k]...)
			p = p[k:]
			n += k
			s.change.Broadcast()
		default:
			s.change.Wait()
		}
	}
}

// deadline is the end of patience of one side of a stream.
type deadline struct {
	timer  *time.Timer
	gen    int // tells the timer of an older deadline
	passed bool
}

// set is called without the stream's lock held.
func (d *deadline) set(s *stream, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.stop()
	d.gen++
	gen := d.gen
	d.passed = false
	switch wait := time.Until(t); {
	case t.IsZero():
	case wait <= 0:
		d.passed = true
	default:
		d.timer = time.AfterFunc(wait, func() {
			s.mu.Lock()
			if d.gen == gen {
				d.passed = true
			}
			s.mu.Unlock()
			s.change.Broadcast()
		})
	}
	s.change.Broadcast()
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
