package classify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
)

// look is one look at an exchange, by however many rules: what was found out
// is kept, so that a body is read once.
type look struct {
	x        *Exchange
	tagNames map[string]bool

	typed   bool
	essence string
	of      kind

	decoded bool
	utf8    []byte // the body as UTF-8

	parsed bool
	doc    any
	all    bool // doc is the whole document
	isJSON bool

	scanned bool
	tags    []tag
}

// kind is the kind of the media type; essence is set with it.
func (l *look) kind() kind {
	if !l.typed {
		l.typed = true
		l.essence = essence(l.x.Header)
		l.of = kindOf(l.essence)
	}
	return l.of
}

// seen tells whether there are bytes to look at.
func (l *look) seen() bool { return l.x.Peeked && len(l.x.Body) > 0 }

func (l *look) text() []byte {
	if !l.decoded {
		l.decoded = true
		l.utf8 = l.x.Body
		if order := byteOrder(l.utf8[:min(2, len(l.utf8))]); order != nil {
			l.utf8, _ = io.ReadAll(utf8Text(bufio.NewReader(bytes.NewReader(l.x.Body))))
		}
		l.utf8 = bytes.TrimPrefix(l.utf8, []byte("\xef\xbb\xbf"))
	}
	return l.utf8
}

// is tells whether the body is in state s.
func (l *look) is(s BodyState) bool {
	switch s {
	case BodyEmpty:
		return empty(l.x)
	case BodyHTML:
		return l.seen() && likeHTML(l.text())
	case BodyMalformed:
		if !l.seen() || blank(l.x.Body) || l.x.Status == 206 {
			return false
		}
		d, known := defect(l.kind(), l.x.Body)
		return known && d != nil && (!d.Cut || whole(l.x))
	}
	return true
}

// likeHTML tells whether b begins with a document type or an element of HTML,
// behind comments and declarations.
func likeHTML(b []byte) bool {
	b = b[:min(len(b), sniff)]
	for {
		b = bytes.TrimLeft(b, " \t\r\n")
		switch {
		case bytes.HasPrefix(b, []byte("<!--")):
			_, b, _ = bytes.Cut(b, []byte("-->"))
		case bytes.HasPrefix(b, []byte("<?")):
			_, b, _ = bytes.Cut(b, []byte("?>"))
		default:
			b = bytes.ToLower(b[:min(len(b), 16)])
			return slices.ContainsFunc(htmlBegins, func(s string) bool { return bytes.HasPrefix(b, []byte(s)) })
		}
	}
}

var htmlBegins = []string{"<!doctype html", "<html", "<head>", "<title", "<body", "<script", "<meta", "<center", "<h1"}

// elements are the elements of the body that somebody looks for.
func (l *look) elements() []tag {
	if !l.scanned {
		l.scanned = true
		l.tags = tagsIn(l.x.Body, l.tagNames)
	}
	return l.tags
}

// hasTag tells whether an element that m asks for begins in the body.
func (l *look) hasTag(m *XMLMatch) bool {
	for i := range l.elements() {
		t := &l.tags[i]
		if slices.Contains(m.Names, t.name) && t.has(m) {
			return true
		}
	}
	return false
}

// xmlTexts are the values that v points at.
func (l *look) xmlTexts(v *XMLValue) []string {
	var all []string
	for i := range l.elements() {
		switch t := &l.tags[i]; {
		case t.name != v.Name:
		case v.Attr == "":
			all = append(all, t.text())
		default:
			for _, a := range t.attrs {
				if a.name == v.Attr {
					all = append(all, a.value)
				}
			}
		}
	}
	return all
}

func (t *tag) has(m *XMLMatch) bool {
	if m.Attr == "" {
		return m.Value == nil || m.Value.MatchString(t.text())
	}
	return slices.ContainsFunc(t.attrs, func(a attr) bool {
		return a.name == m.Attr && (m.Value == nil || m.Value.MatchString(a.value))
	})
}

// hasJSON tells whether m holds for the document.
func (l *look) hasJSON(m *JSONMatch) bool {
	doc, all, ok := l.document()
	if !ok {
		return false
	}
	found := m.Path.Select(doc)
	switch {
	case m.Absent:
		return all && len(found) == 0
	case m.Value == nil:
		return len(found) > 0
	}
	return slices.ContainsFunc(found, func(v any) bool { return m.Value.MatchString(written(v)) })
}

// document decodes the body once. all tells that doc is the whole of it.
func (l *look) document() (doc any, all, ok bool) {
	if !l.parsed {
		l.parsed = true
		p := partial{dec: json.NewDecoder(bytes.NewReader(l.text())), end: int64(len(l.text())), whole: whole(l.x)}
		p.dec.UseNumber()
		l.doc, l.isJSON = p.value(0)
		l.all = l.isJSON && !p.cut
	}
	return l.doc, l.all, l.isJSON
}

// deepest bounds how deep a document is decoded for rules.
const deepest = 500

// partial decodes as much of a document as there is.
type partial struct {
	dec   *json.Decoder
	end   int64
	whole bool // nothing follows end
	cut   bool // something was left out
}

// value decodes the next value; ok tells that there was one, if only in part.
func (p *partial) value(depth int) (v any, ok bool) {
	t, err := p.dec.Token()
	if err != nil || depth == deepest {
		p.cut = true
		return nil, false
	}
	switch t := t.(type) {
	case json.Delim:
		switch t {
		case '{':
			return p.object(depth + 1), true
		case '[':
			return p.array(depth + 1), true
		}
		p.cut = true
		return nil, false
	case json.Number:
		if !p.whole && p.dec.InputOffset() == p.end { // more digits may follow
			p.cut = true
			return nil, false
		}
	}
	return t, true
}

func (p *partial) object(depth int) map[string]any {
	m := map[string]any{}
	for p.more() {
		name, ok := p.value(depth)
		if !ok {
			break
		}
		key, _ := name.(string)
		v, ok := p.value(depth)
		if !ok {
			break
		}
		m[key] = v
	}
	return m
}

func (p *partial) array(depth int) []any {
	a := []any{}
	for p.more() {
		v, ok := p.value(depth)
		if !ok {
			break
		}
		a = append(a, v)
	}
	return a
}

// more tells whether the container goes on; at its end it takes the end.
func (p *partial) more() bool {
	if p.cut {
		return false
	}
	if p.dec.More() {
		return true
	}
	if _, err := p.dec.Token(); err != nil {
		p.cut = true
	}
	return false
}

// written is a JSON value as text: strings bare, the rest as in JSON.
func written(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return "null"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "" // a Selector made something of its own
	}
	return string(b)
}
