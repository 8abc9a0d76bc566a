package heed

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
)

func itoa(n int) string { return strconv.Itoa(n) }

// event begins an event of this call.
func (o *op) event(e *Event, kind EventKind, now time.Time) {
	e.Kind, e.Time, e.CallID, e.Attempt = kind, now, o.id, o.Attempts
	e.Endpoint, e.Method, e.Path = o.t.endpoint(o.in), o.Method, path(o.in)
	e.CorrelationID, e.Tenant, e.TraceParent = o.opts.CorrelationID, o.opts.Tenant, traceParent(o.in.Header)
	e.Breaker, e.Queued = o.breaker.String(), o.opts.Queued
}

// traceParent is the traceparent of h, if it is one: 55 characters of hex and
// dashes, whatever the version (W3C Trace Context §3.2). Other text stays untold.
func traceParent(h http.Header) string {
	lines := h["Traceparent"]
	if len(lines) != 1 || len(lines[0]) != 55 {
		return ""
	}
	v := lines[0]
	for i, c := range []byte(v) {
		dash := i == 2 || i == 35 || i == 52
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if dash != (c == '-') || !dash && !hex {
			return ""
		}
	}
	return v
}

// watched tells whether somebody is told of this call.
func (o *op) watched() bool { return o.t.Observe != nil || o.opts.Observe != nil }

func (o *op) say(e *Event) {
	if o.t.Observe != nil {
		o.t.Observe(*e)
	}
	if o.opts.Observe != nil {
		o.opts.Observe(*e)
	}
}

func (o *op) tellAttempt(now time.Time, d call.Decision) {
	if !o.watched() {
		return
	}
	var e Event
	o.event(&e, AttemptDone, now)
	e.WireAttempts = max(o.ctx.conns(), 1)
	e.Status, e.Class, e.Executed, e.Rule = o.status(), o.verdict.Class, o.verdict.Executed, o.verdict.Rule
	e.Elapsed, e.Delay, e.Waited, e.WaitSource = now.Sub(o.sentAt), d.Delay, o.lastWait, o.source
	if d.Source != "" {
		e.WaitSource = d.Source
	}
	e.Retry, e.Reason = d.Action != call.End, string(d.Reason)
	o.quote(&e)
	o.say(&e)
	if o.hint.Flags&hint.Malformed != 0 {
		var bad Event
		o.event(&bad, HintInvalid, now)
		bad.Status, bad.Reason = o.status(), "retry_after_invalid"
		o.say(&bad)
	}
}

// status is that of this attempt; 0: no answer.
func (o *op) status() int {
	if o.resp == nil {
		return 0
	}
	return o.resp.StatusCode
}

// quote puts what the server said about time into e.
func (o *op) quote(e *Event) {
	e.RetryAfter, e.HasRetry, e.HintFrom = o.hint.Wait, o.hint.HasWait, cmp.Or(o.hint.From, o.hint.ResetFrom)
	e.Remaining, e.HasRemain = o.hint.Remaining, o.hint.HasRemaining
	e.Limit, e.HasLimit = o.hint.Limit, o.hint.HasLimit
}

func (o *op) tellCall(reason Reason, bytes int64) {
	if !o.watched() {
		return
	}
	now := o.clock()
	var e Event
	o.event(&e, CallDone, now)
	e.WireAttempts, e.Status, e.Class, e.Executed = o.wire, o.lastStatus, o.verdict.Class, o.verdict.Executed
	e.Elapsed, e.Waited, e.WaitSource = now.Sub(o.begun), o.waited, o.waitSource
	e.Rule, e.Reason, e.Bytes = o.verdict.Rule, string(reason), bytes
	o.quote(&e)
	o.say(&e)
}

func (o *op) tellWait(until time.Time, d time.Duration) {
	if !o.watched() {
		return
	}
	var e Event
	o.event(&e, WaitBegun, time.Now())
	e.Delay, e.WaitSource, e.Status, e.Class = d, o.source, o.lastStatus, o.verdict.Class
	o.say(&e)
}

// tellBreaker tells what r has made of the breaker.
func (o *op) tellBreaker(t admit.Told, r *admit.Result) {
	if !o.watched() {
		return
	}
	var e Event
	o.event(&e, BreakerChanged, time.Now())
	e.Breaker, e.Status, e.Class = t.Breaker.String(), r.Status, r.Verdict.Class
	if t.Breaker != admit.Closed {
		e.Delay = time.Until(t.Until)
		e.Reason = string(BreakerOpen)
		if r.Pass.Probe {
			e.Reason = ProbeFailed
		}
	}
	if e.Class == classify.Unknown {
		e.Class = classify.Transient
	}
	o.say(&e)
}
