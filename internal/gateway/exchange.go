package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
)

// exchange is one request of a caller and its answer.
type exchange struct {
	g        *Gateway
	table    *table
	w        http.ResponseWriter
	r        *http.Request
	route    *route
	asked    asked
	who      *Client  // nil: the port asks for no token
	body     *upload  // nil: no body
	read     *upload  // what the body was read with; nil: nothing has read it
	kept     []byte   // the body, where the call may have to be enqueued; nil: it is not kept
	still    patience // with a caller that does not take its answer
	ahead    bool     // the answer may go out before the end of the body
	closes   bool     // the connection ends with the answer
	broken   bool     // it is cut off
	wrote    bool     // the head of the answer is on its way
	stripped bool     // r's header is what is sent
	bare     bool     // a credential of the caller was taken out of it, and none put in
}

// serve is the road of a request through the gateway.
func (x *exchange) serve() {
	x.ahead = hasBody(x.r) && ahead(x.w)
	if int(x.g.calls.Load()) > x.table.Bounds.Calls {
		x.refuse(refuse(tooManyCalls, ""))
		return
	}
	if no := x.screen(); no != nil {
		x.refuse(*no)
		return
	}
	u, no := x.address()
	if no != nil {
		x.refuse(*no)
		return
	}
	if u == nil || x.later(u) { // explained, or in the queue
		return
	}
	out, no := x.outgoing(u)
	if no != nil {
		x.refuse(*no)
		return
	}
	resp, err := x.send(out)
	if err != nil {
		x.fail(err)
		return
	}
	if x.kept != nil && x.postponed(resp) {
		return
	}
	x.deliver(resp)
}

// screen refuses what is not meant for a gateway at all.
func (x *exchange) screen() *refusal {
	switch r := x.r; {
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace:
		return no(badMethod, "")
	case len(r.Header) > maxFields:
		return no(tooManyFields, "")
	case r.URL.Host != "" && !x.atHome():
		return no(misdirected, "The request target names another host")
	case r.Header["Upgrade"] != nil && hasToken(r.Header["Upgrade"], "websocket"):
		return no(noUpgrade, "")
	case r.Header["Heed-Callback"] != nil && x.table.Later == nil:
		return no(noCallback, "")
	case len(x.table.Clients) == 0:
		if why := x.table.foreign(r); why != "" {
			return no(misdirected, strings.ToUpper(why[:1])+why[1:])
		}
	}
	return nil
}

func no(k kind, detail string) *refusal {
	r := refuse(k, detail)
	return &r
}

// atHome tells whether an absolute request target (RFC 9112 §3.2.2) means the
// address at which it arrived.
func (x *exchange) atHome() bool {
	u := x.r.URL
	at, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || u.Scheme != "http" || u.User != nil {
		return false
	}
	if u.Host == at.String() {
		return true
	}
	_, port, err := net.SplitHostPort(at.String())
	return err == nil && portOf(u) == port && ownName(u.Host) && !Exposed(at)
}

// address finds out which endpoint is meant and what is asked of it. It
// returns neither when it has answered.
func (x *exchange) address() (*url.URL, *refusal) {
	if len(x.table.Clients) > 0 && x.who == nil { // an envelope was let in already
		if x.who = x.table.client(x.r.Header); x.who == nil {
			return nil, no(noToken, "")
		}
	}
	who := x.who
	escaped := x.r.URL.EscapedPath()
	if name, ok := strings.CutPrefix(escaped, problemPath); ok && explain(x.w, name) {
		return nil, nil
	}
	if rest, ok := strings.CutPrefix(escaped, callsPath); ok && (rest == "" || rest[0] == '/') {
		return nil, x.calls(rest)
	}
	name, rest, ok := split(escaped)
	if !ok {
		return nil, no(badPath, "The path does not begin with a slash")
	}
	x.route = x.table.routes[name]
	if x.route == nil {
		return nil, x.unknown(who, name)
	}
	if who != nil && !who.may(name, x.r.Method) {
		return nil, no(outOfScope, "")
	}
	var bad *badHeader
	if x.asked, bad = x.route.readOptions(x.r.Header); bad != nil {
		r := refuse(badField, bad.name+" must be "+bad.want)
		r.Header = bad.name
		return nil, &r
	}
	if x.asked.Tenant == "" && who != nil {
		x.asked.Tenant = who.Name
	}
	u, wrong := x.route.target(rest, x.r.URL.RawQuery)
	if wrong != "" {
		return nil, no(badPath, strings.ToUpper(wrong[:1])+wrong[1:])
	}
	return u, nil
}

// adminPort tells where that is.
const adminPort = "the admin port (listen.admin in heed.yaml, 127.0.0.1:8643 by default)"

// unknown lists the endpoints there are, unless tokens keep clients apart.
func (x *exchange) unknown(who *Client, name string) *refusal {
	r := refuse(unknownEndpoint, "")
	switch name {
	case "_heed", "metrics", "healthz", "readyz":
		r = refuse(unknownEndpoint, "This is the data port: what begins with /"+name+" is asked for on "+adminPort)
	}
	if who == nil {
		r.Endpoints = slices.Sorted(maps.Keys(x.table.routes))
	}
	return &r
}

