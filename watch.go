package heed

import (
	"context"
	"net/http/httptrace"
	"sync"
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
// goes on in the background for one; so it is not changed after begin, and the
// next attempt has another.
type attemptContext struct {
	context.Context // the caller's, or a cancelable child of it
	op              *op
	watch           *watch
	cancel          context.CancelCauseFunc // nil: the watch has the Done channel
	done            chan struct{}           // of the watch
	over            bool                    // only the goroutine of the call looks at it
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

// begin starts the context of an attempt that may take d until the head of its
// answer. 0: for ever.
func (c *attemptContext) begin(o *op, d time.Duration) {
	c.op = o
	parent := o.in.Context()
	if o.trace.GotConn == nil {
		o.trace.GotConn = o.gotConn
	}
	if traceKey == nil || httptrace.ContextClientTrace(parent) != nil {
		parent = httptrace.WithClientTrace(parent, &o.trace) // both traces are told
	}
	w, _ := o.s.watches.Get().(*watch)
	if w == nil {
		w = newWatch()
	}
	c.watch, c.Context, c.done = w, parent, w.done
	if parent.Done() != nil {
		c.Context, c.cancel = context.WithCancelCause(parent)
	}
	w.begin(c, d)
}

func (o *op) gotConn(httptrace.GotConnInfo) { o.conns.Add(1) }

// arm ends the attempt after d. 0: never.
func (c *attemptContext) arm(d time.Duration) { c.set(d, 0) }

// armIdle ends the attempt when one read of its body takes longer than d, and
// at the latest after twice d.
func (c *attemptContext) armIdle(d time.Duration) { c.set(d, d) }

func (c *attemptContext) set(d, idle time.Duration) {
	if !c.over {
		c.watch.set(d, idle)
	}
}

// end ends the attempt: nothing of it may go on. nil: none has begun.
func (c *attemptContext) end() {
	if c == nil || c.over {
		return
	}
	c.over = true
	if c.watch.end() {
		c.op.s.watches.Put(c.watch)
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
	return c.done
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
	case <-c.done:
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
		return c.op
	case traceKey:
		if v := c.Context.Value(key); v != nil {
			return v
		}
		return &c.op.trace
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

// watch is a timer with the channel it closes. One that has not fired is used
// again for another attempt.
type watch struct {
	timer *time.Timer
	done  chan struct{}

	mu    sync.Mutex
	ctx   *attemptContext // nil: at rest
	armed bool
	late  bool // the timer had gone off when it was set again
	fired bool
	idle  time.Duration // 0: the attempt ends when the timer fires
	seen  uint32        // reads of the body when the timer was set
	funcs map[*func()]struct{}
}

func newWatch() *watch {
	w := &watch{done: make(chan struct{})}
	w.timer = time.AfterFunc(time.Hour, w.fire)
	w.timer.Stop()
	return w
}

func (w *watch) begin(c *attemptContext, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.idle = c, 0
	if w.armed = d > 0; w.armed {
		w.timer.Reset(d)
	}
}

func (w *watch) set(d, idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle, w.seen = idle, w.ctx.op.reads.Load()
	was, running := w.armed, false
	if w.armed = d > 0; w.armed {
		running = w.timer.Reset(d)
	} else {
		running = w.timer.Stop()
	}
	w.late = w.late || was && !running
}

// fire ends the attempt, unless the body is read without silence, or the
// caller takes its time between two reads.
func (w *watch) fire() {
	w.mu.Lock()
	if w.ctx == nil || w.fired {
		w.mu.Unlock()
		return
	}
	if reads := w.ctx.op.reads.Load(); w.idle > 0 && (reads%2 == 0 || reads != w.seen) {
		w.seen = reads
		w.timer.Reset(w.idle)
		w.mu.Unlock()
		return
	}
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

// end lets the watch rest. It can be used again unless it has fired, or is
// about to.
func (w *watch) end() (reusable bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stopped := !w.armed || w.timer.Stop()
	w.ctx, w.armed = nil, false
	clear(w.funcs)
	return stopped && !w.fired && !w.late
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
