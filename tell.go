package heed

import (
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
	e.CorrelationID, e.Tenant, e.TraceParent = o.opts.CorrelationID, o.opts.Tenant, o.traceParent
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

// both tells a and b, as far as they are there.
func both(a, b func(Event)) func(Event) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(e Event) {
		a(e)
		b(e)
	}
}

func (o *op) tellAttempt(d call.Decision) {
	if o.tell == nil {
		return
	}
	var e Event
	o.event(&e, AttemptDone, o.endedAt)
	e.WireAttempts = max(o.ctx.conns(), 1)
	e.Status, e.Class, e.Executed, e.Rule = o.status(), o.verdict.Class, o.verdict.Executed, o.verdict.Rule
	e.Elapsed, e.Delay, e.Waited, e.WaitSource = o.took, d.Delay, o.lastWait, o.source
	if d.Source != "" {
		e.WaitSource = d.Source
	}
	e.Retry, e.Reason = d.Action != call.End, string(d.Reason)
	o.quote(&e)
	o.tell(e)
	if o.hint.Flags&hint.Malformed != 0 {
		var bad Event
		o.event(&bad, HintInvalid, o.endedAt)
		bad.Status, bad.Reason = o.status(), "retry_after_invalid"
		o.tell(bad)
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
	h := &o.hint
	e.RetryAfter, e.HasRetry, e.HintFrom = h.Wait, h.HasWait, h.From
	if h.From == "" {
		e.HintFrom = h.ResetFrom
	}
	e.Remaining, e.HasRemain = h.Remaining, h.HasRemaining
	e.Limit, e.HasLimit = h.Limit, h.HasLimit
}

func (o *op) tellCall(reason Reason, bytes int64) {
	if o.tell == nil {
		return
	}
	took := time.Since(o.begun)
	var e Event
	o.event(&e, CallDone, o.begun.Add(took))
	e.WireAttempts, e.Status, e.Class, e.Executed = o.wire, o.lastStatus, o.verdict.Class, o.executed()
	e.Elapsed, e.Waited, e.WaitSource = took, o.waited, o.waitSource
	e.Rule, e.Reason, e.Bytes = o.verdict.Rule, string(reason), bytes
	o.quote(&e)
	o.tell(e)
}

func (o *op) tellWait(until time.Time, d time.Duration) {
	if o.tell == nil {
		return
	}
	var e Event
	o.event(&e, WaitBegun, time.Now())
	e.Delay, e.WaitSource, e.Status, e.Class = d, o.source, o.lastStatus, o.verdict.Class
	o.tell(e)
}

// tellBreaker tells what r has made of the breaker.
func (o *op) tellBreaker(t admit.Told, r *admit.Result) {
	if o.tell == nil {
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
	o.tell(e)
}
