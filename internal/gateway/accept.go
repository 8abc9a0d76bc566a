package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
)

const callsPath = "/_heed/calls"

// later hands the request to the queue where that is asked for. It tells
// whether it has answered.
func (x *exchange) later(u *url.URL) bool {
	h, asked := x.handover()
	if hold, held := x.g.Held(x.route.Name); held {
		x.heldBack(u, hold, h, asked)
		return true
	}
	if !asked && x.r.Header["Heed-Callback"] != nil {
		x.refuse(refuse(lateCallback, ""))
		return true
	}
	if !asked && x.repeats() { // it is answered by the call that is there
		h, asked = handover{wait: x.budget(), kept: true}, true
	}
	if !asked {
		return x.mayQueue() && x.route.Async.Enqueue && !x.keep()
	}
	if x.table.Later != nil && !x.mayQueue() {
		x.refuse(refuse(outOfScope, "Its calls are not answered later"))
		return true
	}
	if x.table.Later == nil {
		x.refuse(refuse(noQueue, ""))
		return true
	}
	body, no := x.wholeBody()
	if no == nil {
		no = x.queue(u, body, h)
	}
	if no != nil {
		x.refuse(*no)
	}
	return true
}

// repeats tells whether a write has the idempotency key of a call in the queue:
// sent beside that one, it would be carried out twice where the provider does
// not honour keys. Who sends no key is not kept waiting for that, nor is anybody
// for long while the queue fails or does not answer.
func (x *exchange) repeats() bool {
	key := x.asked.Key
	if lines := x.r.Header["Idempotency-Key"]; key == "" && lines != nil {
		key, _ = readKey(lines, 255)
	}
	if key == "" || safe(x.r.Method) || !x.mayQueue() {
		return false
	}
	c := queue.Call{Facts: queue.Facts{Endpoint: x.route.Name, Method: x.r.Method}, Request: queue.Request{Key: key}}
	ctx, done := context.WithTimeout(x.r.Context(), answersIn)
	defer done()
	taken, err := x.table.Later.Store.Taken(ctx, time.Now(), &c)
	return err == nil && taken
}

// mayQueue tells whether there is a queue, and the client may use it.
func (x *exchange) mayQueue() bool {
	return x.table.Later != nil && (x.who == nil || !x.who.NoAsync)
}

// wholeBody reads what the queue is to keep.
func (x *exchange) wholeBody() ([]byte, *refusal) {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return nil, nil
	}
	limit := x.table.Later.Body
	if x.r.ContentLength > limit {
		return nil, no(tooLargeToKeep, "")
	}
	x.body = newUpload(x)
	body, err := io.ReadAll(io.LimitReader(x.body, limit+1))
	switch {
	case x.body.stalled():
		return nil, no(badBody, "The request body fell silent for longer than timeouts.idle")
	case err != nil:
		return nil, no(badBody, "")
	case int64(len(body)) > limit:
		return nil, no(tooLargeToKeep, "")
	}
	return body, nil
}

// keep reads the body of a call that may have to be enqueued when it finds the
// breaker open. What is too large for that goes on as it comes. It is false
// when the request has been refused.
func (x *exchange) keep() bool {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		x.kept = []byte{}
		return true
	}
	if x.r.ContentLength < 0 || x.r.ContentLength > x.table.Later.Body {
		return true
	}
	body, no := x.wholeBody()
	if no != nil {
		x.refuse(*no)
		return false
	}
	x.kept = append([]byte{}, body...)
	return true
}

// queue puts the request into the queue and answers.
func (x *exchange) queue(u *url.URL, body []byte, h handover) *refusal {
	c, no := x.queued(u, body)
	if no != nil {
		return no
	}
	if h.kept { // nothing new begins when the caller has given up
		c.Expires = time.Now().Add(h.wait)
	}
	receipt, no := x.table.take(x.r.Context(), c)
	if no != nil {
		return no
	}
	return x.received(receipt, &c, h)
}

