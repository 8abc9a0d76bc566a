package heed

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// ownerKey marks the context of an attempt, so that a heed below this one does
// not retry as well.
type ownerKey struct{}

// attemptContext is the context of one attempt: the caller's, with a time that
// can be armed and a trace that counts the connections taken. For a caller's
// context that never ends it brings a Done channel of its own, so that a call
// that succeeds allocates no timer and no context.
//
// The HTTP stack may look at it after its attempt has ended, from a dial that
// goes on in the background for one; so it knows nothing of its call, which is
// used again, and the next attempt has another context.
type attemptContext struct {
	context.Context // the caller's, or a cancelable child of it
	watch           *watch
	cancel          context.CancelCauseFunc // nil: the watch has the Done channel
	trace           atomic.Pointer[trace]   // nil: nobody asked for it
	reads           atomic.Uint64           // of the body: twice the bytes that came, and one more while it is read
	over            bool                    // only the goroutine of the call looks at it
}

// trace counts the connections that the HTTP stack takes for one attempt.
type trace struct {
	httptrace.ClientTrace
	ctx   *attemptContext
	conns atomic.Int32
	conn  net.Conn // the last of them
	sends int      // how many of them were not merely idle ones
}

// errAttemptTime is the cause when an attempt took too long.
var errAttemptTime = timeoutError("the attempt took longer than the policy allows")

type timeoutError string

func (e timeoutError) Error() string   { return string(e) }
func (e timeoutError) Timeout() bool   { return true }
func (e timeoutError) Temporary() bool { return true }
func (e timeoutError) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// begin starts the context of an attempt that may take d from now until the
// head of its answer. 0: for ever.
func (c *attemptContext) begin(o *op, now time.Time, d time.Duration) {
	parent := o.in.Context()
	if traceKey == nil || httptrace.ContextClientTrace(parent) != nil {
		parent = httptrace.WithClientTrace(parent, &c.traced().ClientTrace) // both traces are told
	}
	w, _ := o.s.watches.Get().(*watch)
	if w == nil {
		w = newWatch(&o.s.watches)
	}
	c.watch, c.Context = w, parent
	if parent.Done() != nil {
		c.Context, c.cancel = context.WithCancelCause(parent)
	}
	w.set(c, now, d, 0)
}

// maxSends is how often the HTTP stack may send one attempt: net/http repeats
// what HTTP/2 refused, without a pause and past every gate. Idle connections
// that the server has closed meanwhile do not count: over HTTP/1, after a
// restart of the server, net/http has to go through them all.
const maxSends = 3

func (t *trace) gotConn(info httptrace.GotConnInfo) {
	t.conns.Add(1)
	if !info.Reused || info.Conn == t.conn {
		t.sends++
	}
	if t.conn = info.Conn; t.sends > maxSends {
		t.ctx.abort()
	}
}

// traced is the trace of the attempt, made when first asked for.
func (c *attemptContext) traced() *trace {
	if t := c.trace.Load(); t != nil {
		return t
	}
	t := &trace{ctx: c}
	t.GotConn = t.gotConn
	if !c.trace.CompareAndSwap(nil, t) {
		return c.trace.Load()
	}
	return t
}

// conns is how many connections were taken.
func (c *attemptContext) conns() int {
	if t := c.trace.Load(); t != nil {
		return int(t.conns.Load())
	}
	return 0
}

// http1 tells that the last connection taken speaks HTTP/1.
func (c *attemptContext) http1() bool {
	t := c.trace.Load()
	if t == nil {
		return false
	}
	secure, ok := t.conn.(*tls.Conn)
	return !ok || secure.ConnectionState().NegotiatedProtocol != "h2"
}

// arm ends the attempt d after now. 0: never.
func (c *attemptContext) arm(now time.Time, d time.Duration) { c.set(now, d, 0) }

// armIdle ends the attempt when one read of its body takes longer than d, and
// at the latest after twice d; and at limit in any case, unless that is zero.
func (c *attemptContext) armIdle(now time.Time, d time.Duration, limit time.Time) {
	c.set(now, d, d)
	if !c.over && !limit.IsZero() {
		c.watch.bound(limit)
	}
}

func (c *attemptContext) set(now time.Time, d, idle time.Duration) {
	if !c.over {
		c.watch.set(c, now, d, idle)
	}
}

// abort ends the attempt now, as if its time were up.
func (c *attemptContext) abort() {
	if c.cancel != nil {
		c.cancel(errAttemptTime)
		return
	}
	c.watch.expire(c)
}

// end ends the attempt: nothing of it may go on. nil: none has begun.
func (c *attemptContext) end() {
	if c == nil || c.over {
		return
	}
	c.over = true
	if c.watch.end() {
		c.watch.home.Put(c.watch)
	}
	if c.cancel != nil {
		c.cancel(nil)
	}
}

// Done implements context.Context.
func (c *attemptContext) Done() <-chan struct{} {
	if c.cancel != nil {
		return c.Context.Done()
	}
	return c.watch.done
}

