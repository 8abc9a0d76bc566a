package heed

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// send makes one attempt. What it came to stands in o.resp or o.err; an error
// is returned only where nothing could be sent.
func (o *op) send() error {
	if o.trip != nil { // not the first
		o.resp, o.err, o.hint = nil, nil, hint.Hint{}
	}
	if o.t.Token != nil {
		tok, err := o.current(o.sentAt)
		if err != nil {
			o.unsent()
			return o.tokenFailed(err)
		}
		o.tok = &tok
	}
	o.trip = new(trip)
	o.ctx = &o.trip.ctx
	o.ctx.begin(o, o.sentAt, o.attemptTime())
	req, err := o.request()
	if err != nil {
		o.unsent()
		o.quit()
		return o.error(BodyNotReplayable, time.Time{}, err)
	}
	o.resp, o.err = o.s.base.RoundTrip(req)
	o.sent = true
	if o.resp == nil && o.err == nil {
		o.err = errNothing
	}
	if o.err != nil {
		if o.resp != nil && o.resp.Body != nil { // against the contract, and it may hold a connection
			o.resp.Body.Close()
		}
		o.resp = nil
		o.quit()
	}
	o.wire += max(o.ctx.conns(), 1)
	return nil
}

var errNothing = errors.New("the base transport returned neither an answer nor an error")

// unsent tells the gate that the attempt it let through never left.
func (o *op) unsent() {
	o.endedAt = time.Now()
	o.observe(classify.Verdict{}, classify.Canceled, false)
}

// attemptTime is how long this attempt may take until the head of its answer.
// A deadline of the caller's context is left to that: who ended the call must
// be told.
func (o *op) attemptTime() time.Duration {
	d := o.p.Timeouts.Attempt
	if !o.bounded && !o.Deadline.IsZero() {
		if left := o.Deadline.Sub(o.sentAt); d == 0 || left < d {
			d = max(left, 1)
		}
	}
	return d
}

// request is the copy of the caller's request that goes out. The header is
// copied only when something is put into it.
func (o *op) request() (*http.Request, error) {
	out := &o.trip.req
	*out = *o.in.WithContext(o.ctx)
	once := !o.Keyed && !idempotent(o.Method)
	codings, narrower := o.codings()
	own := o.key != "" || o.past || o.t.Token != nil || o.p.Retry.Announce || narrower
	if own || once && hasKey(o.in.Header) {
		out.Header = o.in.Header.Clone()
		if out.Header == nil {
			out.Header = http.Header{}
		}
	}
	if own {
		o.decorate(out)
	}
	if narrower {
		out.Header.Set("Accept-Encoding", codings)
	}
	if err := o.attach(out); err != nil {
		return nil, err
	}
	if once {
		forbidResend(out)
	}
	return out, nil
}

// codings are what the caller asks for and can be decoded here, where the body
// may be looked at: what is in another coding would pass for what it is not.
func (o *op) codings() (accept string, narrower bool) {
	if o.Method == http.MethodHead || o.p.Verify.Mode == policy.VerifyOff ||
		!o.verifies() && !o.t.Classifier.LooksIntoBodies() {
		return "", false
	}
	return classify.NarrowCodings(o.in.Header["Accept-Encoding"])
}

// decorate puts key, credential and cache directive onto out.
func (o *op) decorate(out *http.Request) {
	if o.key != "" {
		if o.p.Key.Header != "Idempotency-Key" {
			out.Header.Del("Idempotency-Key")
		}
		out.Header.Set(o.p.Key.Header, call.Quote(&o.p.Key, o.key))
	}
	if o.past {
		out.Header.Set("Cache-Control", "no-cache")
	}
	if o.p.Retry.Announce {
		out.Header.Set("Heed-Attempt", itoa(o.Attempts))
	}
	if o.t.Token != nil {
		if o.tok.Query != "" {
			u := *o.in.URL
			out.URL = &u
		}
		o.tok.Apply(out)
	}
}

