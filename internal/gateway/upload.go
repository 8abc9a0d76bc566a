package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// upload is the body of a request. It bounds what is read of it and how long
// the caller may be silent, and remembers when reading failed: that is the
// caller's doing, not the upstream's.
type upload struct {
	from   io.ReadCloser
	left   int64
	failed atomic.Bool
	large  atomic.Bool
	whole  atomic.Bool // read to its end

	mu      sync.Mutex // guards the deadline of the connection
	silence patience
	reading bool
	over    bool // the connection belongs to the next request
}

var (
	errBodyTooLarge = errors.New("the request body is larger than bounds.body")
	errOver         = errors.New("the request has been answered")
)

func newUpload(x *exchange) *upload {
	return &upload{
		from: x.r.Body, left: x.table.Bounds.BodyBytes,
		silence: patience{set: http.NewResponseController(x.w).SetReadDeadline, idle: x.route.idle},
	}
}

func (u *upload) Read(p []byte) (int, error) {
	if u.left < 0 {
		return 0, errBodyTooLarge
	}
	if !u.begin() {
		return 0, errOver
	}
	n, err := u.from.Read(p)
	u.finish(err)
	if u.left -= int64(n); u.left < 0 {
		u.large.Store(true)
		return 0, errBodyTooLarge
	}
	if err != nil && err != io.EOF {
		u.failed.Store(true)
	}
	return n, err
}

func (u *upload) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return false
	}
	u.silence.renew()
	u.reading = true
	return true
}

// finish lifts the deadline at the end of the body: from then on the server
// reads to learn whether the caller leaves.
func (u *upload) finish(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reading = false
	if err == io.EOF {
		u.whole.Store(true)
		if !u.over {
			u.silence.lift()
		}
	}
}

func (u *upload) Close() error { return u.from.Close() }

// stalled tells whether the caller was silent for too long. net/http takes
// that for a caller who left.
func (u *upload) stalled() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.whole.Load() && u.silence.over(time.Now())
}

// linger is how long the rest of a body is awaited that nobody reads. It keeps
// the connection in use, or at least lets the caller read its answer: closing
// on unread bytes resets the connection (RFC 9112 §9.6).
const linger = time.Second

// end lets nobody read any more. The server cannot write its answer while a
// Read blocks, so that such a one is broken off.
func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	switch {
	case u.whole.Load():
	case u.reading:
		_ = u.silence.set(time.Now())
	default:
		_ = u.silence.set(time.Now().Add(linger))
	}
}

// end sees to it that the server is not held by a body that was not read.
func (x *exchange) end() {
	switch {
	case x.body != nil:
		x.body.end()
	case x.r.Body != nil && x.r.Body != http.NoBody:
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(linger))
	}
}

// patience bounds how long a caller may stand still. The zero value is
// patient for ever. Where deadlines are not supported nothing is bounded.
type patience struct {
	set   func(time.Time) error
	idle  time.Duration
	until time.Time
}

// renew allows for idle from now on. A deadline is moved only now and then:
// it lies a little beyond what was asked for.
func (p *patience) renew() {
	now, more := time.Now(), min(time.Second, p.idle/4)
	if p.set == nil || p.until.Sub(now) >= p.idle {
		return
	}
	p.until = now.Add(p.idle + more)
	_ = p.set(p.until)
}

func (p *patience) lift() {
	p.until = time.Time{}
	_ = p.set(p.until)
}

func (p *patience) over(now time.Time) bool { return !p.until.IsZero() && now.After(p.until) }