// take stores one call. It is on disk when there is no refusal.
func (t *table) take(ctx context.Context, c queue.Call) (queue.Receipt, *refusal) {
	r, err := t.enqueue(ctx, c)
	if err != nil {
		return r, storeRefusal(err)
	}
	switch r.Admission {
	case queue.Full:
		full := refuse(queueFull, "")
		full.retryAt = time.Now().Add(10 * time.Second)
		return r, &full
	case queue.New:
		t.Later.Wake()
	}
	return r, nil
}

// queued makes the call that is kept of the request.
func (x *exchange) queued(u *url.URL, body []byte) (queue.Call, *refusal) {
	rt, r := x.route, x.r
	if rt.Passthrough && (r.Header["Authorization"] != nil || r.Header["Cookie"] != nil) {
		return queue.Call{}, no(credentialLost, "")
	}
	if p := rt.Transport.Policy.WithDefaults(); !p.Permits(r.Method, u.Path) {
		return queue.Call{}, no(endKind(heed.NotAllowed), "")
	}
	callback, no := x.callback()
	if no != nil {
		return queue.Call{}, no
	}
	_, rest, _ := split(r.URL.EscapedPath())
	if r.URL.RawQuery != "" {
		rest += "?" + r.URL.RawQuery
	}
	c := queue.Call{
		Facts: queue.Facts{
			Endpoint: rt.Name, Gate: MainGate, Method: r.Method, Template: mask.Template(r.URL.Path[1+len(rt.Name):]),
			Tenant: owner(x.who, x.asked.Tenant), Priority: x.asked.Priority, CorrelationID: x.asked.CorrelationID,
			NotBefore: x.asked.NotBefore,
		},
		Request:   queue.Request{Path: rest, Body: body, Callback: callback},
		KeyWindow: x.table.Later.Window,
	}
	if tp := r.Header["Traceparent"]; len(tp) == 1 && traceParent(tp[0]) {
		c.TraceParent = tp[0]
	}
	var made bool
	if c.Key, made, no = x.key(u, body); no != nil {
		return queue.Call{}, no
	}
	if c.Header = x.keptHeader(); made {
		c.Header[keyMade] = []string{"true"}
	}
	budget := x.asked.Budget
	if x.asked.preferred {
		budget = 0 // the wait of a caller, not the life of the call
	}
	rt.settleTerms(&c, budget)
	return c, nil
}

// settleTerms fills in what the policy knows of a call: until when it is worth
// sending, how long its key stays taken, and whether it may be repeated.
func (rt *route) settleTerms(c *queue.Call, budget time.Duration) {
	life := rt.Async.expiry()
	if budget > 0 && budget < life {
		life = budget
	}
	begins := time.Now()
	if c.NotBefore.After(begins) {
		begins = c.NotBefore
	}
	if last := begins.Add(life); c.Expires.IsZero() || c.Expires.After(last) {
		c.Expires = last
	}
	c.KeyWindow = max(c.KeyWindow, time.Until(c.Expires))
	p := rt.Transport.Policy.WithDefaults()
	c.Repeatable = idempotent(c.Method) || c.Key != "" && p.Key.Header != "" && slices.Contains(p.Key.Methods, c.Method)
}

// keptHeader is the header that is stored: what is sent, and what the caller
// wants of the way in which it is.
func (x *exchange) keptHeader() http.Header {
	retry := x.asked.RetryOff
	if !x.stripped {
		x.route.outgoing(x.r.Header)
		x.stripped = true
	}
	h := x.r.Header.Clone()
	if lines := h["Prefer"]; lines != nil && !x.route.Async.Pass {
		if h["Prefer"] = withoutAsync(lines); h["Prefer"] == nil {
			delete(h, "Prefer")
		}
	}
	delete(h, "Content-Length") // follows from the body
	if retry {
		h[retryField] = []string{"off"}
	}
	return h
}

