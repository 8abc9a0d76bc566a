package provider

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
)

// Exchange is a request, the answer to it or how it failed, and what that
// meant: the way a profile shows that it reads its provider rightly.
type Exchange struct {
	Name     string
	Request  Request
	Response Response
	Failure  classify.Failure // of an attempt without an answer; Response is zero then
	Expect   Expect
	// At is when it takes place, if the answer has no Date. Zero: at noon of
	// 2026-11-30 (UTC).
	At time.Time
	// File and Line are where it is written.
	File string
	Line int
}

// Request is what was asked.
type Request struct {
	Method string
	Path   string // with query, if that matters
	Header http.Header
	Body   string
}

// Response is an answer as it goes over the wire.
type Response struct {
	Status int
	Header http.Header
	// Body is without content coding.
	Body []byte
	// Gzip sends it compressed.
	Gzip bool
	// Cut ends the connection after so many bytes of the body. -1: it is whole.
	Cut int
}

// Wire is the body as it is sent, and its length before it is cut.
func (r *Response) Wire() (body []byte, length int) {
	body = r.Body
	if r.Gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body) // a buffer takes everything
		_ = z.Close()
		body = b.Bytes()
	}
	length = len(body)
	if r.Cut >= 0 {
		body = body[:min(r.Cut, length)]
	}
	return body, length
}

// Expect is what an exchange means.
type Expect struct {
	classify.Verdict // Wait is what the answer makes a caller wait, by rule or header
	// Source is what gave the wait: the name of a header or the id of a rule.
	Source string
	// Remaining is the quota the answer tells of. nil: it is not asked.
	Remaining *int64
}

// Exchanges returns the golden exchanges of the built-in profile called name.
func Exchanges(name string) ([]Exchange, error) {
	if !slices.Contains(names, name) {
		return nil, unknown(name)
	}
	file := name + ".yaml"
	data, err := golden.Files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("provider: profile %s has no golden exchanges: %w", name, err)
	}
	all, problems := ReadExchanges(path.Join("golden", file), data)
	return all, failed(problems)
}

var exchangeSort = sheet.Sort{Least: "write at least exchanges with one entry", First: "begin with the key exchanges"}

// ReadExchanges reads a document with a list of exchanges.
func ReadExchanges(name string, data []byte) ([]Exchange, []sheet.Problem) {
	node, problems := exchangeSort.ReadYAML(name, data)
	if len(problems) > 0 {
		return nil, problems
	}
	var all []Exchange
	r := sheet.Reader{File: name}
	sheet.Block{Fields: []sheet.Field{exchangesField(&all)}}.Read(&r, node, "")
	return all, r.Problems
}

func exchangesField(all *[]Exchange) sheet.Field {
	return sheet.Field{Name: "exchanges", Doc: "Golden exchanges: what an answer of the provider must be taken for.",
		Value: uniqueNames{all, sheet.List(all, func(x *Exchange) sheet.Value { return x.table() })}}
}

// uniqueNames is a list of exchanges that can be told apart.
type uniqueNames struct {
	all *[]Exchange
	sheet.Value
}

// Read implements sheet.Value.
func (u uniqueNames) Read(r *sheet.Reader, n *sheet.Node, path string) {
	u.Value.Read(r, n, path)
	seen := map[string]bool{}
	for i := range *u.all {
		x := &(*u.all)[i]
		x.File, x.Line = r.File, n.Items[i].Line
		if x.Name != "" && seen[x.Name] {
			r.Problem(n.Items[i].Get("name"), fmt.Sprintf("%s[%d].name", path, i), "give each exchange a name of its own", "%q names two exchanges", x.Name)
		}
		seen[x.Name] = true
	}
}

func (x *Exchange) table() sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "name", Doc: "What the exchange shows, in words; unique in the file.", Value: sheet.Text(&x.Name), Required: true},
		{Name: "request", Doc: "What was asked.", Required: true, Value: x.Request.table()},
		{Name: "response", Doc: "The answer.", Value: x.Response.table()},
		{Name: "failure", Doc: "How the attempt failed without an answer.", Value: sheet.If(x.Failure != 0, failure(&x.Failure))},
		{Name: "expect", Doc: "What it meant.", Required: true, Value: x.Expect.table()},
	}, Check: func(m sheet.Read) {
		if m.Has("response") == m.Has("failure") {
			m.Bad("response", "give either response or failure", "an attempt ends in an answer or in a failure")
		}
	}}
}

func (q *Request) table() sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "method", Doc: "The method.", Value: method(&q.Method), Required: true},
		{Name: "path", Doc: "The path, with query if that matters.", Value: sheet.Text(&q.Path), Required: true},
		{Name: "header", Doc: "Headers of the request.", Value: headerLines(&q.Header)},
		{Name: "body", Doc: "The body of the request.", Value: sheet.Text(&q.Body)},
	}}
}

