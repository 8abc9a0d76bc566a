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
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
)

// The admin port on calls:
//
//	GET   /_heed/calls?state=dead,unknown&endpoint=…     a page: {"calls": […], "next": cursor}
//	GET   /_heed/calls/{id}                              one call, masked
//	POST  /_heed/calls/{id}/reveal  {"why"}              as it is; the audit log is told
//	PATCH /_heed/calls/{id}         part of an envelope  a new revision
//	POST  /_heed/calls/{id}/replay  {"at", "expires", "even_unknown"}
//	POST  /_heed/calls/{id}/cancel
//	POST  /_heed/calls/replay       {"filter", "rate", "expires", "dry_run", "even_unknown"}
//	POST  /_heed/calls/cancel       {"filter", "dry_run"}
//	POST  /_heed/calls/purge        {"filter", "dry_run"}
//	POST  /_heed/calls/export       {"filter", "why", "even_unknown"}  envelopes, one a line; the audit log is told
//	POST  /_heed/calls/import       envelopes, one a line
//	GET   /_heed/queue                                   counts, and the gates of the quota keys
//
// {id} may be the beginning of an id, if no other begins so.
//
// A filter has the members states, endpoint, gate, tenant, correlation_id,
// reason, class, created_from, created_before, kept_before and ids. An empty
// one selects every call that the action is for.
//
// An unknown write that cannot be repeated without harm may have been carried
// out: replay and export take it only with "even_unknown": true, also where it
// is named or its state is asked for. Without it a replay of that one call is
// refused with 409 call-unknown; orders for several leave such writes out and
// count them, a replay as "left_unknown", an export in a trailer.
func (g *Gateway) adminCalls(mux *http.ServeMux) {
	for pattern, do := range map[string]func(*desk) error{
		"GET /_heed/calls":              (*desk).list,
		"GET /_heed/calls/{id}":         (*desk).show,
		"POST /_heed/calls/{id}/reveal": (*desk).reveal,
		"PATCH /_heed/calls/{id}":       (*desk).edit,
		"POST /_heed/calls/{id}/replay": (*desk).replayOne,
		"POST /_heed/calls/{id}/cancel": (*desk).cancelOne,
		"POST /_heed/calls/replay":      (*desk).replayMany,
		"POST /_heed/calls/cancel":      (*desk).cancelMany,
		"POST /_heed/calls/purge":       (*desk).purge,
		"POST /_heed/calls/export":      (*desk).export,
		"POST /_heed/calls/import":      (*desk).importAll,
		"GET /_heed/queue":              (*desk).queue,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { g.atDesk(w, r, do) })
	}
}

// desk is one request of an operator about calls.
type desk struct {
	*Later
	g *Gateway
	t *table
	w http.ResponseWriter
	r *http.Request
	// begun tells that the answer is on its way.
	begun bool
}

func (g *Gateway) atDesk(w http.ResponseWriter, r *http.Request, do func(*desk) error) {
	t := g.current.Load()
	if t.Later == nil {
		no(noQueue, "").write(w, time.Now())
		return
	}
	d := &desk{Later: t.Later, g: g, t: t, w: w, r: r}
	err := d.find()
	if err == nil {
		err = do(d)
	}
	if err != nil && !d.begun {
		d.refuse(err)
	}
}

const (
	// shortest is how many characters of an id say which call is meant.
	shortest = 4
	// named is how many calls are told that begin alike.
	named = 4
)

// find puts the whole id in the place of the beginning of one. The ids that a
// callback and a watchman have begin with that of their call, which is meant.
func (d *desk) find() error {
	part := d.r.PathValue("id")
	if part == "" {
		return nil
	}
	ids, err := d.Store.IDs(d.r.Context(), part, 8*named)
	if err != nil || len(ids) > 0 && ids[0] == part {
		return err
	}
	all := slices.Clone(ids)
	ids = slices.DeleteFunc(ids, func(id string) bool {
		of, _, own := strings.Cut(id, "~")
		return own && slices.Contains(all, of)
	})
	switch {
	case len(ids) == 0:
		return fmt.Errorf("call %.64q: %w", part, queue.ErrNotFound)
	case len(part) < shortest:
		return wrong("%q is too short for an id: write its first %d characters or more", part, shortest)
	case len(ids) == 1:
		d.r.SetPathValue("id", ids[0])
		return nil
	}
	more := ""
	if len(ids) > named {
		ids, more = ids[:named], " and others"
	}
	return wrong("%.64q is the beginning of several ids: %s%s; write more of it", part, strings.Join(ids, ", "), more)
}

// wrongUse is a request of an operator that cannot be carried out as it is.
type wrongUse struct{ text string }

func (e *wrongUse) Error() string { return e.text }

func wrong(format string, args ...any) error { return &wrongUse{fmt.Sprintf(format, args...)} }

