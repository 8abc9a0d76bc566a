package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heedproject/heed/classify"
)

// Pasted is an exchange that a person wrote down or copied: a request and the
// answer to it, or an answer alone, as HTTP text. Line ends may be bare, and
// what a tool has decoded may still be announced as coded.
type Pasted struct {
	Exchange
	// Notes say what was taken otherwise than it is written.
	Notes []string
}

// MaxPaste is the most that is read of a text, and of a body when its coding
// is undone.
const MaxPaste = 4 << 20

var (
	requestLine = regexp.MustCompile(`^([A-Z][A-Z-]*) (\S+)(?: HTTP/[0-9.]+)?$`)
	statusLine  = regexp.MustCompile(`^HTTP/[0-9.]+ ([1-9][0-9][0-9])(?: .*)?$`)
	answerBegin = regexp.MustCompile(`(?m)^HTTP/[0-9.]+ [1-9][0-9][0-9](?: [^\n]*)?\r?$`)
)

// ParseHTTP reads HTTP text. Without a request the answer is one to GET /.
func ParseHTTP(text []byte) (*Pasted, error) {
	if len(text) > MaxPaste {
		return nil, errors.New("the text is longer than 4 MiB")
	}
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\ufeff")), "\r\n")
	if len(text) == 0 {
		return nil, errors.New("there is nothing; give a request and the answer to it, or an answer alone, as HTTP text (curl -i prints one)")
	}
	x := &Pasted{}
	x.Request = Request{Method: http.MethodGet, Path: "/"}
	x.Response.Cut = -1
	at := answerBegin.FindIndex(text)
	if at == nil {
		return nil, errors.New("there is no answer: a line such as HTTP/1.1 429 Too Many Requests begins one")
	}
	if at[0] > 0 {
		if err := x.request(text[:at[0]]); err != nil {
			return nil, err
		}
	}
	return x, x.response(text[at[0]:])
}

// head cuts the first line and the header off text.
func head(text []byte) (first string, header http.Header, body []byte, err error) {
	line, rest := cutLine(text)
	header = http.Header{}
	for n := 2; ; n++ {
		var l string
		if len(rest) == 0 {
			return line, header, nil, nil
		}
		if l, rest = cutLine(rest); l == "" {
			return line, header, rest, nil
		}
		name, value, ok := strings.Cut(l, ":")
		if !ok || strings.TrimSpace(name) == "" || strings.ContainsAny(name, " \t") {
			return "", nil, nil, fmt.Errorf("line %d behind %.40q is no header; write Name: value, and an empty line before the body", n, line)
		}
		header.Add(textproto.TrimString(name), textproto.TrimString(value))
	}
}

func cutLine(text []byte) (line string, rest []byte) {
	before, after, _ := bytes.Cut(text, []byte("\n"))
	return strings.TrimRight(string(before), "\r \t"), after
}

func (x *Pasted) request(text []byte) error {
	line, header, body, err := head(text)
	if err != nil {
		return fmt.Errorf("the request: %w", err)
	}
	m := requestLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("the request begins with %.40q; write it as in GET /v1/items HTTP/1.1", line)
	}
	x.Request = Request{Method: m[1], Path: pathOf(m[2]), Header: header, Body: string(bytes.TrimSpace(body))}
	return nil
}

// pathOf is the target of a request without scheme and host.
func pathOf(target string) string {
	if _, rest, ok := strings.Cut(target, "://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return "/"
	}
	return target
}

func (x *Pasted) response(text []byte) error {
	line, header, body, err := head(text)
	if err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	m := statusLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("the answer begins with %.40q; write it as in HTTP/1.1 429 Too Many Requests", line)
	}
	status, _ := strconv.Atoi(m[1]) // three digits
	if at := later(status, header, body); at >= 0 {
		if status >= 200 {
			x.note("an answer with status %d comes before this one: it is skipped", status)
		}
		return x.response(body[at:])
	}
	x.Response = Response{Status: status, Header: header, Body: body, Cut: -1}
	x.unchunk()
	x.measure()
	x.decode()
	return nil
}

// later is where behind the head of an answer the next one begins; -1: nowhere.
// 100 Continue and the like come before the answer; a client that follows
// redirects (curl -L) shows each one, and leaves the bodies out of what it does
// not deliver: a challenge, or the word of a proxy that the way is open. A body
// may be HTTP text as well, but then it has a media type.
func later(status int, header http.Header, body []byte) int {
	at := answerBegin.FindIndex(body)
	switch {
	case at == nil:
		return -1
	case status < 200, status >= 300 && status < 400, at[0] == 0 && (status >= 400 || header.Get("Content-Type") == ""):
		return at[0]
	}
	return -1
}

// unchunk takes chunks apart, unless a tool has done so.
func (x *Pasted) unchunk() {
	r := &x.Response
	if !strings.EqualFold(r.Header.Get("Transfer-Encoding"), "chunked") {
		return
	}
	r.Header.Del("Content-Length")
	if whole, err := io.ReadAll(io.LimitReader(httputil.NewChunkedReader(bytes.NewReader(r.Body)), MaxPaste)); err == nil && len(whole) > 0 {
		r.Body = whole
	}
}

// measure compares the body with what its header says. An end of line behind
// it comes from an editor.
func (x *Pasted) measure() {
	r := &x.Response
	length, err := strconv.Atoi(r.Header.Get("Content-Length"))
	if err != nil || length < 0 {
		r.Body = bytes.TrimSuffix(bytes.TrimSuffix(r.Body, []byte("\n")), []byte("\r"))
		return
	}
	switch got := len(r.Body); {
	case got > length && len(bytes.TrimSpace(r.Body[length:])) == 0:
		r.Body = r.Body[:length]
	case got > length:
		x.note("the body has %d bytes and Content-Length says %d: taken as it is", got, length)
	case got < length && x.Request.Method != http.MethodHead && status(r.Status):
		r.Body = append(r.Body[:got:got], make([]byte, min(length-got, MaxPaste))...)
		r.Cut = got
		x.note("the body has %d bytes and Content-Length says %d: taken as cut short", got, length)
	}
}

// status tells whether an answer has a body by its nature.
func status(code int) bool { return code >= 200 && code != 204 && code != 304 }

// decode takes a compressed body apart, unless a tool has done so.
func (x *Pasted) decode() {
	r := &x.Response
	coding := classify.Coding(r.Header)
	body := r.Body
	if r.Cut >= 0 {
		body = body[:r.Cut]
	}
	switch {
	case coding == "" || len(body) == 0:
	case legible(body):
		r.Header.Del("Content-Encoding")
		x.note("the body is not compressed: Content-Encoding is left out")
	case coding == "gzip" || coding == "x-gzip":
		if z, known := classify.Decode(r.Header, bytes.NewReader(body)); known {
			if plain, err := io.ReadAll(io.LimitReader(z, MaxPaste)); err == nil {
				r.Body, r.Gzip = plain, true
			}
		}
	case coding != "deflate":
		x.note("the body is coded as %.20q, which no rule can look into; a call through heed asks for gzip or deflate instead", coding)
	}
}

// legible tells whether body is text, which nothing compressed is.
func legible(body []byte) bool {
	return utf8.Valid(body) && !bytes.ContainsFunc(body, func(c rune) bool {
		return unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t'
	})
}

func (x *Pasted) note(format string, args ...any) {
	x.Notes = append(x.Notes, fmt.Sprintf(format, args...))
}
