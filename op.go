package heed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
)

// op is one call on its road: everything that RoundTrip needs to remember. It
// is used again for another call when this one has ended, so nobody outside
// gets hold of it: what they do is a trip.
type op struct {
	t    *Transport
	s    *state
	p    *policy.Policy
	in   *http.Request // the caller's; never changed
	opts *Call         // never nil
	n    uint64        // the number of the call
	id   CallID
	call.Call
	tell        func(Event) // nil: nobody is told
	traceParent string      // the caller's, where somebody is told
	gate        *gate
	ticket      admit.Ticket
	rng         *rand.Rand
	begun       time.Time
	bounded     bool // by the deadline of the caller's context

	// the attempt
	watch      *watch // nil: not needed yet; kept when o serves another call
	trip       *trip
	ctx        *attemptContext // of the trip; nil: nothing was sent yet
	x          classify.Exchange
	pass       admit.Pass
	held       bool         // the pass has not been given back
	seen       bool         // the gate knows what came of it
	sent       bool         // the base transport has the caller's body, and closes it
	tok        *token.Token // nil without a Token source
	key        string
	body       *spool // nil: no body, or GetBody replays it
	past       bool   // ask caches to revalidate
	sentAt     time.Time
	endedAt    time.Time     // when its head was there, or what it failed with
	took       time.Duration // from sentAt to endedAt
	resp       *http.Response
	err        error
	failure    classify.Failure
	verdict    classify.Verdict
	earlier    classify.Executed // by the attempts that were discarded
	hint       hint.Hint
	paid       int // of the retry budget, by the last retry
	lastStatus int
	breaker    admit.State
	retryAt    time.Time // when trying again makes sense; zero: unknown
	shut       time.Time // until when the key is closed for all its callers
	shutBy     policy.WaitSource

	// over all attempts
	wire       int
	waited     time.Duration
	lastWait   time.Duration // before this attempt
	source     policy.WaitSource
	longest    time.Duration
	verified   bool
	done       bool              // the result was handed over
	ended      bool              // and so is the call
	waitSource policy.WaitSource // of the longest wait
	reason     Reason            // why it is not what was asked for
}

// open starts a call: it has a name and a budget.
func (t *Transport) open(r *http.Request) *op {
	s := t.init()
	n := s.calls.Add(1)
	now := time.Now()
	o, _ := s.ops.Get().(*op)
	if o == nil {
		o = new(op)
	}
	o.t, o.s, o.p, o.in, o.begun, o.n, o.id, o.opts = t, s, &s.policy, r, now, n, s.callID(n), &noCall
	o.verdict.Executed, o.earlier = classify.No, classify.No
	ctx := r.Context()
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		o.opts = c
	}
	if o.tell = both(t.Observe, o.opts.Observe); o.tell != nil {
		o.traceParent = traceParent(r.Header)
	}
	parent, bounded := ctx.Deadline()
	o.Call = call.Begin(o.p, now, o.opts.Budget, parent)
	o.bounded = bounded && o.Deadline.Equal(parent)
	o.Method = method(r)
	o.Renewable, o.Queued = t.Token.Renewable(), o.opts.Queued
	o.Resume(o.opts.Ladder)
	if o.opts.RetryOff || ctx.Value(ownerKey{}) != nil {
		o.Once = true // one place decides retries: an outer heed does
	}
	return o
}

// free gives o back for another call. One that stood in the line is not, since
// whoever asked who waits may still look at it.
func (o *op) free() {
	s, w := o.s, o.watch
	if o.ticket.Stood() {
		if w != nil {
			o.watch = nil
			s.watches.Put(w)
		}
		return
	}
	*o = op{}
	o.watch = w
	s.ops.Put(o)
}

// begin checks the request and gives the call its key and gate.
func (o *op) begin() error {
	if err := o.check(); err != nil {
		return err
	}
	r := o.in
	if err := r.Context().Err(); err != nil {
		return o.gaveUp(r.Context())
	}
	o.gate = o.t.gateOf(o.s, r)
	if now := o.begun.Unix(); o.gate.used.Load() != now {
		o.gate.used.Store(now)
	}
	t := &o.ticket
	t.Priority, t.Tenant, t.Group, t.Info = o.opts.Priority, o.opts.Tenant, o.p.Limits.GroupOf(r.URL.Path), o
	t.First, t.Attempt, t.Deadline = true, o.Attempts+1, o.Deadline
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		o.body = newSpool(r.Body)
	}
	if err := o.chooseKey(); err != nil {
		return err
	}
	return o.notBefore()
}

// noCall is the Call of a request that brings none.
var noCall Call