// attach gives out its body: the caller's own at first, a copy afterwards.
func (o *op) attach(out *http.Request) error {
	switch {
	case o.body != nil:
		body, end := o.body, o.ctx.Done()
		out.Body = body.reader(end)
		out.GetBody = func() (io.ReadCloser, error) { return body.again(end) } // for what HTTP/2 refused unread, and net/http repeats itself
	case o.Attempts > 1 && o.in.Body != nil && o.in.GetBody != nil:
		b, err := o.in.GetBody()
		if err != nil {
			return err
		}
		out.Body = b
	}
	return nil
}

func hasKey(h http.Header) bool {
	return len(h["Idempotency-Key"]) > 0 || len(h["X-Idempotency-Key"]) > 0
}

// idempotent tells whether a method may be repeated without a key (RFC 9110 §9.2.2).
func idempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// forbidResend keeps net/http from repeating a write on its own. Over HTTP/1 it
// does so for a request with one of these headers; written in lower case they
// mean the same to the server and nothing to net/http. Over HTTP/2 it does so
// after a PROTOCOL_ERROR too, which proves nothing, unless the request has a
// body that it cannot get again.
func forbidResend(out *http.Request) {
	out.GetBody = nil
	if out.Body == nil || out.Body == http.NoBody {
		out.Body = io.NopCloser(noBody{})
	}
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := out.Header[name]; ok {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = v
		}
	}
}

// noBody is an empty body that net/http does not know to be one.
type noBody struct{}

func (noBody) Read([]byte) (int, error) { return 0, io.EOF }

// understand says what the attempt meant, and what the server said about time.
func (o *op) understand() {
	o.arrived()
	now := o.endedAt
	x := &o.x
	*x = classify.Exchange{}
	x.Method, x.Path, x.Keyed, x.SentAt, x.Now = o.Method, o.in.URL.Path, o.Keyed, o.sentAt, now
	if o.t.Classifier != nil { // only its rules ask for it
		x.Accept = strings.Join(o.in.Header["Accept"], ", ")
	}
	if o.err != nil {
		x.Failure = failureOf(o.err, o)
	} else {
		o.lastStatus = o.resp.StatusCode
		x.Status, x.Header = o.resp.StatusCode, o.resp.Header
		x.ContentLength = o.resp.ContentLength
		o.hint = o.t.Hints.Read(o.resp.Header, now)
		o.look(x)
	}
	o.failure = x.Failure
	if o.verdict = o.t.Classifier.Classify(x, &o.p.Verify); o.verdict.Class == classify.OK {
		o.verify()
	}
	if o.verdict.Class != classify.OK { // reading the body may have taken as long as the budget allows
		o.arrived()
	}
}

// arrived notes when the outcome of the attempt was there.
func (o *op) arrived() {
	o.endedAt = o.clock()
	o.took = o.endedAt.Sub(o.sentAt)
}

// look reads as much of the body as a rule needs, and puts it back.
func (o *op) look(x *classify.Exchange) {
	if o.p.Verify.Mode == policy.VerifyOff || o.Method == http.MethodHead {
		return
	}
	n := min(o.t.Classifier.Peek(x), policy.PeekLimit)
	if n <= 0 || o.resp.Body == nil {
		return
	}
	o.armIdle(o.took)
	head, err := readHead(idleReader{o.resp.Body, o.ctx}, o.resp.ContentLength, n) // what is silent is cut
	if err == io.EOF && o.resp.Body != http.NoBody && o.resp.ContentLength > int64(len(head)) {
		err = io.ErrUnexpectedEOF
	}
	x.BodyEnd = err == io.EOF
	x.Body, x.Peeked = plain(o.resp.Header, head)
	o.resp.Body = &rejoined{head: head, rest: o.resp.Body, err: err}
	if err != nil && !x.BodyEnd {
		x.Failure, o.err = o.bodyFailure(err), err
	}
}