// The problems of operators.
var (
	badOrder = kind{"bad-request", 400, "http_request_error", "The request cannot be carried out",
		"Correct what the detail names."}
	wrongState = kind{"call-state", 409, "http_request_denied", "The state of the call does not allow it",
		"Look at the call first: what runs ends by itself, and what is done is not sent again."}
	mayBeDone = kind{"call-unknown", 409, "http_request_denied", "Nobody knows whether the call was carried out",
		"Look at the provider first. If it was not carried out there, or may be carried out twice, replay it with {\"even_unknown\": true}."}
	sealedOff = kind{"call-sealed", 500, "proxy_internal_error", "The record of the call cannot be unsealed",
		"Put the key with which it was sealed back into queue.keys."}
	erased = kind{"call-erased", 410, "proxy_internal_response", "What the call said, or was answered, is no longer kept",
		"What a call said is erased when it is done, and its answer after queue.result_ttl, with an idempotency key after queue.window."}
	recoversNow = kind{"endpoint-recovers", 409, "http_request_denied", "The endpoint is being recovered already",
		"Wait for it: GET /_heed/endpoints/{name}/recover shows where it is."}
	noSuchEndpoint = kind{"unknown-endpoint", 404, "http_request_denied", "There is no such endpoint",
		"GET /_heed/endpoints lists them."}
)

func (d *desk) refuse(err error) {
	var r *refusal
	switch _, use := errors.AsType[*wrongUse](err); {
	case use:
		r = no2(badOrder, err)
	case errors.Is(err, queue.ErrState):
		r = no2(wrongState, err)
	case errors.Is(err, queue.ErrDoubtful):
		r = no2(mayBeDone, fmt.Errorf(`%w. Look at the provider first; {"even_unknown": true} replays it even so`, err))
	case errors.Is(err, ErrRecovering):
		r = no(recoversNow, "")
	case errors.Is(err, queue.ErrKey):
		r = no2(sealedOff, err)
	case errors.Is(err, queue.ErrErased):
		r = no2(erased, err)
	case errors.Is(err, queue.ErrInvalid):
		r = no2(badOrder, err)
	default:
		r = storeRefusal(err)
	}
	if h, is := errors.AsType[*halted](err); is {
		h.tell(r)
	}
	r.write(d.w, time.Now())
}

// tellAudit writes down that somebody looked at what is masked otherwise, or
// changed something.
func (d *desk) tellAudit(action string, attrs ...slog.Attr) {
	if d.t.Log == nil {
		return
	}
	all := append([]slog.Attr{slog.String("kind", "audit"), slog.String("action", action), slog.String("from", d.r.RemoteAddr)}, attrs...)
	d.t.Log.LogAttrs(context.Background(), slog.LevelInfo, "operator acted", all...)
}

