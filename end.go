package heed

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/mask"
)

// gaveUp is the end by the caller's context: its deadline, or its cancellation.
func (o *op) gaveUp(ctx context.Context) *Error {
	end := ctx.Err()
	err := context.Cause(ctx)
	if !errors.Is(err, end) {
		err = errors.Join(end, err)
	}
	if o.err != nil && !errors.Is(o.err, end) {
		err = errors.Join(err, o.err) // what the last attempt came to
	}
	if errors.Is(end, context.DeadlineExceeded) {
		return o.error(DeadlineExceeded, time.Time{}, err)
	}
	return o.error(Canceled, time.Time{}, err)
}

// error makes the Error that ends the call for reason.
func (o *op) error(reason Reason, retryAt time.Time, err error) *Error {
	if err == nil {
		err = o.err
	}
	if (reason == DeadlineExceeded || reason == QuotaWait) && !errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(err, context.DeadlineExceeded)
	}
	if reason == BreakerOpen && !errors.Is(err, ErrBreakerOpen) {
		err = errors.Join(ErrBreakerOpen, err)
	}
	o.reason, o.retryAt = reason, retryAt
	return &Error{
		Endpoint: o.t.endpoint(o.in), Method: o.Method, Path: path(o.in), Reason: reason,
		Class: o.verdict.Class, Executed: o.executed(), Status: o.lastStatus,
		RetryAt: retryAt, Report: o.report(), Err: err,
	}
}

// executed tells whether the server did what was asked, in any attempt: that a
// later one was refused takes back nothing of an earlier one.
func (o *op) executed() classify.Executed {
	if o.verdict.Executed == classify.No || o.earlier == classify.Yes {
		return o.earlier
	}
	return o.verdict.Executed
}

func path(r *http.Request) mask.Path {
	if r.URL == nil {
		return ""
	}
	return mask.Path(r.URL.Path)
}

// fail ends the call with err and releases what it holds.
func (o *op) fail(err error) error {
	o.leave()
	o.release()
	o.quit()
	o.closeRequest()
	o.done, o.ended = true, true
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = o.error(PermanentFailure, time.Time{}, err)
	}
	o.refund(e.Reason)
	o.tellCall(e.Reason, 0)
	return e
}

// refund gives the price of a retry back that the caller did not wait for.
func (o *op) refund(reason Reason) {
	if reason != Canceled || o.paid == 0 {
		return
	}
	o.gate.Observe(time.Now(), admit.Result{Pass: o.pass, Failure: classify.Canceled, Paid: o.paid, Late: true})
	o.paid = 0
}

// end ends the call with what was handed over.
func (o *op) end(reason Reason, bytes int64) {
	o.release()
	o.quit()
	o.closeRequest()
	o.tellCall(reason, bytes)
	o.ended = true
}

// part is the last that RoundTrip does. A call that has not ended goes on as
// the body of its answer; after a panic everything is released, and the panic
// goes on.
func (o *op) part() {
	switch {
	case o.ended:
		o.free()
		return
	case o.done:
		return
	}
	defer o.closeRequest()
	defer o.quit()
	if o.resp != nil && o.resp.Body != nil {
		defer o.resp.Body.Close()
	}
	defer o.release()
	o.leave()
	if o.held && !o.seen { // a probe that panicked has failed
		o.endedAt = time.Now()
		o.observe(classify.Verdict{Class: classify.Transient}, classify.OtherFailure, false)
	}
}

// quit ends the attempt, if there is one that has not ended.
func (o *op) quit() {
	if c := o.ctx; c != nil && !c.over && !c.end() {
		o.watch = nil // it has closed its channel
	}
}

// leave gives up the place in the line, if the call has one.
func (o *op) leave() {
	if o.gate != nil {
		o.gate.Leave(&o.ticket)
	}
}

// release gives the permit back.
func (o *op) release() {
	if o.held {
		o.held = false
		o.gate.Release(o.endedAt, o.pass, &o.ticket)
	}
}

// closeRequest closes the caller's body, once, on every path on which the base
// transport does not.
func (o *op) closeRequest() {
	if o.body != nil {
		o.body.Close()
	} else if !o.sent {
		o.sent = true
		closeBody(o.in)
	}
}
