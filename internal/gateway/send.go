package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/queue"
)

// Send sends a queued call as far as that goes without a long wait, and says
// what came of it. It has the form that queue.Worker wants.
func (g *Gateway) Send(ctx context.Context, c queue.Call) (out queue.Outcome) {
	t := g.enter()
	defer g.leave(t)
	defer func() {
		if thrown := recover(); thrown != nil {
			out = t.broke(&c, thrown)
		}
	}()
	switch c.Endpoint {
	case callbackEndpoint:
		return t.sendCallback(ctx, &c)
	case watchEndpoint:
		return t.watchOver(ctx, &c)
	}
	rt := t.routes[c.Endpoint]
	if out, held := g.holdBack(c.Endpoint); held {
		return out
	}
	if rt == nil { // it may be configured again, or another gateway has it
		out := queue.Outcome{State: queue.Queued, Until: time.Now().Add(time.Minute), Scope: queue.ScopeGate,
			Source: SourceOperator, Reason: reasonNoEndpoint}
		if t.Later.Shared {
			out.Until, out.Scope = time.Now().Add(5*time.Second), queue.ScopeCall
		}
		return out
	}
	path, query, _ := strings.Cut(c.Path, "?")
	u, wrong := rt.target(path, query)
	if wrong != "" {
		out = (&ended{reason: heed.NotAllowed, why: wrong}).outcome(time.Now(), &c)
		t.finish(ctx, &c, &out)
		return out
	}
	s := sending{table: t, route: rt, call: &c}
	req := (&http.Request{
		Method: c.Method, URL: u, Header: sendHeader(c.Header), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if len(c.Body) > 0 {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.Body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(c.Body))
	}
	e := s.send(req)
	out = e.outcome(time.Now(), &c)
	t.finish(ctx, &c, &out)
	return out
}

// Fields that are kept with a call and are meant for heed.
const (
	retryField = "Heed-Retry"    // off: one attempt
	keyMade    = "Heed-Key-Made" // its key is one that the caller does not know
)

// Words of the queue beside those of policy.WaitSource and heed.Reason.
const (
	SourceOperator   = "operator"
	reasonNoEndpoint = "no-endpoint"
)

// broke says what became of a call during which the gateway failed.
func (t *table) broke(c *queue.Call, thrown any) queue.Outcome {
	if t.Log != nil {
		t.Log.LogAttrs(context.Background(), slog.LevelError, "gateway failed", slog.String("call_id", c.ID),
			slog.String("panic", fmt.Sprintf("%T", thrown)), slog.String("stack", string(debug.Stack())),
			slog.String("advice", "this is a defect of heed: report it with this line"))
	}
	out := queue.Rescue(&c.Facts)
	out.Until = time.Now().Add(time.Minute)
	out.Note = applied(c, &out).Note
	t.finish(context.Background(), c, &out)
	return out
}

// sendHeader is the kept header without what was meant for heed.
func sendHeader(kept http.Header) http.Header {
	h := kept.Clone()
	if h == nil {
		h = http.Header{}
	}
	for k := range h {
		if strings.HasPrefix(k, "Heed-") || hopByHop(k) && k != "Te" {
			delete(h, k)
		}
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = noAgent
	}
	return h
}

// sending is one claim of a queued call that is being sent.
type sending struct {
	*table
	route *route
	call  *queue.Call
	trail []queue.Attempt
	wait  string // the source of the wait before the next attempt
}

func (s *sending) send(req *http.Request) *ended {
	c := s.call
	s.wait = c.Ladder.WaitSource
	budget := time.Duration(0)
	if !c.Expires.IsZero() {
		budget = max(time.Until(c.Expires), time.Nanosecond)
	}
	id := c.CorrelationID
	if id == "" {
		id = c.ID
	}
	x := exchange{table: s.table, route: s.route, r: req, asked: asked{Call: heed.Call{
		CorrelationID: id, Tenant: c.Tenant, Priority: c.Priority, Budget: budget, Key: c.Key,
		RetryOff: len(c.Header[retryField]) > 0, Queued: true, QueueID: c.ID, Ladder: ladderOf(&c.Facts), Observe: s.note,
	}}}
	resp, err := x.send(req.WithContext(heed.WithCall(req.Context(), x.asked.Call)))
	if err != nil {
		return s.failed(err)
	}
	return s.answered(resp)
}

// ladderOf is how far the call had come.
func ladderOf(f *queue.Facts) call.Ladder {
	var l call.Ladder
	if n := len(f.Trail); n > 0 && json.Unmarshal(f.Trail[n-1].Climbed, &l) == nil && l.Attempts == f.Ladder.Attempts {
		return l
	}
	return call.Ladder{Attempts: f.Ladder.Attempts, Retries: f.Ladder.Attempts, Delay: f.Ladder.Delay}
}

// note keeps the attempts for the status of the call.
func (s *sending) note(e heed.Event) {
	if e.Kind != heed.AttemptDone {
		return
	}
	at := e.Time.Add(-e.Elapsed)
	a := queue.Attempt{At: at, Status: e.Status, Class: e.Class.String(), WaitSource: s.wait, Reason: e.Reason}
	if e.Class != classify.OK {
		a.Rule = e.Rule
	}
	before := waitsSince(&s.call.Facts)
	if n := len(s.trail); n > 0 {
		before = s.trail[n-1].At
	}
	if !before.IsZero() {
		a.Waited = max(at.Sub(before), 0).Round(time.Millisecond)
	}
	s.trail = append(s.trail, a)
	s.wait = string(e.WaitSource)
}

// waitsSince is since when a call waits for its next attempt. One that was
// replayed did not wait until then: it had ended, and was a person's.
func waitsSince(f *queue.Facts) time.Time {
	first := f.Created
	if f.NotBefore.After(first) {
		first = f.NotBefore
	}
	switch {
	case !f.Ladder.Last.IsZero():
		return f.Ladder.Last
	case len(f.Trail) > 0, f.Ladder.Waits == 0 && f.NextAt.After(first):
		return f.NextAt
	}
	return f.Created
}

// failed is the end without an answer.
func (s *sending) failed(err error) *ended {
	e, ok := errors.AsType[*heed.Error](err)
	if !ok {
		return &ended{reason: heed.PermanentFailure, why: fmt.Sprintf("%T", err), trail: s.trail}
	}
	return &ended{
		reason: e.Reason, class: e.Class, executed: e.Executed, status: e.Status, retryAt: e.RetryAt,
		rep: e.Report, trail: s.trail, why: e.Error(),
	}
}

// tooLarge marks a kept answer whose body was not kept.
const tooLarge = "Heed-Body-Dropped"

// answered reads the answer as far as it is kept.
func (s *sending) answered(resp *http.Response) *ended {
	defer resp.Body.Close()
	rep, _ := heed.ReportOf(resp)
	body, whole, err := s.body(resp)
	a := &queue.Result{Status: resp.StatusCode, Header: http.Header{}, Body: body}
	takeOver(a.Header, resp.Header)
	s.route.links(a.Header, resp.Request.URL, "")
	if !whole {
		a.Body = nil
		a.Header[tooLarge] = []string{"true"}
	}
	e := &ended{
		reason: rep.Reason, class: rep.Class, executed: rep.Executed, status: resp.StatusCode, retryAt: rep.RetryAt,
		rep: rep, trail: s.trail, answer: a,
	}
	if cut, ok := errors.AsType[*heed.Error](err); ok {
		e.reason, e.class, e.why = cut.Reason, cut.Class, cut.Error()
	} else if err != nil {
		e.reason, e.why = heed.TruncatedAnswer, fmt.Sprintf("%T", err)
	}
	return e
}

// body reads the body of an answer, if it is not larger than what is kept.
func (s *sending) body(resp *http.Response) (body []byte, whole bool, err error) {
	if s.call.Endpoint == callbackEndpoint {
		body, whole = receipt(resp.Body)
		return body, whole, nil
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, s.Later.Answer+1))
	return body, int64(len(body)) <= s.Later.Answer, err
}

