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
// can be armed and disarmed and a trace that counts the connections taken. For
// a caller's context that never ends it brings a Done channel of its own, so
// that a call that succeeds allocates no timer and no context.
type attemptContext struct {
	context.Context // the caller's, or a cancelable child of it
	op              *op
	own             *watch                  // when the caller's context never ends
	cancel          context.CancelCauseFunc // otherwise
	timer           *time.Timer             // otherwise, made when first armed
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

// begin starts the context of an attempt.
func (c *attemptContext) begin(o *op) {
	c.op = o
	parent := o.in.Context()
	if o.trace.GotConn == nil {
		o.trace.GotConn = o.gotConn
	}
	if traceKey == nil || httptrace.ContextClientTrace(parent) != nil {
		parent = httptrace.WithClientTrace(parent, &o.trace) // both traces are told
	}
	if parent.Done() == nil {
		c.Context = parent
		w, _ := o.s.watches.Get().(*watch)
		if w == nil {
			w = newWatch()
		}
		c.own = w
		return
	}
	c.Context, c.cancel = context.WithCancelCause(parent)
}

func (o *op) gotConn(httptrace.GotConnInfo) { o.conns.Add(1) }

// arm ends the attempt after d, unless disarmed. 0: never.
func (c *attemptContext) arm(d time.Duration) {
	switch {
	case d <= 0:
	case c.own != nil:
		c.own.timer.Reset(d)
	case c.cancel != nil && c.timer == nil:
		cancel := c.cancel
		c.timer = time.AfterFunc(d, func() { cancel(errAttemptTime) })
	case c.cancel != nil:
		c.timer.Reset(d)
	}
}

func (c *attemptContext) disarm() {
	switch {
	case c.own != nil:
		c.own.timer.Stop()
	case c.timer != nil:
		c.timer.Stop()
	}
}

// end ends the attempt: nothing of it may go on.
func (c *attemptContext) end() {
	if w := c.own; w != nil {
		c.own = nil
		if w.stop() {
			c.op.s.watches.Put(w)
		}
	}
	if c.cancel != nil {
		c.disarm()
		c.cancel(nil)
		c.cancel, c.timer = nil, nil
	}
}

// Done implements context.Context.
func (c *attemptContext) Done() <-chan struct{} {
	if w := c.own; w != nil {
		return w.done
	}
	return c.Context.Done()
}

// Err implements context.Context.
func (c *attemptContext) Err() error {
	if w := c.own; w != nil {
		select {
		case <-w.done:
			return context.DeadlineExceeded
		default:
			return nil
		}
	}
	return c.Context.Err()
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
	if w := c.own; w != nil {
		return w.after(f)
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
// again.
type watch struct {
	timer *time.Timer
	done  chan struct{}
	mu    sync.Mutex
	fired bool
	funcs map[*func()]struct{}
}

func newWatch() *watch {
	w := &watch{done: make(chan struct{})}
	w.timer = time.AfterFunc(time.Hour, w.fire)
	w.timer.Stop()
	return w
}

func (w *watch) fire() {
	w.mu.Lock()
	if w.fired {
		w.mu.Unlock()
		return
	}
	w.fired = true
	funcs := w.funcs
	w.funcs = nil
	close(w.done)
	w.mu.Unlock()
	for f := range funcs {
		(*f)()
	}
}

// stop ends the watch; it can be used again unless it has fired.
func (w *watch) stop() (reusable bool) {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.funcs)
	return !w.fired
}

func (w *watch) after(f func()) (stop func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fired {
		go f()
		return func() bool { return false }
	}
	if w.funcs == nil {
		w.funcs = map[*func()]struct{}{}
	}
	w.funcs[&f] = struct{}{}
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, was := w.funcs[&f]
		delete(w.funcs, &f)
		return was
	}
}
