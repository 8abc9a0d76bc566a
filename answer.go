package heed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// ErrTruncated is what reading a body ends with that was cut short.
var ErrTruncated = errors.New("the answer was cut short")

// ErrBreakerOpen is the cause of an Error whose Reason is BreakerOpen.
var ErrBreakerOpen = errors.New("the breaker is open: the dependency has failed too often")

// trip is one attempt as the outside sees it: the request that the HTTP stack
// gets with its context, and, where its answer is handed over, the body that
// the caller reads. They may hold on to it for as long as they like, so a trip
// is used once, while op, which is the larger part, is used again.
//
// The end of the body is the end of the call: it gives the concurrency permit
// back. Who sets ended may look at o, and nobody after that.
type trip struct {
	req    http.Request
	ctx    attemptContext
	o      *op
	rest   io.ReadCloser
	id     CallID
	report *Report     // nil: nothing to tell but id
	ended  atomic.Bool // Close may come while another goroutine reads
}

// verify reads the whole answer before it is delivered, where the policy asks
// for it.
func (o *op) verify() {
	if !o.verifies() || o.resp.Body == nil || o.Method == http.MethodHead {
		return
	}
	o.armIdle(o.took)
	body := newSpool(idleReader{o.resp.Body, o.ctx})
	body.limit = o.p.Verify.SpoolLimit
	err := body.fill(nil)
	if err == nil && o.resp.Body != http.NoBody && body.size < o.resp.ContentLength { // a base transport that does not count
		err = io.ErrUnexpectedEOF
	}
	o.resp.Body.Close()
	if err == nil {
		o.verified, err = o.complete(body.reader(nil), body.size)
	}
	if err != nil {
		o.verified = false
		if o.Queued { // a person will look at what there is of it
			o.resp.Body = &spooled{io.LimitReader(body.reader(nil), body.size), body}
		} else {
			body.Close()
			o.resp.Body = http.NoBody
		}
		o.spoil(err)
		return
	}
	o.resp.Body = &spooled{body.reader(nil), body}
}

// verifies tells whether the answer is read to its end before it is delivered.
func (o *op) verifies() bool {
	return o.p.Verify.Mode == policy.VerifyFull || o.Queued && o.p.Verify.Mode == policy.VerifyHead
}

// spoil says what an answer was whose body did not pass.
func (o *op) spoil(err error) {
	o.err = err
	o.verdict = classify.Spoiled(err)
	switch {
	case errors.Is(err, errTooLarge): // it would be so again
		o.err = fmt.Errorf("%w of an answer that is verified in full: raise it, or verify the head only", err)
		o.verdict = classify.Verdict{Class: classify.Permanent, Executed: classify.Yes, Rule: "larger than the spool limit"}
	case errors.Is(err, errInflated):
		o.err = fmt.Errorf("%w: verify the head only if that is what it is meant to be", err)
		o.verdict = classify.Verdict{Class: classify.Permanent, Executed: classify.Yes, Rule: "inflates too far"}
	case o.verdict.Class == classify.Truncated && !isType[*classify.Defect](err):
		o.failure = o.bodyFailure(err)
		if o.failure == classify.Canceled {
			o.verdict = classify.Verdict{Rule: o.failure.String()}
		}
	}
}

// complete checks a whole body. A part of a document, or a coding that is not
// known here, cannot be checked, and that of a redirect is a note beside it.
func (o *op) complete(body io.Reader, size int64) (known bool, err error) {
	if s := o.resp.StatusCode; s == http.StatusPartialContent || s/100 == 3 {
		return false, nil
	}
	text, known := classify.Decode(o.resp.Header, body)
	if !known {
		return false, nil
	}
	r := &inflating{Reader: text, o: o, left: max(maxInflation*size, 1<<20), beyond: errInflated}
	if limit := o.p.Verify.SpoolLimit; limit < r.left {
		r.left, r.beyond = limit, errTooLarge
	}
	return classify.Complete(o.resp.Header.Get("Content-Type"), r)
}