func method(r *http.Request) string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// check refuses what must not be sent at all.
func (o *op) check() error {
	switch {
	case o.s.invalid != nil:
		return o.error(PermanentFailure, time.Time{}, fmt.Errorf("the policy is invalid: %w", o.s.invalid))
	case o.in.URL == nil || o.in.URL.Host == "":
		return o.error(PermanentFailure, time.Time{}, errors.New("the request has no host"))
	case !o.p.Permits(o.Method, o.in.URL.Path):
		return o.error(NotAllowed, time.Time{}, errors.New("the allow list of the endpoint does not have this method and path"))
	}
	return nil
}

// chooseKey finds the idempotency key of a write: the caller's, or one made
// as the policy says. The same key goes onto every attempt.
func (o *op) chooseKey() error {
	k := &o.p.Key
	if k.Header == "" || !slices.Contains(k.Methods, o.Method) {
		return nil
	}
	switch given := o.givenKey(); {
	case given != "":
		if err := call.CheckKey(k, given); err != nil {
			return o.error(PermanentFailure, time.Time{}, err)
		}
		o.key = given
	case k.From == policy.KeyRandom:
		o.key = call.RandomKey(k, o.s.stream(o.n|1<<62))
	case k.From == policy.KeyHash:
		key, err := o.hashKey()
		if err != nil {
			return o.error(PermanentFailure, time.Time{}, err)
		}
		o.key = key
	}
	o.Keyed = o.key != ""
	return nil
}

func (o *op) givenKey() string {
	if o.opts.Key != "" {
		return o.opts.Key
	}
	if v := o.in.Header.Get(o.p.Key.Header); v != "" {
		return v
	}
	return o.in.Header.Get("Idempotency-Key")
}

func (o *op) hashKey() (string, error) {
	var body io.Reader
	switch {
	case o.body != nil:
		if err := o.body.fill(o.in.Context().Done()); errors.Is(err, errTooLarge) {
			return "", fmt.Errorf("%w of a body to derive an idempotency key from: give one", err)
		} else if err != nil {
			return "", err
		}
		body = o.body.reader(o.in.Context().Done())
	case o.in.GetBody != nil:
		b, err := o.in.GetBody()
		if err != nil {
			return "", fmt.Errorf("GetBody: %w", err)
		}
		defer b.Close()
		body = b
	}
	record := ""
	if name := o.p.Key.RecordHeader; name != "" {
		record = o.in.Header.Get(name)
	}
	return call.HashKey(&o.p.Key, o.Method, o.in.URL.RequestURI(), record, body)
}

// notBefore waits for the instant the caller asked for.
func (o *op) notBefore() error {
	if !o.opts.NotBefore.After(o.begun) {
		return nil
	}
	return o.rest(call.Decision{At: o.opts.NotBefore, Source: policy.WaitPace})
}

// admit waits until the attempt may leave.
func (o *op) admit() error {
	ctx := o.in.Context()
	began := o.now()
	for now := began; ; now = time.Now() {
		if ctx.Err() != nil {
			return o.gaveUp(ctx)
		}
		a := o.gate.Ask(now, &o.ticket)
		o.breaker = a.Breaker
		if a.Everyone {
			o.shut, o.shutBy = a.At, a.Source
		}
		switch a.Kind {
		case admit.Go:
			o.pass, o.held, o.seen, o.ticket.First = a.Pass, true, false, false
			if o.source != policy.NoWait {
				o.noteWait(now.Sub(began), o.source)
			}
			if o.pass.Probe && o.p.Breaker.Health.Path != "" {
				o.health()
				began = time.Now()
				continue
			}
			o.Attempts++
			o.ticket.Attempt++
			o.sentAt = now
			return nil
		case admit.No:
			return o.error(BreakerOpen, a.At, nil)
		}
		later := o.Queued && a.At.Sub(now) >= inMemory
		if o.crowded(a) {
			a.At, later = began.Add(inMemory), now.Sub(began) >= inMemory
		}
		if !o.Fits(a.At) || later {
			o.deferredFor(a.Source)
			return o.error(o.tooLate(a), a.At, nil)
		}
		o.source = a.Source
		if err := o.sleep(a.At); err != nil {
			return err
		}
	}
}

// inMemory is for how long a call waits that a queue keeps; what takes longer
// is the queue's business.
const inMemory = time.Second

// crowded tells that a queued call waits for others of its path group, which
// nobody knows the end of: it must not hold a slot of the queue for as long.
func (o *op) crowded(a admit.Answer) bool {
	return o.Queued && a.At.IsZero() && !a.Everyone && a.Source == policy.WaitConcurrency
}

// clock is the time by the monotonic clock alone, which is the cheaper one to
// read: a step of the wall clock during a call does not concern it.
func (o *op) clock() time.Time { return o.begun.Add(time.Since(o.begun)) }

// now is the time, without asking for it twice at the start of a call.
func (o *op) now() time.Time {
	if o.ticket.First && o.waited == 0 && o.body == nil {
		return o.begun
	}
	return time.Now()
}

