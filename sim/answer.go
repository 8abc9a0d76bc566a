package sim

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answer is what an operation says, before a fault spoils it.
type Answer struct {
	Status int
	// Fields are header fields, name and value; a later one replaces an earlier.
	// Without a Content-Type it is application/json; an empty one is left out. A
	// Location that begins with a slash is a path of the pack: the caller is sent
	// to it within its case. All other links are made by Exchange.URL.
	Fields [][2]string
	// More are further lines of header fields that may come in several.
	More [][2]string
	Body []byte
	// Pace writes the body piece by piece, as streams are. The zero value: at once.
	Pace Pace
}

// Pace is how a body trickles.
type Pace struct {
	// Split ends a piece after each of these texts, such as "\n\n" of server-sent
	// events. Empty: a piece is Bytes long.
	Split string
	Bytes int
	// Every is the rest before each piece but the first.
	Every time.Duration
}

// Set adds a header field.
func (an *Answer) Set(name, value string) {
	if an.Fields == nil {
		an.Fields = make([][2]string, 0, 4)
	}
	an.Fields = append(an.Fields, [2]string{name, value})
}

// With returns the answer with one more header field.
func (an Answer) With(name, value string) Answer {
	an.Fields = append(an.Fields[:len(an.Fields):len(an.Fields)], [2]string{name, value})
	return an
}

// JSON answers with v as JSON.
func JSON(status int, v any) Answer {
	body, err := json.Marshal(v)
	if err != nil {
		return problem(http.StatusInternalServerError, "the answer cannot be written: "+err.Error())
	}
	return Answer{Status: status, Body: append(body, '\n')}
}

// Text answers with a body of the given media type.
func Text(status int, media, body string) Answer {
	return Answer{Status: status, Fields: [][2]string{{"Content-Type", media}}, Body: []byte(body)}
}

// problem answers with an error as RFC 9457 has it.
func problem(status int, detail string) Answer {
	return JSON(status, struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail}).With("Content-Type", "application/problem+json")
}

// Plain is how a provider without habits of its own writes a refusal: RFC
// 9457, with Retry-After where a wait is known.
func Plain(x *Exchange, r Refusal) Answer {
	status := r.StatusOr(r.Kind.DefaultStatus())
	an := problem(status, r.Detail)
	if r.Kind == Unknown || r.Kind == WrongMethod {
		an = JSON(status, struct {
			Title      string   `json:"title"`
			Status     int      `json:"status"`
			Detail     string   `json:"detail"`
			Operations []string `json:"operations"`
			Simulator  []string `json:"simulator"`
		}{http.StatusText(status), status, r.Detail, r.Operations, adminNames}).With("Content-Type", "application/problem+json")
	}
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	RetryAfter(x, &an, r)
	return an
}

// RetryAfter adds the wait of r, if one is known, in whole seconds or as a
// date, rounded up: a second is the finest that the header can say (RFC 9110
// §10.2.3).
func RetryAfter(x *Exchange, an *Answer, r Refusal) {
	switch {
	case r.Wait <= 0 && r.Now:
		an.Set("Retry-After", "0")
	case r.Wait <= 0:
	case r.Date:
		an.Set("Date", x.begun.UTC().Format(http.TimeFormat))
		an.Set("Retry-After", x.begun.Add(r.Wait+time.Second-1).UTC().Format(http.TimeFormat))
	default:
		an.Set("Retry-After", WholeSeconds(r.Wait))
	}
}

// tellQuota tells of the limit of which the least is left, in the plain form
// or in that of the dialect.
func (x *Exchange) tellQuota(h http.Header) {
	if t := &x.least; t.Limit != nil {
		// In the form that net/http gives names, which saves it the work.
		all := &[3]string{strconv.Itoa(int(t.Capacity)), strconv.Itoa(int(t.Remaining)), WholeSeconds(t.Reset)}
		h["X-Ratelimit-Limit"], h["X-Ratelimit-Remaining"], h["X-Ratelimit-Reset"] = all[0:1:1], all[1:2:2], all[2:3:3]
	}
	for _, f := range x.quota {
		h.Set(f[0], f[1])
	}
}

// WholeSeconds rounds up, so that nobody is told to come early.
func WholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

var typeJSON = []string{"application/json"}

// shortBody is up to where net/http adds the Content-Length by itself.
const shortBody = 2000

// write sends the answer.
func (an *Answer) write(x *Exchange) {
	h := x.w.Header()
	h["Content-Type"] = typeJSON
	bare := an.Status == http.StatusNoContent || an.Status == http.StatusNotModified
	if !bare && an.Pace.Split == "" && (len(an.Body) > shortBody || an.Pace != (Pace{}) || x.Request.Method == http.MethodHead) {
		h["Content-Length"] = []string{strconv.Itoa(len(an.Body))}
	}
	if !x.own.clock.plain.Load() {
		h.Set("Date", x.own.clock.now().UTC().Format(http.TimeFormat))
	}
	for _, f := range an.Fields {
		if f[0] == "Location" {
			f[1] = x.located(f[1])
		}
		h.Set(f[0], f[1])
	}
	x.tellQuota(h)
	for _, f := range an.More {
		h.Add(f[0], f[1])
	}
	if kind := h["Content-Type"]; len(kind) == 1 && kind[0] == "" {
		h["Content-Type"] = nil // or net/http would guess one
	}
	x.w.WriteHeader(an.Status)
	switch {
	case bare:
	case an.Pace == Pace{}:
		_, _ = x.w.Write(an.Body) // a caller that left is no error of ours
	default:
		an.trickle(x)
	}
}

func (an *Answer) trickle(x *Exchange) {
	rest := an.Body
	for first := true; len(rest) > 0; first = false {
		if !first && !x.rest(an.Pace.Every) {
			return
		}
		n := min(max(an.Pace.Bytes, 1), len(rest))
		if s := an.Pace.Split; s != "" {
			n = len(rest)
			if i := strings.Index(string(rest), s); i >= 0 {
				n = i + len(s)
			}
		}
		if _, err := x.w.Write(rest[:n]); err != nil || x.flush() != nil {
			return
		}
		rest = rest[n:]
	}
}