// maxInflation is how many times its size on the wire a document may have.
const maxInflation = 100

var errInflated = fmt.Errorf("the body inflates to more than 1 MiB and %d times its size", maxInflation)

// inflating bounds what checking a body may cost.
type inflating struct {
	io.Reader
	o      *op
	left   int64
	beyond error // what it is to have more
}

func (r *inflating) Read(p []byte) (int, error) {
	if err := r.o.in.Context().Err(); err != nil {
		return 0, err
	}
	if d := r.o.Deadline; !d.IsZero() && !r.o.clock().Before(d) {
		return 0, context.DeadlineExceeded
	}
	n, err := r.Reader.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return n, r.beyond
	}
	return n, err
}

// spooled is a verified answer.
type spooled struct {
	io.Reader
	body *spool
}

func (s *spooled) Close() error { return s.body.Close() }

// idleReader tells its attempt when it waits for the server, so that silence
// is told from a caller that takes its time.
type idleReader struct {
	io.ReadCloser
	ctx *attemptContext
}

func (r idleReader) Read(p []byte) (int, error) {
	r.ctx.reads.Add(1) // odd: reading
	n, err := r.ReadCloser.Read(p)
	r.ctx.reads.Add(2*uint64(max(n, 0)) - 1)
	return n, err
}

// armIdle starts watching for silence in the body, which is read from took on
// after the attempt was sent. Until the answer is handed over the budget goes
// on as well.
func (o *op) armIdle(took time.Duration) {
	if o.p.Timeouts.Attempt == 0 {
		o.ctx.read(took, !o.done)
	}
}

// deliver ends the call with what there is.
func (o *op) deliver(d call.Decision) (*http.Response, error) {
	if o.resp == nil {
		return nil, o.fail(o.ending(d))
	}
	if d.Reason == Deferred {
		o.deferredFor(d.Source)
	}
	dressed := o.verdict.Class != classify.OK && o.resp.StatusCode < 400
	if dressed && !o.Queued {
		err := o.ending(d)
		o.discard()
		return nil, o.fail(err)
	}
	o.done, o.reason, o.retryAt = true, d.Reason, d.At
	if o.resp.StatusCode == http.StatusSwitchingProtocols {
		o.end(d.Reason, 0) // the connection is the caller's now
		return o.resp, nil
	}
	out := o.trip
	out.o, out.rest, out.id, out.report = o, o.resp.Body, o.id, o.notable()
	took := o.took
	if out.ctx.reads.Load() != 0 { // what was looked at is read again
		out.ctx.reads.Store(0)
		took = o.clock().Sub(o.sentAt)
	}
	o.resp.Body = out
	o.resp.Request = o.in
	if _, bounded := o.in.Context().Deadline(); bounded {
		o.resp.Request = o.in.WithContext(tripContext{o.in.Context(), out})
	}
	if out.rest == nil || out.rest == http.NoBody {
		out.rest = http.NoBody
		out.ended.Store(true)
		o.end(d.Reason, 0)
		return o.resp, nil
	}
	o.armIdle(took)
	if o.pass.Crowded {
		return guarding(o.resp, out), nil
	}
	return o.resp, nil
}

// ending is the error of a call without an answer.
func (o *op) ending(d call.Decision) error {
	if o.failure == classify.Canceled {
		return o.gaveUp(o.in.Context())
	}
	return o.error(d.Reason, d.At, o.err)
}

// Read implements io.Reader.
func (t *trip) Read(p []byte) (int, error) {
	if t.ended.Load() {
		return t.rest.Read(p) // whatever a body says after its end
	}
	n, err := idleReader{t.rest, &t.ctx}.Read(p)
	if err != nil && t.ended.CompareAndSwap(false, true) {
		reason := t.o.reason
		if err != io.EOF {
			e := t.o.cut(err)
			err, reason = e, e.Reason
		}
		t.end(reason)
	}
	return n, err
}

