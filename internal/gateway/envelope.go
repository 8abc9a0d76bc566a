package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// envelope takes a call in that comes as a document. It goes the way of a
// request with Prefer: respond-async that says the same.
func (x *exchange) envelope() *refusal {
	prefer := x.r.Header["Prefer"]
	x.route = &route{Endpoint: &Endpoint{}, idle: policy.Policy{}.WithDefaults().Timeouts.Idle}
	body, no := x.envelopeBody()
	x.route = nil
	if no != nil {
		return no
	}
	e, err := queue.ParseEnvelope(body)
	if err != nil {
		return no2(badEnvelope, err)
	}
	r, err := requestOf(&e, x.r)
	if err != nil {
		return no2(badEnvelope, err)
	}
	if r.Header["Prefer"] = prefer; prefer == nil {
		r.Header["Prefer"] = []string{"respond-async"}
	}
	x.r, x.body = r, nil
	u, no := x.address()
	if no != nil || u == nil {
		return no
	}
	h, asked := x.handover()
	if !asked || h.kept {
		h = handover{wait: x.wished(prefer)}
	}
	if !x.mayQueue() {
		return no2(outOfScope, errors.New("its calls are not answered later"))
	}
	x.asked.Budget = 0
	c, no := x.queued(u, e.Body)
	if no != nil {
		return no
	}
	c.ID = e.ID
	if !e.Expires.IsZero() {
		c.Expires = e.Expires
		x.route.settleTerms(&c, 0)
	}
	receipt, no := x.table.take(x.r.Context(), c)
	if no != nil {
		return no
	}
	return x.received(receipt, &c, h)
}

// wished is how long the sender of an envelope waits for an answer first.
func (x *exchange) wished(prefer []string) time.Duration {
	d, _ := preferWait(prefer)
	return d
}

func no2(k kind, err error) *refusal {
	text := err.Error()
	return no(k, strings.ToUpper(text[:1])+text[1:])
}

// envelopeBody reads the document: base64 makes a body a third longer.
func (x *exchange) envelopeBody() ([]byte, *refusal) {
	limit := x.table.Later.Body/3*4 + 256<<10
	x.body = newUpload(x)
	body, err := io.ReadAll(io.LimitReader(x.body, limit+1))
	switch {
	case err != nil:
		return nil, no(badBody, "")
	case int64(len(body)) > limit:
		return nil, no(tooLargeToKeep, "")
	}
	return body, nil
}

// maxID bounds the id that an envelope brings.
const maxID = 64

// requestOf makes the request that the envelope describes.
func requestOf(e *queue.Envelope, from *http.Request) (*http.Request, error) {
	if e.ID != "" && !plainID(e.ID) {
		return nil, fmt.Errorf("id has up to %d letters, digits, - and _", maxID)
	}
	if !sendable(e.Method) {
		return nil, errors.New("method is not one that can be sent")
	}
	if e.TraceParent != "" && !traceParent(e.TraceParent) {
		return nil, errors.New("traceparent is not one (W3C Trace Context)")
	}
	u, err := url.Parse("/" + e.Endpoint + e.Path)
	if err != nil || u.Host != "" || u.Fragment != "" || strings.Contains(e.Endpoint, "/") {
		return nil, errors.New("endpoint is a name of heed.yaml, and path a path with a query if need be")
	}
	r := from.WithContext(from.Context())
	r.Method, r.URL, r.Header = e.Method, u, http.Header{}
	for k, lines := range e.Header {
		if k = http.CanonicalHeaderKey(k); !validField(k, lines) {
			return nil, fmt.Errorf("header %.40q cannot be sent", k)
		}
		r.Header[k] = append(r.Header[k], lines...)
	}
	for k, v := range map[string]string{
		"Idempotency-Key": e.Key, "Heed-Tenant": e.Tenant, "Heed-Correlation-Id": e.CorrelationID,
		"Traceparent": e.TraceParent, "Heed-Callback": e.Callback,
	} {
		if v != "" {
			r.Header[k] = []string{v}
		}
	}
	if e.Priority != nil {
		r.Header["Heed-Priority"] = []string{strconv.Itoa(*e.Priority)}
	}
	if !e.NotBefore.IsZero() {
		r.Header["Heed-Not-Before"] = []string{e.NotBefore.Format(time.RFC3339Nano)}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(e.Body)), int64(len(e.Body))
	return r, nil
}

// sendable tells whether a method can be sent through a gateway.
func sendable(method string) bool {
	return len(method) <= 32 && validField(method, nil) && method != http.MethodConnect && method != http.MethodTrace
}

// traceParent tells whether v is a traceparent: 55 characters of hex and
// dashes, whatever the version (W3C Trace Context §3.2).
func traceParent(v string) bool {
	for i, c := range []byte(v) {
		dash := i == 2 || i == 35 || i == 52
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return len(v) == 55
}

// plainID tells whether an envelope may name its call so. What the queue makes
// by itself has a ~ in its id.
func plainID(id string) bool {
	if len(id) > maxID {
		return false
	}
	for _, c := range []byte(id) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// validField tells whether a field can be sent: its name is a token, and
// nothing in its values ends a line.
func validField(name string, lines []string) bool {
	for _, c := range []byte(name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	for _, v := range lines {
		for _, c := range []byte(v) {
			if c < ' ' && c != '\t' || c == 0x7f {
				return false
			}
		}
	}
	return name != ""
}