// masked is what is shown of a request or an answer.
type masked struct {
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"headers,omitempty"`
	Size   int         `json:"size"`
	Key    string      `json:"idempotency_key,omitempty"` // a fingerprint
	Calls  string      `json:"callback,omitempty"`        // its host
}

// opened is one call in full.
type opened struct {
	shownCall
	Request *masked `json:"request,omitempty"` // none: it is erased
	Answer  *masked `json:"answer,omitempty"`
}

func (d *desk) show() error {
	id := d.r.PathValue("id")
	f, err := d.Store.Get(d.r.Context(), id)
	if err != nil {
		return err
	}
	out := opened{shownCall: shown(&f, time.Now())}
	c, err := d.Store.Reveal(d.r.Context(), id)
	switch {
	case err == nil:
		shown := mask.Header(c.Header)
		if own := c.Header[retryField]; own != nil { // written by heed
			shown[retryField] = own
		}
		out.Request = &masked{Header: shown, Size: len(c.Body), Key: mask.Fingerprint(c.Key)}
		if u, err := url.Parse(c.Callback); err == nil {
			out.Request.Calls = u.Host
		}
	case !errors.Is(err, queue.ErrErased):
		return err
	}
	a, err := d.Store.Answer(d.r.Context(), id)
	switch {
	case err == nil:
		out.Answer = &masked{Status: a.Status, Header: mask.Header(a.Header), Size: len(a.Body)}
	case !errors.Is(err, queue.ErrErased):
		return err
	}
	reply(d.w, out)
	return nil
}

// because is why somebody wants to see what is masked.
type because struct {
	Why string `json:"why"`
}

// revealed is a call with what is masked otherwise.
type revealed struct {
	Envelope  *queue.Envelope  `json:"envelope,omitempty"` // none: it is erased
	Revisions []queue.Envelope `json:"revisions,omitempty"`
	Answer    *revealedAnswer  `json:"answer,omitempty"`
}

type revealedAnswer struct {
	Status int         `json:"status"`
	Header http.Header `json:"headers"`
	Body   []byte      `json:"body"`
}

func (d *desk) reveal() error {
	var why because
	if err := d.read(&why); err != nil {
		return err
	}
	if strings.TrimSpace(why.Why) == "" {
		return wrong("say why: the audit log keeps it")
	}
	id, ctx := d.r.PathValue("id"), d.r.Context()
	var out revealed
	c, err := d.Store.Reveal(ctx, id)
	if err == nil {
		e := c.Envelope()
		out.Envelope = &e
	} else if !errors.Is(err, queue.ErrErased) {
		return err
	}
	older, err := d.Store.Revisions(ctx, id)
	if err != nil {
		return err
	}
	for _, r := range older {
		e := (&queue.Call{Facts: c.Facts, Request: r}).Envelope()
		out.Revisions = append(out.Revisions, e)
	}
	a, err := d.Store.Answer(ctx, id)
	if err == nil {
		out.Answer = &revealedAnswer{a.Status, a.Header, a.Body}
	} else if !errors.Is(err, queue.ErrErased) {
		return err
	}
	d.tellAudit("reveal", slog.String("call_id", id), slog.String("why", clip(why.Why)))
	reply(d.w, out)
	return nil
}

// clip bounds what somebody wrote for the log.
func clip(s string) string { return s[:min(len(s), 200)] }

// maxOrder bounds what an operator sends, but for envelopes.
const maxOrder = 1 << 20

// read reads a JSON object strictly; an empty body is an empty object.
func (d *desk) read(v any) error {
	limit := int64(maxOrder)
	if d.Later != nil {
		limit += d.Body / 3 * 4
	}
	body, err := io.ReadAll(io.LimitReader(d.r.Body, limit))
	if err != nil {
		return wrong("the body could not be read")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return wrong("the member %.40s is not known here", name)
		}
		return wrong("the body is not the JSON object that is wanted here")
	}
	return nil
}

// change is what of a call is edited; nil stays as it is.
type change struct {
	Path     *string      `json:"path"`
	Header   *http.Header `json:"headers"`
	Body     *[]byte      `json:"body"`
	Key      *string      `json:"idempotency_key"`
	Callback *string      `json:"callback"`
}

func (d *desk) edit() error {
	var ch change
	if err := d.read(&ch); err != nil {
		return err
	}
	id := d.r.PathValue("id")
	c, err := d.Store.Reveal(d.r.Context(), id)
	if errors.Is(err, queue.ErrErased) {
		return fmt.Errorf("edit call %s: it is %s, and what it said is erased: %w", id, c.State, queue.ErrState)
	}
	if err != nil {
		return err
	}
	r := c.Request
	if set(&r.Path, ch.Path); ch.Path != nil {
		path, _, _ := strings.Cut(r.Path, "?")
		r.PathTemplate = mask.Template(path)
	}
	if ch.Header != nil { // a name in lower case would pass by those who look for it
		r.Header = http.Header{}
		for k, lines := range *ch.Header {
			k = http.CanonicalHeaderKey(k)
			r.Header[k] = append(r.Header[k], lines...)
		}
	}
	set(&r.Body, ch.Body)
	set(&r.Key, ch.Key)
	set(&r.Callback, ch.Callback)
	if err := d.fits(&c.Facts, &r); err != nil {
		return err
	}
	if err := d.Store.Edit(d.r.Context(), time.Now(), id, r); err != nil {
		return err
	}
	if r.Callback != "" && !c.State.Ended() && c.Callback == "" {
		d.t.watchAgain(d.r.Context(), id)
	}
	d.tellAudit("edit", slog.String("call_id", id))
	return d.show()
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

// fits tells whether an edited call could be sent.
func (d *desk) fits(f *queue.Facts, r *queue.Request) error {
	for k, lines := range r.Header {
		if !validField(k, lines) || hopByHop(k) || k == "Authorization" || k == "Cookie" || k == "Content-Length" || k == "Host" {
			return wrong("the header %.40q cannot be sent", k)
		}
	}
	if _, ok := readKey([]string{r.Key}, 255); r.Key != "" && !ok {
		return wrong("idempotency_key is 1 to 255 visible ASCII characters")
	}
	if !strings.HasPrefix(r.Path, "/") || strings.HasPrefix(r.Path, "//") {
		return wrong("path begins with one slash, below the endpoint's URL")
	}
	if r.Callback != "" {
		if _, err := d.Callbacks.allowed(r.Callback); err != nil {
			return wrong("callback: %v", err)
		}
	}
	if int64(len(r.Body)) > d.Body {
		return wrong("the body is larger than queue.max.body")
	}
	rt := d.t.routes[f.Endpoint]
	if rt == nil {
		return nil
	}
	path, query, _ := strings.Cut(r.Path, "?")
	if u, bad := rt.target(path, query); bad != "" {
		return wrong("path: %s", bad)
	} else if p := rt.Transport.Policy.WithDefaults(); !p.Permits(f.Method, u.Path) {
		return wrong("the allow list of the endpoint does not have this method and path")
	}
	return nil
}