// cut tells why a body ended too early, and tells the gate.
func (o *op) cut(err error) *Error {
	if ctx := o.in.Context(); ctx.Err() != nil {
		return o.gaveUp(ctx)
	}
	v := classify.Verdict{Class: classify.Truncated, Executed: classify.Yes}
	failure := o.bodyFailure(err)
	o.gate.Observe(time.Now(), admit.Result{Pass: o.pass, Verdict: v, Failure: failure, Status: o.lastStatus, Late: true})
	o.verdict = v
	if failure == classify.BodyTimeout {
		why := errIdle
		if o.p.Timeouts.Attempt > 0 {
			why = errAttemptTime
		}
		err = errors.Join(why, err)
	}
	return o.error(TruncatedAnswer, time.Time{}, errors.Join(ErrTruncated, err))
}

var errIdle = timeoutError("the body fell silent for longer than the policy allows")

// Close implements io.Closer.
func (t *trip) Close() error {
	err := t.rest.Close()
	if t.ended.CompareAndSwap(false, true) {
		t.end(t.o.reason)
	}
	return err
}

// end ends the call. Whoever set ended calls it.
func (t *trip) end(reason Reason) {
	o := t.o
	t.o = nil
	o.end(reason, int64(t.ctx.reads.Load()/2))
	o.free()
}

// tripContext is the context of the request that an answer names. A Client
// with a Timeout gives every call a deadline, and puts a body of its own around
// that of the answer.
type tripContext struct {
	context.Context
	trip *trip
}

type tripKey struct{}

// Value implements context.Context.
func (c tripContext) Value(key any) any {
	if key == (tripKey{}) {
		return c.trip
	}
	return c.Context.Value(key)
}

func tripOf(resp *http.Response) *trip {
	switch b := resp.Body.(type) {
	case *trip:
		return b
	case *guarded:
		return b.trip
	}
	if resp.Request == nil {
		return nil
	}
	t, _ := resp.Request.Context().Value(tripKey{}).(*trip)
	return t
}

// ReportOf tells what it took to get resp, also after its body was closed. It
// is false for nil and for an answer that no Transport got. It knows resp by
// its Body: who puts another one in its place, as some middleware does, asks
// before that.
func ReportOf(resp *http.Response) (Report, bool) {
	if resp == nil {
		return Report{}, false
	}
	t := tripOf(resp)
	if t == nil {
		return Report{}, false
	}
	if t.report != nil {
		return *t.report, true
	}
	return Report{
		CallID: t.id, Attempts: 1, WireAttempts: 1, Rule: "ok", Breaker: admit.Closed.String(),
		Class: classify.OK, Executed: classify.Yes, Ladder: once,
	}, true
}

// once is how far most calls come.
var once = call.Ladder{Attempts: 1}

// notable is the report of a call that is not like most: one attempt, no wait,
// and no word about the quota.
func (o *op) notable() *Report {
	q := &o.hint
	if o.wire == 1 && o.waited == 0 && o.breaker == admit.Closed &&
		o.verdict.Class == classify.OK && o.verdict.Executed == classify.Yes && o.verdict.Rule == "ok" && !o.verified &&
		!q.HasRemaining && !q.HasLimit && !q.HasReset && o.shut.IsZero() && o.Ladder() == once {
		return nil
	}
	r := o.report()
	return &r
}

func (o *op) report() Report {
	q := &o.hint
	return Report{
		CallID: o.id, Attempts: o.Attempts, WireAttempts: o.wire, Rule: o.verdict.Rule, Waited: o.waited,
		WaitSource: o.waitSource, Breaker: o.breaker.String(), Class: o.verdict.Class,
		Remaining: q.Remaining, Limit: q.Limit, Reset: q.Reset,
		HasRemaining: q.HasRemaining, HasLimit: q.HasLimit, HasReset: q.HasReset,
		Verified: o.verified, Executed: o.executed(),
		Reason: o.reason, RetryAt: o.retryAt, KeyUntil: o.shut, KeySource: o.shutBy, Ladder: o.Ladder(),
	}
}
