package gateway

import (
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// deliver hands the upstream's answer to the caller.
func (x *exchange) deliver(resp *http.Response) {
	defer resp.Body.Close()
	if limit := x.table.Bounds.AnswerBytes; limit > 0 && resp.ContentLength > limit {
		x.refuse(refuse(answerTooLarge, ""))
		return
	}
	if resp.StatusCode < http.StatusOK { // 101 that nobody asked for
		x.refuse(refuse(badAnswer, ""))
		return
	}
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
		if !rep.Verified && x.route.full && x.r.Method != http.MethodHead {
			h["Heed-Verified"] = unverified
		}
	}
	if x.asked.preferred {
		if _, said := h["Preference-Applied"]; !said {
			h["Preference-Applied"] = []string{"wait=" + strconv.FormatInt(int64(x.asked.Budget/time.Second), 10)}
		}
	}
	announced := announce(h, resp.Trailer)
	if x.body != nil && !x.body.whole.Load() {
		x.early()
	}
	x.wrote = true
	x.w.WriteHeader(resp.StatusCode)
	x.stream(resp)
	if len(resp.Trailer) > 0 {
		x.trail(resp.Trailer, announced)
	}
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

// early prepares for an answer before the end of the upload, which both go on.
// By itself net/http would read the rest before it writes, in competition with
// who sends it on. Afterwards nobody knows where a next request would begin.
func (x *exchange) early() {
	if x.r.ProtoMajor == 1 && http.NewResponseController(x.w).EnableFullDuplex() == nil {
		x.w.Header()["Connection"] = []string{"close"}
	}
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
	if _, said := h["Ratelimit"]; !said && rep.HasRemaining {
		s := name + ";r=" + strconv.FormatInt(max(rep.Remaining, 0), 10)
		if rep.HasReset {
			s += ";t=" + strconv.FormatInt(int64(math.Ceil(max(rep.Reset.Seconds(), 0))), 10)
		}
		h["Ratelimit"] = []string{s}
	}
	if _, said := h["Ratelimit-Policy"]; !said && rep.HasLimit {
		h["Ratelimit-Policy"] = []string{name + ";q=" + strconv.FormatInt(max(rep.Limit, 0), 10)}
	}
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
// wait for. net/http lifts the deadline after the answer. An answer that ends early must not look complete,
// so the connection is cut.
func (x *exchange) stream(resp *http.Response) {
	each, head := live(resp)
	if head {
		x.flush()
	}
	buf := x.g.buffers.Get().(*[bufferSize]byte)
	defer x.g.buffers.Put(buf)
	limit, sent := x.table.Bounds.AnswerBytes, int64(0)
	for {
		n, err := resp.Body.Read(buf[:])
		if n > 0 {
			if sent += int64(n); limit > 0 && sent > limit {
				x.cut()
			}
			if each || sent > smallAnswer {
				x.hurry()
			}
			if _, werr := x.w.Write(buf[:n]); werr != nil {
				panic(http.ErrAbortHandler)
			}
			if each && err == nil {
				x.flush()
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
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