// key finds the idempotency key of the call: the caller's, or one that is made
// as the endpoint says. A provider that honours none does not get it; heed
// still tells repeats by it, but for one that is made at random here: nobody
// repeats the request under it.
func (x *exchange) key(u *url.URL, body []byte) (key string, made bool, refused *refusal) {
	rt, m := x.route, x.r.Method
	p := rt.Transport.Policy.WithDefaults()
	k := &p.Key
	honoured := k.Header != "" && slices.Contains(k.Methods, m)
	switch lines := x.r.Header["Idempotency-Key"]; {
	case x.asked.Key != "":
		return x.asked.Key, false, nil
	case lines != nil:
		key, ok := readKey(lines, 255)
		if !ok {
			r := refuse(badField, "Idempotency-Key must be one key of 1 to 255 visible ASCII characters")
			r.problem.Header = "Idempotency-Key"
			return "", false, &r
		}
		return key, false, nil
	case safe(m):
		return "", false, nil
	case rt.Async.DeriveKey, honoured && k.From == policy.KeyHash:
		key, refused = x.hashKey(k, u, body)
		return key, false, refused
	case rt.Async.RequireKey:
		return "", false, no(keyRequired, "")
	case honoured && k.From == policy.KeyRandom:
		return randomKey(k.MaxLen), true, nil
	}
	return "", false, nil
}

// hashKey derives the key from what the write is.
func (x *exchange) hashKey(k *policy.Key, u *url.URL, body []byte) (string, *refusal) {
	record := ""
	if k.RecordHeader != "" {
		record = x.r.Header.Get(k.RecordHeader)
	}
	key, err := call.HashKey(k, x.r.Method, u.RequestURI(), record, bytes.NewReader(body))
	if err != nil {
		return "", no(badBody, "")
	}
	return key, nil
}

func randomKey(limit int) string {
	var b [16]byte
	rand.Read(b[:])
	key := hex.EncodeToString(b[:])
	return key[:min(len(key), limit)]
}

// received answers for a call that is on disk.
func (x *exchange) received(got queue.Receipt, c *queue.Call, h handover) *refusal {
	x.w.Header()["Vary"] = []string{"Prefer"}
	f := queue.Facts{ID: got.ID, State: got.State, NextAt: c.NotBefore, Tenant: c.Tenant, Endpoint: c.Endpoint}
	if got.Admission != queue.New {
		if no := x.known(got, c, &f); no != nil {
			return no
		}
		if h.kept && !f.State.Ended() {
			r := x.about(keyRunning, &f)
			return &r
		}
	}
	if h.wait > 0 && !f.State.Ended() {
		if now, err := x.await(got.ID, h); err == nil { // else it is on disk all the same
			f = now
		}
		if gone(x.r.Context()) {
			panic(http.ErrAbortHandler) // the call goes on
		}
	}
	if h.applied != "" {
		x.w.Header()["Preference-Applied"] = []string{h.applied}
	}
	switch {
	case f.State.Ended() && (h.wait > 0 || h.kept):
		no := x.replay(&f)
		if no == nil || no.kind != unread || h.kept {
			return no
		}
	case h.kept:
		r := x.about(keptOn, &f)
		return &r
	}
	x.accepted(&f)
	return nil
}

// await waits for the end of a call. Who expects nothing but its answer waits
// also while the process ends: what is sent then is carried to its end.
func (x *exchange) await(id string, h handover) (queue.Facts, error) {
	l := x.table.Later
	if !h.kept {
		return l.await(x.r.Context(), id, h.wait)
	}
	ctx, done := context.WithTimeout(x.r.Context(), h.wait)
	defer done()
	return l.Bell.Await(ctx, l.Store, id, poll)
}

// known is about a call that is in the queue already, by its key or its id.
func (x *exchange) known(got queue.Receipt, c *queue.Call, f *queue.Facts) *refusal {
	if got.Admission == queue.Conflict && !x.alike(c) {
		return no(keyReused, "")
	}
	first, err := x.table.Later.Store.Get(x.r.Context(), got.ID)
	switch {
	case err == nil:
		*f = first
	case got.State != queue.Done: // else it is known, and erased
		return storeRefusal(err)
	}
	if !owns(x.who, f.Tenant) {
		return no(keyReused, "")
	}
	x.w.Header()["Heed-Duplicate"] = []string{"true"}
	return nil
}

// keptOn ends the wait of a caller whose call goes on.
var keptOn = kind{"deadline-exceeded", 504, "http_response_timeout", "The budget of the call is used up",
	"An attempt that has begun is carried to its end; Location tells what came of it."}

