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

// answer is the body that the caller reads. Its end is the end of the call: it
// gives the concurrency permit back.
type answer struct {
	o          *op
	rest       io.ReadCloser
	n          atomic.Int64
	ended      atomic.Bool // Close may come while another goroutine reads
	waitSource policy.WaitSource
}

// verify reads the whole answer before it is delivered, where the policy asks
// for it.
func (o *op) verify() {
	if o.p.Verify.Mode != policy.VerifyFull || o.resp.Body == nil || o.Method == http.MethodHead {
		return
	}
	o.armIdle()
	body := newSpool(idleReader{o.resp.Body, o})
	body.limit = o.p.Verify.SpoolLimit
	err := body.fill(nil)
	o.resp.Body.Close()
	if err == nil {
		o.verified, err = o.complete(body.reader(nil), body.size)
	}
	if err != nil {
		o.verified = false
		body.Close()
		o.resp.Body = http.NoBody
		o.spoil(err)
		return
	}
	o.resp.Body = &spooled{body.reader(nil), body}
}

// spoil says what an answer was whose body did not pass.
func (o *op) spoil(err error) {
	o.err = err
	o.verdict = classify.Spoiled(err)
	switch {
	case errors.Is(err, errTooLarge): // it would be so again
		o.err = fmt.Errorf("%w of an answer that is verified in full: raise it, or verify the head only", err)
		o.verdict = classify.Verdict{Class: classify.Permanent, Executed: classify.Yes, Rule: "larger than the spool limit"}
	case o.verdict.Class == classify.Truncated && !isType[*classify.Defect](err):
		o.failure = o.bodyFailure(err)
		if o.failure == classify.Canceled {
			o.verdict = classify.Verdict{Rule: o.failure.String()}
		}
	}
}

// complete checks a whole body. A part of a document, or a coding that is not
// known here, cannot be checked.
func (o *op) complete(body io.Reader, size int64) (known bool, err error) {
	if o.resp.StatusCode == http.StatusPartialContent {
		return false, nil
	}
	text, known := decoded(o.resp.Header, body)
	if !known {
		return false, nil
	}
	left := min(max(maxInflation*size, 1<<20), o.p.Verify.SpoolLimit)
	return classify.Complete(o.resp.Header.Get("Content-Type"), &inflating{text, o, left})
}

// maxInflation is how many times its size on the wire a document may have.
const maxInflation = 100

// inflating bounds what checking a body may cost.
type inflating struct {
	io.Reader
	o    *op
	left int64
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
		return n, errTooLarge
	}
	return n, err
}

// spooled is a verified answer.
type spooled struct {
	io.Reader
	body *spool
}

func (s *spooled) Close() error { return s.body.Close() }

// idleReader tells its op when it waits for the server, so that silence is
// told from a caller that takes its time.
type idleReader struct {
	io.ReadCloser
	o *op
}

func (r idleReader) Read(p []byte) (int, error) {
	r.o.reads.Add(1) // odd: reading
	n, err := r.ReadCloser.Read(p)
	r.o.reads.Add(1)
	return n, err
}

// armIdle starts watching for silence in the body. Until the answer is handed
// over the budget goes on as well.
func (o *op) armIdle() {
	if o.p.Timeouts.Attempt != 0 {
		return
	}
	limit := o.ownDeadline()
	if o.done {
		limit = time.Time{}
	}
	o.ctx.armIdle(o.endedAt, o.p.Timeouts.Idle, limit)
}

// deliver ends the call with what there is.
func (o *op) deliver(d call.Decision) (*http.Response, error) {
	if o.resp == nil {
		return nil, o.fail(o.ending(d))
	}
	dressed := o.verdict.Class != classify.OK && o.resp.StatusCode < 400
	if dressed {
		err := o.ending(d)
		o.discard()
		return nil, o.fail(err)
	}
	o.done = true
	if o.resp.StatusCode == http.StatusSwitchingProtocols {
		o.release() // the connection is the caller's now
		o.ctx.end()
		o.closeRequest()
		o.tellCall(d.Reason, 0)
		return o.resp, nil
	}
	o.out.o, o.out.rest = o, o.resp.Body
	o.reason, o.retryAt = d.Reason, d.At
	o.resp.Body = &o.out
	o.resp.Request = o.in
	if o.out.rest == nil || o.out.rest == http.NoBody {
		o.out.rest = http.NoBody
		o.out.ended.Store(true)
		o.out.end(d.Reason)
	} else {
		o.armIdle()
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
func (a *answer) Read(p []byte) (int, error) {
	if a.ended.Load() {
		return a.rest.Read(p) // whatever a body says after its end
	}
	n, err := idleReader{a.rest, a.o}.Read(p)
	a.n.Add(int64(n))
	if err != nil && a.ended.CompareAndSwap(false, true) {
		reason := a.o.reason
		if err != io.EOF {
			e := a.cut(err)
			err, reason = e, e.Reason
		}
		a.end(reason)
	}
	return n, err
}

// cut tells why a body ended too early, and tells the gate.
func (a *answer) cut(err error) *Error {
	o := a.o
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
func (a *answer) Close() error {
	err := a.rest.Close()
	if a.ended.CompareAndSwap(false, true) {
		a.end(a.o.reason)
	}
	return err
}

// end ends the call. Whoever set ended calls it.
func (a *answer) end(reason Reason) {
	a.o.release()
	a.o.ctx.end()
	a.o.closeRequest()
	a.o.tellCall(reason, a.n.Load())
}

// ReportOf tells what it took to get resp, if a Transport got it.
func ReportOf(resp *http.Response) (Report, bool) {
	a, ok := resp.Body.(*answer)
	if !ok {
		return Report{}, false
	}
	return a.o.report(), true
}

func (o *op) report() Report {
	q := &o.hint
	return Report{
		CallID: o.id, Attempts: o.Attempts, WireAttempts: o.wire, Waited: o.waited,
		WaitSource: o.out.waitSource, Breaker: o.breaker.String(), Class: o.verdict.Class,
		Remaining: q.Remaining, Limit: q.Limit, Reset: q.Reset,
		HasRemaining: q.HasRemaining, HasLimit: q.HasLimit, HasReset: q.HasReset,
		Verified: o.verified, Executed: o.verdict.Executed,
		Reason: o.reason, RetryAt: o.retryAt, KeyUntil: o.shut, Ladder: o.Ladder(),
	}
}