// Err implements context.Context.
func (c *attemptContext) Err() error {
	if c.late() {
		return context.DeadlineExceeded
	}
	if c.cancel != nil || c.Context.Err() != nil {
		return c.Context.Err()
	}
	select {
	case <-c.watch.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// late tells that the attempt took too long, where the caller's context can be
// canceled. Its child then says context.Canceled, and so does the HTTP/2 stack.
func (c *attemptContext) late() bool {
	return c.cancel != nil && context.Cause(c.Context) == errAttemptTime
}

// Value implements context.Context.
func (c *attemptContext) Value(key any) any {
	switch key {
	case ownerKey{}:
		return c
	case traceKey:
		if v := c.Context.Value(key); v != nil {
			return v
		}
		return &c.traced().ClientTrace
	}
	return c.Context.Value(key)
}

// AfterFunc lets package context watch this context without a goroutine.
func (c *attemptContext) AfterFunc(f func()) (stop func() bool) {
	if c.cancel == nil {
		return c.watch.after(c, f)
	}
	return context.AfterFunc(c.Context, f)
}

// traceKey is the key under which httptrace keeps a trace in a context; it is
// learned by asking. Where that fails, the documented way is used.
var traceKey = func() (key any) {
	httptrace.ContextClientTrace(keyProbe{context.Background(), &key})
	return key
}()

type keyProbe struct {
	context.Context
	key *any
}

func (p keyProbe) Value(key any) any {
	*p.key = key
	return nil
}

// watch is a timer with the channel it closes. One that has not closed it is
// used again for another attempt.
//
// The timer runs on from one attempt to the next: setting a later time only
// notes it, and the timer, when it fires, looks at what is noted. With a budget
// of a minute that is one timer operation a minute instead of three a call.
type watch struct {
	home  *sync.Pool
	timer *time.Timer
	done  chan struct{}

	mu    sync.Mutex
	ctx   *attemptContext // nil: at rest
	due   time.Time       // zero: never
	fires time.Time       // when the timer goes off; zero: it does not run
	fired bool
	idle  time.Duration // 0: the attempt ends when it is due
	limit time.Time     // with idle: it ends then in any case; zero: never
	seen  uint64        // reads of the body when it was set
	funcs map[*func()]struct{}
}

func newWatch(home *sync.Pool) *watch {
	w := &watch{home: home, done: make(chan struct{})}
	w.timer = time.AfterFunc(time.Hour, w.fire)
	w.timer.Stop()
	return w
}

func (w *watch) set(c *attemptContext, now time.Time, d, idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.idle, w.seen, w.due, w.limit = c, idle, c.reads.Load(), time.Time{}, time.Time{}
	if d > 0 {
		w.due = now.Add(d)
		w.run()
	}
}

func (w *watch) bound(limit time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = limit
	if w.due.IsZero() || limit.Before(w.due) {
		w.due = limit
		w.run()
	}
}

// run lets the timer go off when it is due, at the latest.
func (w *watch) run() {
	if w.fires.IsZero() || w.due.Before(w.fires) {
		w.fires = w.due
		w.timer.Reset(max(time.Until(w.due), 1))
	}
}

// fire ends the attempt that is due, unless its body is read without silence,
// or the caller takes its time between two reads.
func (w *watch) fire() {
	w.mu.Lock()
	w.fires = time.Time{}
	if w.ctx == nil || w.fired || w.due.IsZero() {
		w.mu.Unlock()
		return
	}
	now, reads := time.Now(), w.ctx.reads.Load()
	over := !w.limit.IsZero() && !now.Before(w.limit)
	if !now.Before(w.due) && w.idle > 0 && !over && (reads%2 == 0 || reads != w.seen) {
		w.seen, w.due = reads, now.Add(w.idle)
		if !w.limit.IsZero() && w.limit.Before(w.due) {
			w.due = w.limit
		}
	}
	if now.Before(w.due) {
		w.run()
		w.mu.Unlock()
		return
	}
	w.goOff()
}

// expire ends the attempt of c, if it still is the watch's.
func (w *watch) expire(c *attemptContext) {
	w.mu.Lock()
	if w.ctx != c || w.fired {
		w.mu.Unlock()
		return
	}
	w.goOff()
}

// goOff ends the attempt. It is called with the lock held and gives it back.
func (w *watch) goOff() {
	w.fired = true
	funcs, cancel := w.funcs, w.ctx.cancel
	w.funcs = nil
	w.mu.Unlock()
	if cancel != nil {
		cancel(errAttemptTime)
		return
	}
	close(w.done)
	for f := range funcs {
		(*f)()
	}
}

// end lets the watch rest. It can be used again unless it has fired.
func (w *watch) end() (reusable bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.due = nil, time.Time{}
	clear(w.funcs)
	return !w.fired
}

// after calls f when the attempt of c takes too long. Once that has ended,
// the watch may serve another, which is none of f's business.
func (w *watch) after(c *attemptContext, f func()) (stop func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx != c {
		return func() bool { return true }
	}
	if w.fired {
		go f()
		return func() bool { return false }
	}
	if w.funcs == nil {
		w.funcs = map[*func()]struct{}{}
	}
	key := &f
	w.funcs[key] = struct{}{}
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, was := w.funcs[key]
		delete(w.funcs, key)
		return was
	}
}
