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
	trace           atomic.Pointer[trace] // nil: nobody asked for it
	reads           atomic.Uint64         // of the body: twice the bytes that came, and one more while it is read
	due             time.Duration         // when the attempt ends, by the clock of the watch; 0: never
	body            atomic.Int64          // since when the body is read, by that clock, and due counts no more; negative: it does
	turn            uint32                // which attempt of its watch it is
	child           bool                  // Context is a child, and has the Done channel
	last            bool                  // due is the end of the budget
	over            bool                  // only the goroutine of the call looks at it
}

// trace counts the connections that the HTTP stack takes for one attempt.
type trace struct {
	httptrace.ClientTrace
	ctx   *attemptContext
	conns atomic.Int32
	conn  net.Conn // the last of them
	sends int      // how many of them were not merely idle ones
}

// The causes when an attempt took too long: for itself, or for its call.
var (
	errAttemptTime = timeoutError("the attempt took longer than timeouts.attempt allows")
	errBudget      = timeoutError("the budget of the call ran out during the attempt")
)

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
	if o.watch == nil {
		o.watch = o.s.watch(now)
	}
	w := o.watch
	w.turns++
	c.watch, c.Context, c.turn = w, parent, w.turns
	if parent.Done() != nil {
		c.Context, w.cancel = context.WithCancelCause(parent)
		c.child = true
	}
	w.sent = now.Sub(w.born)
	if d > 0 {
		c.due, c.last = w.sent+d, d != o.p.Timeouts.Attempt
	}
	w.ctx.Store(c)
	w.wakeAt(c.due)
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

// read starts watching for silence in the body, from took on after the attempt
// was sent. While it is merely looked at, the time until the head goes on as
// well.
func (c *attemptContext) read(took time.Duration, looked bool) {
	if c.over {
		return
	}
	since := c.watch.sent + took
	if looked {
		c.body.Store(-int64(since))
	} else {
		c.body.Store(int64(since))
	}
	if idle := c.watch.idle; idle > 0 {
		c.watch.wakeAt(since + idle)
	}
}

// abort ends the attempt now, as if its time were up.
func (c *attemptContext) abort() {
	c.watch.mu.Lock()
	c.watch.goOff(c)
}

// end ends the attempt: nothing of it may go on. It tells whether its watch can
// be used for another.
func (c *attemptContext) end() (reusable bool) {
	c.over = true
	reusable = c.watch.ctx.CompareAndSwap(c, nil)
	if c.child {
		c.watch.cancel(nil)
		if reusable {
			c.watch.cancel = nil
		}
	}
	return reusable
}

// Done implements context.Context.
func (c *attemptContext) Done() <-chan struct{} {
	if c.child {
		return c.Context.Done()
	}
	return c.watch.done
}