// readHead reads up to most bytes of a body. io.EOF is the body's own end;
// io.ReadFull would report a short body and a cut one alike. length is what the
// body is said to have, -1 when unknown: most answers are far smaller than what
// may be looked at, and a buffer for that would be most of what a call costs.
func readHead(r io.Reader, length int64, most int) (head []byte, err error) {
	size := 4 << 10
	if length >= 0 {
		size = int(min(length, int64(most))) + 1 // and its end
	}
	head = make([]byte, 0, min(size, most))
	for len(head) < most && err == nil {
		if len(head) == cap(head) {
			head = slices.Grow(head, min(len(head), most-len(head)))
		}
		var n int
		n, err = r.Read(head[len(head):min(cap(head), most)])
		head = head[:len(head)+n]
	}
	return head, err
}

// bodyFailure says why a body ended too early.
func (o *op) bodyFailure(err error) classify.Failure {
	switch {
	case o.in.Context().Err() != nil:
		return classify.Canceled
	case isTimeout(err) || o.ctx.late():
		return classify.BodyTimeout
	}
	return classify.BodyCut
}

// plain is the beginning of a body without its content coding, as far as it
// can be decoded; not at all when the coding is not known here.
func plain(h http.Header, raw []byte) (text []byte, known bool) {
	if len(raw) == 0 || classify.Coding(h) == "" { // nothing is nothing in any coding
		return raw, true
	}
	body, known := classify.Decode(h, bytes.NewReader(raw))
	if !known {
		return nil, false
	}
	text, _ = io.ReadAll(io.LimitReader(body, policy.PeekLimit)) // a cut stream still has a beginning
	return text, true
}

// decide tells the gate and asks what comes next.
func (o *op) decide() call.Decision {
	now := o.endedAt
	var d call.Decision
	if o.verdict.Class != classify.OK {
		o.Replayable = o.replayable()
		if o.rng == nil {
			o.rng = o.s.stream(o.n << 8) // of this call alone: two calls must not wait in step
		}
		d = o.Next(now, o.verdict, o.hint, o.rng)
	}
	retry := d.Action != call.End && d.Action != call.Refresh // a renewal, once in a call, takes nothing of the retry budget
	if granted := o.observe(o.verdict, o.failure, retry); retry && !granted {
		d = call.Decision{Reason: RetryBudget, At: d.At}
	}
	o.past = d.Action == call.Revalidate
	o.tellAttempt(d)
	return d
}

func (o *op) replayable() bool {
	if o.body != nil {
		return o.body.replayable()
	}
	return o.in.Body == nil || o.in.Body == http.NoBody || o.in.GetBody != nil
}

// observe tells the gate what came of the attempt, unless that would teach it
// nothing and nobody waits for the end of it: so it is with most. It tells
// whether the retry that was asked for is granted.
func (o *op) observe(v classify.Verdict, f classify.Failure, retry bool) (granted bool) {
	o.seen = true
	if !retry && admit.Plain(&v, f, &o.hint) && o.gate.keeper.Calm() && o.gate.Quiet() {
		o.paid, o.breaker, o.shut, o.shutBy = 0, admit.Closed, time.Time{}, policy.NoWait
		return false
	}
	r := admit.Result{Pass: o.pass, Verdict: v, Hint: o.hint, Failure: f, Paid: o.paid, Retry: retry}
	if o.resp != nil {
		r.Status = o.resp.StatusCode
	}
	told := o.gate.Observe(o.endedAt, r)
	o.paid, o.breaker, o.shut, o.shutBy = told.Cost, told.Breaker, told.Until, told.Source
	if told.Changed {
		o.tellBreaker(told, &r)
	}
	return told.Retry
}

// discard drains and closes an answer that is not handed over, so that its
// connection can be used again, and gives the permit back before the wait.
func (o *op) discard() {
	o.earlier = o.executed()
	if o.resp != nil && o.resp.Body != nil {
		if o.resp.ContentLength <= drainBytes {
			slow := time.AfterFunc(drainTime, o.ctx.abort)
			_, _ = io.CopyN(io.Discard, o.resp.Body, drainBytes)
			slow.Stop()
		}
		o.resp.Body.Close()
	}
	o.quit()
	o.release()
	o.lastWait = 0
}

// What is drained of a discarded answer before its connection is given up.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)
