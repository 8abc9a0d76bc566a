package gateway

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// deliver hands the upstream's answer to the caller. As long as nothing of it
// has been written, a problem can still take its place: its body is begun before
// its head goes out, unless the head is what the caller waits for.
func (x *exchange) deliver(resp *http.Response) {
	defer resp.Body.Close()
	buf := x.g.buffers.Get().(*[bufferSize]byte)
	defer x.g.buffers.Put(buf)
	b := body{of: resp, buf: buf[:]}
	each, head := live(resp)
	if !head && resp.StatusCode >= http.StatusOK {
		b.next()
	}
	if no := x.unfit(&b); no != nil {
		x.refuse(*no)
		return
	}
	x.begin(resp)
	announced := announce(x.w.Header(), resp.Trailer)
	x.wrote = true
	x.w.WriteHeader(resp.StatusCode)
	if head {
		x.flush()
		b.next()
	}
	x.stream(&b, each)
	if len(resp.Trailer) > 0 {
		x.trail(resp.Trailer, announced)
	}
}

// body is that of an answer, piece by piece.
type body struct {
	of   *http.Response
	buf  []byte
	n    int // of the piece that was read last
	err  error
	read int64
}

func (b *body) next() {
	b.n, b.err = b.of.Body.Read(b.buf)
	b.read += int64(b.n)
}

// unfit refuses an answer of which it is known before it is begun that it
// cannot be handed over.
func (x *exchange) unfit(b *body) *refusal {
	limit := x.table.Bounds.AnswerBytes
	switch {
	case limit > 0 && max(b.of.ContentLength, b.read) > limit:
		x.tooLarge(b.of, 0)
		return x.instead(b.of, refuse(answerTooLarge, ""))
	case b.of.StatusCode < http.StatusOK: // 101 that nobody asked for
		return x.instead(b.of, refuse(badAnswer, ""))
	case b.err == nil || b.err == io.EOF || b.n > 0:
		return nil
	case gone(x.r.Context()):
		panic(http.ErrAbortHandler)
	}
	k, detail := endKind(heed.TruncatedAnswer), ""
	if k.fault = bodyFault(b.err); k.fault == notInChunks {
		detail = brokenChunks
	}
	return x.instead(b.of, refuse(k, detail))
}

// instead makes r tell of the call whose answer it replaces.
func (x *exchange) instead(resp *http.Response, r refusal) *refusal {
	if rep, ok := heed.ReportOf(resp); ok {
		r.CallID, r.Attempts, r.LastStatus = rep.CallID.String(), &rep.Attempts, resp.StatusCode
		r.Executed = rep.Executed.String()
		tell(x.w.Header(), &rep)
	}
	return &r
}

// tooLarge tells the log of an answer that was not handed over, or not all of
// it: for the rest of heed the call went well.
func (x *exchange) tooLarge(resp *http.Response, sent int64) {
	if x.table.Log == nil {
		return
	}
	id := ""
	if rep, ok := heed.ReportOf(resp); ok {
		id = rep.CallID.String()
	}
	x.table.Log.LogAttrs(context.Background(), slog.LevelWarn, "answer cut",
		slog.String("endpoint", x.route.Name), slog.String("call_id", id), slog.String("reason", answerTooLarge.name),
		slog.Int64("bytes", sent), slog.Int64("limit", x.table.Bounds.AnswerBytes), slog.String("advice", answerTooLarge.help))
}

// begin makes the head of the answer.
func (x *exchange) begin(resp *http.Response) {
	rep, known := heed.ReportOf(resp)
	h := x.w.Header()
	takeOver(h, resp.Header)
	x.route.links(h, resp.Request.URL, x.self())
	if known {
		tell(h, &rep)
		x.route.quote(h, &rep)
		if x.keyUnheard(rep.Reason) {
			h["Heed-Advice"] = []string{x.keyAdvice()}
		}
		if !rep.Verified && x.route.full && x.r.Method != http.MethodHead && resp.StatusCode/100 == 2 {
			h["Heed-Verified"] = unverified
		}
	}
	if x.bare && resp.StatusCode == http.StatusUnauthorized {
		h["Heed-Advice"] = []string{x.bareAdvice()}
	}
	if x.asked.preferred {
		if _, said := h["Preference-Applied"]; !said {
			h["Preference-Applied"] = []string{"wait=" + strconv.FormatInt(int64(x.applied()/time.Second), 10)}
		}
	}
	if x.unread() {
		x.close()
	}
}

// applied is the time that the call had of what its caller preferred.
func (x *exchange) applied() time.Duration {
	if granted := x.route.Transport.Policy.WithDefaults().Retry.Budget; granted < x.asked.Budget {
		return granted
	}
	return x.asked.Budget
}

// self is our own origin as the caller named it.
func (x *exchange) self() string {
	switch {
	case x.r.Host == "":
		return ""
	case x.r.TLS != nil:
		return "https://" + x.r.Host
	}
	return "http://" + x.r.Host
}

// takeOver moves the fields of an answer. What only we may say is dropped: an
// upstream could pass itself off as the gateway.
func takeOver(to, from http.Header) {
	dropNamed(from)
	for k, v := range from {
		if theirs(k) {
			to[k] = v
		}
	}
}

// theirs tells whether a field is for an upstream to set.
func theirs(k string) bool { return !hopByHop(k) && !strings.HasPrefix(k, "Heed-") }

// trailing tells whether a field may follow the body of an answer: framing may
// not (RFC 9110 §6.5.1).
func trailing(k string) bool { return theirs(k) && k != "Content-Length" }