// keep has the answer to a call with a key kept for as long as the key is taken:
// whoever repeats the request is to get the first answer, and gets none if that
// is gone before. It costs the room of these answers for queue.window.
func (t *table) keep(c *queue.Call, o *queue.Outcome) {
	if c.Key == "" || c.Header[keyMade] != nil || c.Endpoint == callbackEndpoint {
		return
	}
	window := t.Later.Window
	if window <= 0 {
		window = queue.DefaultKeyWindow
	}
	o.KeptUntil = c.Created.Add(max(window, c.Expires.Sub(c.Created)))
}

// applied are the facts of a call as they are about to be.
func applied(c *queue.Call, o *queue.Outcome) queue.Facts {
	f := c.Facts
	f.Trail = nil
	with := *o
	f.Apply(time.Now(), &with, queue.Keep{})
	return f
}

// finish tells of a call that has ended: the log, and whoever asked to be told.
func (t *table) finish(ctx context.Context, c *queue.Call, o *queue.Outcome) {
	if !o.State.Ended() {
		return
	}
	t.keep(c, o)
	if o.State.Broken() && t.Log != nil {
		t.Log.LogAttrs(ctx, slog.LevelError, "queued call broke", slog.String("kind", "queue"),
			slog.String("endpoint", c.Endpoint), slog.String("method", c.Method), slog.String("path", c.Template),
			slog.String("call_id", c.ID), slog.String("correlation_id", c.CorrelationID), slog.String("state", o.State.String()),
			slog.String("reason", o.Reason), slog.String("class", o.Class), slog.Int("status_code", o.Note.Status),
			slog.Int("attempts", o.Note.Attempts), slog.String("advice", o.Note.Do), slog.String("replay", o.Note.Replay))
	}
	if c.Callback != "" {
		f := applied(c, o)
		t.untold(t.Later.callBack(ctx, c, &f))
	}
}