// about is a refusal that tells where the call is found, and when to ask if it
// has not ended.
func (x *exchange) about(k kind, f *queue.Facts) refusal {
	x.w.Header()["Location"] = []string{callsPath + "/" + f.ID}
	r := refuse(k, "")
	if !f.State.Ended() {
		r.retryAt = time.Now().Add(time.Duration(askAgain(f, time.Now())) * time.Second)
	}
	return r
}

// alike tells whether a body that differs from that of the first request with
// the key still is the same write: a key that is derived from the content in
// any order of its members differs where the content does.
func (x *exchange) alike(c *queue.Call) bool {
	k := &x.route.Transport.Policy.Key
	derived := x.asked.Key == "" && x.r.Header["Idempotency-Key"] == nil
	return derived && k.AnyOrder && c.Key != ""
}

// acceptance is the body of 202.
type acceptance struct {
	ID        string     `json:"id"`
	State     string     `json:"state"`
	NotBefore *time.Time `json:"not_before,omitempty"`
}

// accepted says where the end of the call can be asked for.
func (x *exchange) accepted(f *queue.Facts) {
	h, now := x.w.Header(), time.Now()
	h["Location"] = []string{callsPath + "/" + f.ID}
	h["Heed-Call-Id"] = []string{f.ID}
	h["Retry-After"] = []string{strconv.FormatInt(askAgain(f, now), 10)}
	h["Content-Type"] = []string{"application/json"}
	h["Cache-Control"] = []string{"no-store"}
	h["Heed-Origin"] = []string{"gateway"}
	a := acceptance{ID: f.ID, State: stateWord(f, now)}
	if f.NextAt.After(now) {
		at := f.NextAt.UTC()
		a.NotBefore = &at
	}
	x.wrote = true
	whole(x.w, http.StatusAccepted, inJSON(a)) // a caller who left asks at the same place with its key
}

// askAgain is in how many seconds asking makes sense: when the call may be
// sent at the earliest, and within a minute.
func askAgain(f *queue.Facts, now time.Time) int64 {
	if !f.NextAt.After(now) {
		return 1
	}
	return min(int64(math.Ceil(f.NextAt.Sub(now).Seconds())), 60)
}

// stateWord is how a call stands. One that must not be sent yet waits.
func stateWord(f *queue.Facts, now time.Time) string {
	if f.State == queue.Queued && f.NextAt.After(now) {
		return "waiting"
	}
	return f.State.String()
}

// overtaken enqueues a waiting call that cannot be sent now, where the endpoint
// wants that: the breaker is open, or the policy defers what would have to wait
// for too long. A write that may have arrived is not sent a second time.
func (x *exchange) overtaken(e *heed.Error) bool {
	if x.kept == nil || e.Reason != heed.BreakerOpen && e.Reason != heed.Deferred {
		return false
	}
	u, wrong := x.mapped()
	if wrong != "" {
		return false
	}
	x.body = nil
	asked := x.asked
	x.asked.Budget = 0 // the wait of the caller, who waits no longer
	c, no := x.queued(u, x.kept)
	x.asked = asked
	if no != nil || e.Report.Attempts > 0 && e.Executed != classify.No && !c.Repeatable {
		return false
	}
	if e.RetryAt.After(c.NotBefore) && e.Reason == heed.Deferred {
		c.NotBefore = e.RetryAt
	}
	receipt, no := x.table.take(x.r.Context(), c)
	if no == nil {
		no = x.received(receipt, &c, handover{})
	}
	return no == nil
}

// postponed enqueues a call whose answer says that it would have to wait for
// longer than its policy lets a caller wait.
func (x *exchange) postponed(resp *http.Response) bool {
	rep, ok := heed.ReportOf(resp)
	if !ok || rep.Reason != heed.Deferred ||
		!x.overtaken(&heed.Error{Reason: rep.Reason, Executed: rep.Executed, RetryAt: rep.RetryAt, Report: rep}) {
		return false
	}
	resp.Body.Close()
	return true
}

// mapped is where the request goes.
func (x *exchange) mapped() (u *url.URL, wrong string) {
	_, rest, _ := split(x.r.URL.EscapedPath())
	return x.route.target(rest, x.r.URL.RawQuery)
}