// close ends the connection with the answer: it goes out before the end of the
// upload, which both go on, and afterwards nobody knows where a next request
// would begin.
func (x *exchange) close() {
	x.closes = true
	x.w.Header()["Connection"] = []string{"close"}
}

var unverified = []string{"false"}

// noWait is a wait that does not show in milliseconds.
const noWait = "0.000"

// tell adds what it took to get the answer.
func tell(h http.Header, rep *heed.Report) {
	v := [...]string{
		rep.CallID.String(), strconv.Itoa(rep.Attempts), noWait, rep.Breaker, string(rep.WaitSource),
	}
	if rep.Waited >= time.Millisecond {
		v[2] = strconv.FormatFloat(rep.Waited.Seconds(), 'f', 3, 64)
	}
	h["Heed-Call-Id"] = v[0:1:1]
	h["Heed-Attempts"] = v[1:2:2]
	h["Heed-Waited"] = v[2:3:3]
	h["Heed-Breaker"] = v[3:4:4]
	if rep.WaitSource != policy.NoWait && v[2] != noWait {
		h["Heed-Wait-Source"] = v[4:5:5]
	}
}

// quote tells the quota in standard form
// (draft-ietf-httpapi-ratelimit-headers-10), if the upstream did not.
func (rt *route) quote(h http.Header, rep *heed.Report) {
	if !rep.HasRemaining && !rep.HasLimit {
		return
	}
	name := strconv.Quote(rt.Name) // letters, digits, _ and -
	if rep.HasRemaining && !readable(h, "Ratelimit") {
		s := name + ";r=" + strconv.FormatInt(max(rep.Remaining, 0), 10)
		if rep.HasReset {
			s += ";t=" + strconv.FormatInt(int64(math.Ceil(max(rep.Reset.Seconds(), 0))), 10)
		}
		h["Ratelimit"] = []string{s}
	}
	if rep.HasLimit && !readable(h, "Ratelimit-Policy") {
		h["Ratelimit-Policy"] = []string{name + ";q=" + strconv.FormatInt(max(rep.Limit, 0), 10)}
	}
}

// readable tells whether a standard field says what it is for. One that cannot
// be read tells the caller less than what we know from other fields.
func readable(h http.Header, name string) bool {
	lines, said := h[name]
	if !said {
		return false
	}
	var standard *hint.Reader
	got := standard.Read(http.Header{name: lines}, time.Time{})
	return got.HasRemaining || got.HasLimit
}

// announce names the trailers that are to come; it returns how many.
func announce(h http.Header, trailer http.Header) int {
	var names []string
	for k := range trailer {
		if trailing(k) {
			names = append(names, k)
		}
	}
	if len(names) == 0 {
		return 0
	}
	h["Trailer"] = []string{strings.Join(names, ", ")}
	delete(h, "Content-Length") // HTTP/1.1 has trailers after chunks only (RFC 9112 §7.1.2)
	return len(names)
}

// trail sends the trailers, also those that nobody announced.
func (x *exchange) trail(trailer http.Header, announced int) {
	maps.DeleteFunc(trailer, func(k string, _ []string) bool { return !trailing(k) })
	x.route.scrub(trailer)
	x.flush() // a short answer would else get a length, and no trailers
	h := x.w.Header()
	for k, v := range trailer {
		if len(trailer) != announced {
			k = http.TrailerPrefix + k
		}
		h[k] = v
	}
}

// live tells whether each piece of an answer should reach the caller at once:
// it is a stream of events, or nobody knows how long it will be.
func live(resp *http.Response) (at, head bool) {
	if ct := resp.Header.Get("Content-Type"); len(ct) >= len(eventStream) && strings.EqualFold(ct[:len(eventStream)], eventStream) {
		return true, true
	}
	return resp.ContentLength == -1, false
}

const eventStream = "text/event-stream"

// smallAnswer is what net/http buffers until the handler has ended: writing it
// cannot block.
const smallAnswer = 2 << 10

// stream copies the body. A caller that does not take it for as long as the
// policy lets an upstream be silent is cut off: it holds a place that others
// wait for. net/http lifts the deadline after the answer. An answer that ends
// early must not look complete, so the connection is cut.
func (x *exchange) stream(b *body, each bool) {
	limit := x.table.Bounds.AnswerBytes
	for ; ; b.next() {
		if b.n > 0 {
			if limit > 0 && b.read > limit {
				x.tooLarge(b.of, b.read-int64(b.n))
				x.cut()
			}
			if each || b.read > smallAnswer {
				x.hurry()
			}
			if _, err := x.w.Write(b.buf[:b.n]); err != nil {
				panic(http.ErrAbortHandler)
			}
			if each && b.err == nil {
				x.flush()
			}
		}
		switch b.err {
		case nil:
		case io.EOF:
			return
		default:
			x.cut()
		}
	}
}

// cut breaks the connection off. What there is of the answer goes out first: a
// client whose connection ends before the head of an answer might send the
// request again by itself.
func (x *exchange) cut() {
	x.flush()
	panic(http.ErrAbortHandler)
}

// hurry gives the caller its time to take what is written next.
func (x *exchange) hurry() {
	if x.still.set == nil {
		x.still = patience{set: http.NewResponseController(x.w).SetWriteDeadline, idle: x.route.idle}
	}
	x.still.renew()
}

func (x *exchange) flush() {
	x.hurry()
	if f, ok := x.w.(http.Flusher); ok {
		f.Flush()
	}
}