// tooLate is the reason when the gate opens too late for the call.
func (o *op) tooLate(a admit.Answer) Reason {
	switch {
	case o.Queued:
		return Deferred
	case a.Source == policy.WaitBreaker:
		return BreakerOpen
	case a.Source == policy.WaitRetryAfter || a.Source == policy.WaitQuota:
		return QuotaWait
	}
	return DeadlineExceeded
}

// sleep waits until t (zero: only for a wake), a wake, the deadline or the
// end of the caller's context.
func (o *op) sleep(t time.Time) error {
	if t.IsZero() || !o.Deadline.IsZero() && o.Deadline.Before(t) {
		t = o.Deadline
	}
	var fire <-chan time.Time
	if !t.IsZero() {
		d := time.Until(t)
		if d > time.Second {
			o.tellWait(t, d)
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		fire = timer.C
	}
	ctx := o.in.Context()
	select {
	case <-fire:
		if !o.Fits(t) {
			return o.error(DeadlineExceeded, time.Time{}, nil)
		}
		return nil
	case <-o.ticket.Wake():
		return nil
	case <-ctx.Done():
		return o.gaveUp(ctx)
	}
}

// rest waits for the next attempt as decided.
func (o *op) rest(d call.Decision) error {
	now := time.Now()
	if o.Queued && (!o.Fits(d.At) || d.At.Sub(now) >= inMemory) {
		o.deferredFor(d.Source)
		return o.error(Deferred, d.At, nil)
	}
	if !o.Fits(d.At) {
		return o.error(DeadlineExceeded, d.At, nil)
	}
	o.source = d.Source
	o.gate.Rest(now, &o.ticket, d.At, d.Source)
	for now := now; now.Before(d.At); now = time.Now() {
		if err := o.sleep(d.At); err != nil {
			return err
		}
		if a, shut := o.gate.Shut(&o.ticket); shut {
			return o.error(BreakerOpen, a.At, nil)
		}
	}
	o.noteWait(time.Since(now), d.Source)
	return nil
}

// deferredFor notes what a queued call would have waited for.
func (o *op) deferredFor(source policy.WaitSource) {
	if o.Queued {
		o.waitSource = source
	}
}

// noteWait adds a wait to the report; the longest one names its source.
func (o *op) noteWait(d time.Duration, source policy.WaitSource) {
	if d <= 0 {
		return
	}
	o.waited += d
	o.lastWait += d
	if d > o.longest {
		o.longest = d
		o.waitSource = source
	}
}

// credential makes sure, before the call takes a place in the gate, that there
// is a credential. An issuer that is down is waited for like a server.
func (o *op) credential() error {
	if o.t.Token == nil {
		return nil
	}
	for {
		began := time.Now()
		ready := o.t.Token.Ready(began)
		_, err := o.current(began)
		if !ready {
			o.noteWait(time.Since(began), policy.WaitToken)
		}
		if err == nil {
			return nil
		}
		failed, ok := errors.AsType[*token.Error](err)
		if !ok || failed.Refused || failed.RetryAt.IsZero() || !o.Fits(failed.RetryAt) {
			return o.tokenFailed(err)
		}
		if err := o.rest(call.Decision{At: failed.RetryAt, Source: policy.WaitToken}); err != nil {
			return err
		}
	}
}

// current returns the credential. Who has to wait for one waits no longer than
// the call may take.
func (o *op) current(now time.Time) (token.Token, error) {
	if o.t.Token.Ready(now) {
		return o.t.Token.Current(o.in.Context())
	}
	ctx, cancel := o.within()
	defer cancel()
	return o.t.Token.Current(ctx)
}

// within is the caller's context, which ends with the call.
func (o *op) within() (context.Context, context.CancelFunc) {
	if o.Deadline.IsZero() {
		return o.in.Context(), func() {}
	}
	return context.WithDeadline(o.in.Context(), o.Deadline)
}

// tokenFailed ends the call for want of a credential.
func (o *op) tokenFailed(err error) error {
	if o.in.Context().Err() != nil {
		return o.gaveUp(o.in.Context())
	}
	if errors.Is(err, context.DeadlineExceeded) && !o.Deadline.IsZero() && !time.Now().Before(o.Deadline) {
		return o.error(DeadlineExceeded, time.Time{}, err)
	}
	var at time.Time
	if failed, ok := errors.AsType[*token.Error](err); ok {
		at = failed.RetryAt
	}
	return o.error(TokenFailed, at, err)
}

// renew gets a new credential after a 401, outside the backoff.
func (o *op) renew() error {
	began := time.Now()
	ctx, cancel := o.within()
	defer cancel()
	tok, err := o.t.Token.Renew(ctx, *o.tok)
	o.noteWait(time.Since(began), policy.WaitToken)
	if err != nil {
		return o.tokenFailed(err)
	}
	o.tok = &tok
	return nil
}