func (r *Response) table() sheet.Block {
	r.Cut = -1
	var raw string
	return sheet.Block{Fields: []sheet.Field{
		{Name: "status", Doc: "The status code.", Value: sheet.Int(&r.Status, 100), Required: true},
		{Name: "header", Doc: "Headers: a text, or a list of texts where the header comes in several lines.", Value: headerLines(&r.Header)},
		{Name: "body", Doc: "The body, as text.", Value: bodyText(&r.Body)},
		{Name: "base64", Doc: "The body, where it is no text.", Value: bodyBase64(&r.Body, &raw)},
		{Name: "encoding", Doc: "gzip sends the body compressed, with its Content-Encoding.", Value: sheet.Switch(&r.Gzip, "identity", "gzip")},
		{Name: "cut", Doc: "The connection ends after so many bytes of the body.", Value: sheet.If(r.Cut >= 0, sheet.Int(&r.Cut, 0))},
	}, Check: func(m sheet.Read) {
		if m.Has("body") && m.Has("base64") {
			m.Bad("base64", "give either body or base64", "there are two bodies")
		}
		if r.Gzip {
			r.Header = maps.Clone(r.Header)
			if r.Header == nil {
				r.Header = http.Header{}
			}
			r.Header.Set("Content-Encoding", "gzip")
		}
	}}
}

func bodyText(b *[]byte) sheet.Value {
	return sheet.Parsed{
		Parse:   func(text string) error { *b = []byte(text); return nil },
		Show:    func() (string, bool) { return string(*b), len(*b) > 0 },
		Remedy:  "write text",
		Numeric: true,
	}
}

func bodyBase64(b *[]byte, written *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			raw, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return errors.New("this is not base64")
			}
			*b, *written = raw, text
			return nil
		},
		Show:   func() (string, bool) { return *written, *written != "" },
		Remedy: "write the bytes in base64, with padding",
	}
}

func (e *Expect) table() sheet.Block {
	v := &e.Verdict
	var remaining int64
	return sheet.Block{Fields: []sheet.Field{
		{Name: "class", Doc: "What the answer meant.", Required: true, Value: classes(&v.Class)},
		{Name: "executed", Doc: "Whether the server did what was asked.", Required: true, Value: executed(&v.Executed)},
		{Name: "retry", Doc: "Whether and how the request may be repeated.", Required: true, Value: retries(&v.Retry)},
		{Name: "scope", Doc: "Whom it concerns.", Required: true, Value: scopes(&v.Scope)},
		{Name: "wait", Doc: "What the answer makes a caller wait, by a rule or by headers, against its own Date. Nothing: no wait is told.",
			Value: sheet.If(v.Wait != 0, sheet.Duration(&v.Wait))},
		{Name: "source", Doc: "What gave the wait: the name of the header or the id of the rule.", Value: sheet.Text(&e.Source)},
		{Name: "rule", Doc: "The id of the rule that decided. Nothing: none of the profile's.", Value: sheet.Text(&v.Rule)},
		{Name: "remaining", Doc: "The quota that the headers tell of.", Value: sheet.If(e.Remaining != nil, sheet.Int(&remaining, 0))},
	}, Check: func(m sheet.Read) {
		if m.Has("remaining") {
			e.Remaining = &remaining
		}
		if m.Has("source") && v.Wait == 0 {
			m.Bad("source", "add wait, or leave source out", "there is no wait that could have a source")
		}
	}}
}

// headerLines are headers with one line or several each.
func headerLines(h *http.Header) sheet.Value { return lines{h} }

type lines struct{ p *http.Header }

func (l lines) table(m *map[string][]string) sheet.Value {
	return sheet.Map[[]string]{P: m, Pattern: headerName.String(), Name: HeaderName, One: oneOrMore}
}

// Read implements sheet.Value.
func (l lines) Read(r *sheet.Reader, n *sheet.Node, path string) {
	var m map[string][]string
	l.table(&m).Read(r, n, path)
	*l.p = http.Header{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key := http.CanonicalHeaderKey(name)
		(*l.p)[key] = append((*l.p)[key], m[name]...)
	}
}

// Write implements sheet.Value.
func (l lines) Write() *sheet.Node {
	m := map[string][]string(*l.p)
	return l.table(&m).Write()
}

// Schema implements sheet.Value.
func (l lines) Schema() map[string]any { return l.table(new(map[string][]string)).Schema() }

// oneOrMore is a text or a list of texts.
func oneOrMore(p *[]string) sheet.Value { return several{p} }

type several struct{ p *[]string }

// Read implements sheet.Value.
func (s several) Read(r *sheet.Reader, n *sheet.Node, path string) {
	if n.Kind == sheet.Sequence {
		sheet.Texts(s.p).Read(r, n, path)
		return
	}
	var one string
	sheet.Text(&one).Read(r, n, path)
	*s.p = []string{one}
}

// Write implements sheet.Value.
func (s several) Write() *sheet.Node {
	if len(*s.p) == 1 {
		return sheet.Text(&(*s.p)[0]).Write()
	}
	return sheet.Texts(s.p).Write()
}

// Schema implements sheet.Value.
func (s several) Schema() map[string]any {
	return map[string]any{"oneOf": []any{sheet.Text(new(string)).Schema(), sheet.Texts(new([]string)).Schema()}}
}

// noon is when an exchange takes place whose answer has no Date.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