// outgoing makes the request for the Transport out of the caller's. The copy
// shares the header, which is the gateway's to change.
func (x *exchange) outgoing(u *url.URL) (*http.Request, *refusal) {
	if x.r.ContentLength > x.table.Bounds.BodyBytes {
		return nil, no(bodyTooLarge, "")
	}
	h := x.r.Header
	x.bare = (h["Authorization"] != nil || h["Cookie"] != nil) && x.route.unsigned()
	x.route.outgoing(h)
	x.stripped = true
	out := x.r.WithContext(heed.WithCall(x.r.Context(), x.asked.Call))
	out.URL, out.Host, out.RequestURI = u, "", ""
	out.Close, out.TransferEncoding, out.Trailer, out.Pattern = false, nil, nil, ""
	out.Form, out.PostForm, out.MultipartForm = nil, nil, nil
	switch {
	case x.kept != nil:
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.kept)), nil }
		if len(x.kept) > 0 {
			out.Body, _ = out.GetBody()
		}
	case x.r.Body != nil && x.r.Body != http.NoBody:
		x.body = newUpload(x)
		out.Body = x.body
	}
	return out, nil
}

// maxHops is how many redirects are followed.
const maxHops = 10

// send sends out, and follows redirects where that was asked for.
func (x *exchange) send(out *http.Request) (*http.Response, error) {
	rt := x.route
	if !rt.FollowSameOrigin {
		return rt.Transport.RoundTrip(out)
	}
	began := time.Now()
	for hop := 0; ; hop++ {
		resp, err := rt.Transport.RoundTrip(out)
		if err != nil || hop == maxHops {
			return resp, err
		}
		next := rt.redirect(out, resp)
		if next == nil {
			return resp, nil
		}
		c := x.asked.Call
		if c.Budget == 0 {
			c.Budget = rt.Transport.Policy.WithDefaults().Retry.Budget
		}
		if c.Budget -= time.Since(began); c.Budget <= 0 {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
		resp.Body.Close()
		out = out.WithContext(heed.WithCall(x.r.Context(), c))
		out.URL = next
	}
}

// redirect returns where resp sends a safe request, if that is the same
// endpoint; else nil.
func (rt *route) redirect(out *http.Request, resp *http.Response) *url.URL {
	if out.Method != http.MethodGet && out.Method != http.MethodHead || out.Body != nil && out.Body != http.NoBody {
		return nil
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to := resp.Header.Get("Location")
	next, err := out.URL.Parse(to)
	if to == "" || err != nil || !rt.holds(next) {
		return nil
	}
	next.Scheme, next.Host, next.Fragment, next.RawFragment = rt.URL.Scheme, rt.URL.Host, "", ""
	return next
}

// fail answers for a call that has no answer of the upstream.
func (x *exchange) fail(err error) {
	switch {
	case x.body != nil && x.body.large.Load():
		x.refuse(refuse(bodyTooLarge, ""))
		return
	case x.body != nil && x.body.stalled():
		x.refuse(refuse(badBody, "The request body fell silent for longer than timeouts.idle"))
		return
	case gone(x.r.Context()):
		panic(http.ErrAbortHandler) // nobody is there to read an answer
	case x.body != nil && x.body.failed.Load():
		x.refuse(refuse(badBody, ""))
		return
	}
	e, ok := errors.AsType[*heed.Error](err)
	if !ok {
		x.refuse(refuse(unexplained, ""))
		return
	}
	if x.body != nil && e.Report.Rule == classify.Unread.String() {
		x.refuse(refuse(badBody, "The budget of the call ended before the request body was complete, which was waited for"))
		return
	}
	if x.overtaken(e) {
		return
	}
	r := refusalOf(e)
	r.Endpoint = x.route.Name
	x.advise(&r, e)
	if b, ok := errors.AsType[*Blocked](err); ok && len(x.table.Clients) == 0 {
		r.Detail = b.Error() // names addresses, which foreign clients need not know
	}
	if e.Reason == heed.TokenFailed {
		if said := tokenSaid(err, len(x.table.Clients) == 0); said != "" {
			r.Detail = said + " " + r.Detail
		}
	}
	tell(x.w.Header(), &e.Report)
	x.refuse(r)
}

// gone tells whether the caller left. A process that stops ends the context
// too, but with a cause of its own.
func gone(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled)
}

func (x *exchange) refuse(r refusal) {
	x.wrote = true
	if x.route != nil && r.Endpoint == "" {
		r.Endpoint = x.route.Name
	}
	if x.r.ContentLength > lingers && x.unread() {
		x.close()
	}
	r.write(x.w, time.Now())
}

// rescue turns a panic into an answer. What was thrown may hold anything, so
// that only its type is told.
func (x *exchange) rescue() {
	thrown := recover()
	if thrown == nil {
		return
	}
	if err, ok := thrown.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		x.closes, x.broken = true, true
		panic(http.ErrAbortHandler)
	}
	if x.table.Log != nil {
		x.table.Log.LogAttrs(context.Background(), slog.LevelError, "gateway failed",
			slog.String("panic", fmt.Sprintf("%T", thrown)), slog.String("stack", string(debug.Stack())),
			slog.String("advice", "this is a defect of heed: report it with this line"))
	}
	if x.wrote {
		x.closes, x.broken = true, true
		panic(http.ErrAbortHandler)
	}
	clear(x.w.Header())
	x.refuse(refuse(defect, ""))
}
