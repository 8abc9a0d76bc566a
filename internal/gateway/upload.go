package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/policy"
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
	read    chan struct{} // closed when the read under way ends; nil: nobody waits for that
	over    bool          // the connection belongs to the next request
}

var (
	errBodyTooLarge = errors.New("the request body is larger than bounds.body")
	errOver         = errors.New("the request has been answered")
)

func newUpload(x *exchange) *upload {
	x.read = &upload{
		from: x.r.Body, left: x.table.Bounds.BodyBytes,
		silence: patience{set: http.NewResponseController(x.w).SetReadDeadline, idle: x.route.idle},
	}
	return x.read
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
	if u.read != nil {
		close(u.read)
		u.read = nil
	}
	if err == io.EOF {
		u.whole.Store(true)
		if !u.over {
			u.silence.lift()
		}
	}
}

// Close does nothing: closing the body of a request reads the rest of it first,
// for as long as the caller takes to send that (net/http). See exchange.end.
func (u *upload) Close() error { return nil }

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

// lingers is the largest body whose rest is awaited. Who sends more is told to
// stop.
const lingers = 256 << 10

// end lets nobody read any more, and bounds the read that is under way. It tells
// whether the body was read to its end.
func (u *upload) end() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	if !u.whole.Load() {
		_ = u.silence.set(time.Now().Add(linger))
	}
	return u.whole.Load()
}

// settle awaits the end of the read that is under way. While there is one,
// net/http lifts the deadline as it finishes the answer, and then reads what is
// left of the body without any: it would hold the connection of a caller who
// sends nothing more for as long as that one likes.
func (u *upload) settle() {
	u.mu.Lock()
	var read chan struct{}
	if u.reading {
		read = make(chan struct{})
		u.read = read
	}
	u.mu.Unlock()
	if read != nil {
		<-read
	}
}

// hasBody tells whether r came with a body, over a connection that cannot do
// anything else before that has been read.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ProtoMajor == 1
}

// ahead lets the answer to a request go out before the end of its body. By
// itself net/http reads that first: a caller who does not send it gets no
// answer. From then on nobody but us sees to it that what is left of the body
// is not read as the next request.
func ahead(w http.ResponseWriter) bool {
	d, ok := w.(interface{ EnableFullDuplex() error })
	return ok && d.EnableFullDuplex() == nil
}

// rest awaits what is left of a body after the answer. The connection serves
// another request only if the body has come to its end.
func rest(w http.ResponseWriter, body io.Reader) {
	c := http.NewResponseController(w)
	_ = c.Flush()
	_ = c.SetReadDeadline(time.Now().Add(linger))
	if _, err := io.Copy(io.Discard, body); err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = c.SetReadDeadline(time.Time{})
}

// end sees to it that the server is not held by a body that was not read.
func (x *exchange) end() {
	switch {
	case x.read == nil && x.ahead && !x.closes:
		rest(x.w, x.r.Body)
	case x.read == nil || x.read.end() || !x.ahead || x.broken:
	case x.closes:
		_ = http.NewResponseController(x.w).Flush()
		x.read.settle()
	default:
		rest(x.w, x.read.from)
	}
}

// unread tells whether the body has not come to its end.
func (x *exchange) unread() bool {
	return x.ahead && (x.read == nil || !x.read.whole.Load())
}

// prompt serves requests whose bodies nobody may read, or sends: the answer does
// not wait for them, and who is silent is not waited for.
func prompt(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hasBody(r) || !ahead(w) {
			next.ServeHTTP(w, r)
			return
		}
		u := &upload{
			from: r.Body, left: Bounds{}.withDefaults().BodyBytes,
			silence: patience{set: http.NewResponseController(w).SetReadDeadline, idle: policy.Policy{}.WithDefaults().Timeouts.Idle},
		}
		r = r.WithContext(r.Context())
		r.Body = u
		closes := r.Method == http.MethodGet || r.Method == http.MethodHead // nobody reads that, and not all answers have a length
		if closes {
			w.Header()["Connection"] = []string{"close"}
		}
		next.ServeHTTP(w, r)
		if !u.end() && !closes {
			rest(w, u.from)
		}
	})
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