// Err implements context.Context.
func (c *attemptContext) Err() error {
	if c.late() {
		return context.DeadlineExceeded
	}
	if c.child || c.Context.Err() != nil {
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
	if !c.child {
		return false
	}
	why := context.Cause(c.Context)
	return why == errAttemptTime || why == errBudget
}

// why is the cause when the time of the attempt is over.
func (c *attemptContext) why() error {
	if c.last {
		return errBudget
	}
	return errAttemptTime
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
	if !c.child {
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

// watch is a timer with the channel it closes. It belongs to an op, and one
// that has not closed its channel is used again for another attempt.
//
// The timer runs on from one attempt to the next: setting a later time only
// notes it, and the timer, when it fires, looks at what is noted. With a budget
// of a minute that is one timer operation a minute instead of three a call. An
// attempt whose time is never up takes no lock.
//
// What is read without the lock holds by the order of these steps:
//
//  1. begin fills the attemptContext, sent and cancel, and only then stores ctx:
//     whoever loads ctx sees all of it.
//  2. begin stores ctx, and only then loads fires; fire stores 0 in fires, and only
//     then loads ctx. Whichever comes later sees what the other stored: fire looks
//     at the attempt, or begin lets the timer run itself. So it is with read, which
//     stores body, and only then loads fires.
//  3. Whoever takes ctx from the attempt to nil has ended it, once: its end, or
//     goOff with the lock held. What goOff has ended leaves a watch that is used no
//     more, since its channel is closed or its cancel was called; one whose ctx was
//     taken by end is at rest, and begins with 1 again.
//  4. A timer that was set for one attempt may go off in the next: fire looks at
//     when that one is due. What silence and funcs know is of the attempt whose turn
//     stands beside it, and of no other.
type watch struct {
	born   time.Time     // its clock counts from there
	idle   time.Duration // how silent a body may be; 0: for ever
	timer  *time.Timer
	done   chan struct{}
	turns  uint32                         // attempts so far
	sent   time.Duration                  // when the last of them was
	cancel context.CancelCauseFunc        // of a child
	ctx    atomic.Pointer[attemptContext] // nil: at rest
	fires  atomic.Int64                   // when the timer goes off; 0: it does not run

	mu      sync.Mutex
	fired   bool // it has ended the last attempt, and there will be none after it
	silence silence
	heard   uint32 // the attempt of funcs
	funcs   map[*func()]struct{}
}

// silence is what is known of the reads of one body.
type silence struct {
	turn  uint32
	since int64         // that was body of the attempt
	reads uint64        // when it was looked at last
	until time.Duration // when it will be again
}

// watch returns a watch for an op that has none.
func (s *state) watch(now time.Time) *watch {
	if w, ok := s.watches.Get().(*watch); ok {
		return w
	}
	w := &watch{born: now.Add(-1), idle: s.policy.Timeouts.Idle, done: make(chan struct{})} // -1: no instant is 0
	w.timer = time.AfterFunc(time.Hour, w.fire)
	w.timer.Stop()
	return w
}

// wakeAt lets the timer go off at due, at the latest. 0: it need not.
func (w *watch) wakeAt(due time.Duration) {
	if due <= 0 || w.runs(due) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run(due)
}

// runs tells that the timer goes off in time.
func (w *watch) runs(due time.Duration) bool {
	fires := time.Duration(w.fires.Load())
	return fires != 0 && fires <= due
}

// run is wakeAt with the lock held.
func (w *watch) run(due time.Duration) {
	if !w.runs(due) {
		w.fires.Store(int64(due))
		w.timer.Reset(max(due-time.Since(w.born), 1))
	}
}

// fire ends the attempt that is due: step 2 of watch.
func (w *watch) fire() {
	w.mu.Lock()
	w.fires.Store(0)
	c := w.ctx.Load()
	if c == nil {
		w.mu.Unlock()
		return
	}
	now := time.Since(w.born)
	switch due := w.ends(c, now); {
	case due <= 0:
		w.mu.Unlock()
	case now < due:
		w.run(due)
		w.mu.Unlock()
	default:
		w.goOff(c)
	}
}

// ends is when c is due, as things stand: when the head of its answer should
// have been there, or when its body has been silent for too long. 0: never.
func (w *watch) ends(c *attemptContext, now time.Duration) time.Duration {
	since := c.body.Load()
	if since == 0 {
		return c.due
	}
	if w.idle <= 0 {
		if since < 0 {
			return c.due
		}
		return 0
	}
	quiet := w.quiet(c, since, now)
	if since < 0 && c.due > 0 {
		return min(quiet, c.due)
	}
	return quiet
}

// quiet is when the body has been silent for too long: when one read of it goes
// on for all the time between two looks. A caller may take its time between two
// reads.
func (w *watch) quiet(c *attemptContext, since int64, now time.Duration) time.Duration {
	s := &w.silence
	if s.turn != c.turn || s.since != since {
		*s = silence{turn: c.turn, since: since, until: time.Duration(max(since, -since)) + w.idle}
	}
	if reads := c.reads.Load(); now >= s.until && (reads%2 == 0 || reads != s.reads) {
		s.reads, s.until = reads, now+w.idle
	}
	return s.until
}

// goOff ends the attempt of c, if it has not ended. It is called with the lock
// held and gives it back.
func (w *watch) goOff(c *attemptContext) {
	if !w.ctx.CompareAndSwap(c, nil) {
		w.mu.Unlock()
		return
	}
	w.fired = true
	var funcs map[*func()]struct{}
	if w.heard == c.turn {
		funcs = w.funcs
	}
	w.funcs = nil
	w.mu.Unlock()
	if c.child {
		w.cancel(c.why())
		return
	}
	close(w.done)
	for f := range funcs {
		(*f)()
	}
}

// after calls f when the attempt of c takes too long. Once that has ended,
// the watch may serve another, which is none of f's business.
func (w *watch) after(c *attemptContext, f func()) (stop func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fired && c.turn == w.turns {
		go f()
		return func() bool { return false }
	}
	if w.ctx.Load() != c {
		return func() bool { return true }
	}
	if w.funcs == nil {
		w.funcs = map[*func()]struct{}{}
	}
	if w.heard != c.turn {
		w.heard = c.turn
		clear(w.funcs)
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
