package drift

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"mime"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Shape is what is left of a document when its values are taken away.
type Shape struct {
	// Kind is object, list, string, date-time, date, uuid, uri, email, digits,
	// integer, number, boolean or null; of whole bodies also element, form,
	// events, html, text, binary, empty or long. Where a list has several kinds
	// of items they stand in one, parted by |.
	Kind string `json:"is"`
	// Fields of an object, element or form.
	Fields map[string]*Shape `json:"fields,omitempty"`
	// Of is what the items of a list have in common; nil of an empty list.
	Of *Shape `json:"of,omitempty"`
	// Sometimes fields were not in every item of a list.
	Sometimes bool `json:"sometimes,omitempty"`
	// Ref is where an earlier answer had the same value: its number and a JSON
	// pointer, such as 3:/data/0/id. Of requests only.
	Ref string `json:"ref,omitempty"`
	// Value is one that the recorder was told to keep. Of requests only.
	Value string `json:"value,omitempty"`
}

// maxDepth bounds how deep documents are looked into.
const maxDepth = 64

// ShapeOf returns the shape of a body with this Content-Type.
func ShapeOf(contentType string, body []byte) *Shape {
	media, _, _ := mime.ParseMediaType(contentType)
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return &Shape{Kind: "empty"}
	case media == "text/event-stream":
		return shapeOfEvents(string(body))
	case media == "application/x-www-form-urlencoded" && bytes.ContainsRune(trimmed, '='): // else it is what a client calls so by default
		return shapeOfForm(string(body))
	case strings.Contains(media, "html"):
		return &Shape{Kind: "html"}
	}
	if v, err := parseJSON(trimmed); err == nil {
		return shapeOf(v, 0)
	}
	if trimmed[0] == '<' {
		if s, err := shapeOfXML(trimmed); err == nil {
			return s
		}
	}
	if utf8.Valid(body) {
		return &Shape{Kind: "text"}
	}
	return &Shape{Kind: "binary"}
}

func parseJSON(body []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the document")
	}
	return v, nil
}

func shapeOf(v any, depth int) *Shape {
	if depth > maxDepth {
		return &Shape{Kind: "long"}
	}
	switch v := v.(type) {
	case map[string]any:
		s := &Shape{Kind: "object", Fields: map[string]*Shape{}}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			of := shapeOf(v[name], depth+1)
			if of.Kind == "object" && isLoose(name) {
				of = of.loose()
			}
			s.add(name, of)
		}
		return s
	case []any:
		s := &Shape{Kind: "list"}
		for _, item := range v {
			s.Of = merge(s.Of, shapeOf(item, depth+1))
		}
		return s
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return &Shape{Kind: "number"}
		}
		return &Shape{Kind: "integer"}
	case string:
		return &Shape{Kind: formatOf(v)}
	case bool:
		return &Shape{Kind: "boolean"}
	}
	return &Shape{Kind: "null"}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// isName tells whether a schema would name a field so: letters and a few signs,
// digits at the end only, brackets as in forms. All other keys are data, such
// as ids.
func isName(key string) bool {
	for strings.HasSuffix(key, "]") {
		i := strings.LastIndexByte(key, '[')
		if i < 0 || strings.Trim(key[i+1:len(key)-1], letters+"_") != "" {
			return false
		}
		key = key[:i]
	}
	stem := strings.TrimRight(key, "0123456789")
	return stem != "" && len(stem) <= 49 && len(key)-len(stem) <= 6 &&
		strings.ContainsRune(letters+"@#$_", rune(stem[0])) && strings.Trim(stem[1:], letters+"_$.:-") == ""
}

// named is key, or * for one that is data.
func named(key string) string {
	whole, _, within := strings.Cut(key, "[")
	switch {
	case !isName(key):
		return "*"
	case within && isLoose(whole):
		return whole + "[*]"
	}
	return key
}

// isLoose tells whether the keys of what the field holds are the caller's own
// words, in any API: they are data, however much they look like names.
func isLoose(field string) bool {
	switch field {
	case "metadata", "labels", "annotations":
		return true
	}
	return false
}

// loose is s with all its fields together under *.
func (s *Shape) loose() *Shape {
	same := *s
	same.Fields = map[string]*Shape{}
	for _, key := range slices.Sorted(maps.Keys(s.Fields)) {
		same.Fields["*"] = merge(same.Fields["*"], s.Fields[key])
	}
	return &same
}

// add puts a field in. Keys that are data stand together under *.
func (s *Shape) add(key string, of *Shape) {
	name := named(key)
	s.Fields[name] = merge(s.Fields[name], of)
}

// element returns the child element with this name, new or not.
func (s *Shape) element(local string) *Shape {
	name := named(local)
	if s.Fields[name] == nil {
		s.Fields[name] = &Shape{Kind: "element", Fields: map[string]*Shape{}}
	}
	return s.Fields[name]
}

// without is s with the fields whose names are data together under *.
func (s *Shape) without(data map[string]bool) *Shape {
	if s == nil || len(data) == 0 {
		return s
	}
	same := *s
	same.Of = s.Of.without(data)
	if s.Fields != nil {
		same.Fields = make(map[string]*Shape, len(s.Fields))
		for _, key := range slices.Sorted(maps.Keys(s.Fields)) {
			of := s.Fields[key].without(data)
			if data[strings.TrimPrefix(key, "@")] {
				same.Fields["*"] = merge(same.Fields["*"], of)
			} else {
				same.Fields[key] = merge(same.Fields[key], of)
			}
		}
	}
	return &same
}

// isUUID tells whether text is one, in the form with hyphens.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (text[i] == '-') || !hyphen && !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			return false
		}
	}
	return true
}

// formatOf tells what a text looks like.
func formatOf(text string) string {
	switch {
	case text != "" && strings.Trim(text, "0123456789") == "":
		return "digits"
	case isUUID(text):
		return "uuid"
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.999999999-0700", time.RFC1123} {
		if _, err := time.Parse(layout, text); err == nil {
			return "date-time"
		}
	}
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return "date"
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return "uri"
	}
	if a, err := mail.ParseAddress(text); err == nil && a.Address == text {
		return "email"
	}
	return "string"
}

// merge is the shape of items of both shapes.
func merge(a, b *Shape) *Shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	kinds := append(strings.Split(a.Kind, "|"), strings.Split(b.Kind, "|")...)
	slices.Sort(kinds)
	m := &Shape{Kind: strings.Join(slices.Compact(kinds), "|"), Of: merge(a.Of, b.Of)}
	if a.Fields == nil || b.Fields == nil {
		m.Fields = a.Fields
		if m.Fields == nil {
			m.Fields = b.Fields
		}
		return m
	}
	m.Fields = map[string]*Shape{}
	for _, f := range []map[string]*Shape{a.Fields, b.Fields} {
		for name := range f {
			one := merge(a.Fields[name], b.Fields[name])
			if a.Fields[name] == nil || b.Fields[name] == nil || a.Fields[name].Sometimes || b.Fields[name].Sometimes {
				same := *one
				same.Sometimes = true
				one = &same
			}
			m.Fields[name] = one
		}
	}
	return m
}

func shapeOfForm(text string) *Shape {
	form, _ := url.ParseQuery(text) // what can be read of it counts
	s := &Shape{Kind: "form", Fields: map[string]*Shape{}}
	for name, values := range form {
		var of *Shape
		for _, v := range values {
			of = merge(of, &Shape{Kind: formatOf(v)})
		}
		s.add(name, of)
	}
	return s
}

// shapeOfEvents joins the shapes of the data of server-sent events.
func shapeOfEvents(text string) *Shape {
	s := &Shape{Kind: "events"}
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if !ok {
			continue
		}
		if v, err := parseJSON([]byte(data)); err == nil {
			s.Of = merge(s.Of, shapeOf(v, 0))
		} else {
			s.Of = merge(s.Of, &Shape{Kind: "string"})
		}
	}
	return s
}

// shapeOfXML keeps the names of elements and attributes, without namespaces.
func shapeOfXML(body []byte) (*Shape, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict = false
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // names are ASCII
	top := &Shape{Kind: "element", Fields: map[string]*Shape{}}
	open := []*Shape{top}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 1 && len(top.Fields) == 1 {
			return top, nil
		}
		if err != nil {
			return nil, err
		}
		last := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			if len(open) > maxDepth {
				return nil, errors.New("the document is too deep")
			}
			one := last.element(token.Name.Local)
			for _, a := range token.Attr {
				if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
					name := "@" + named(a.Name.Local)
					one.Fields[name] = merge(one.Fields[name], &Shape{Kind: formatOf(a.Value)})
				}
			}
			open = append(open, one)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" && len(open) > 1 {
				last.Fields["#text"] = merge(last.Fields["#text"], &Shape{Kind: formatOf(text)})
			}
		}
	}
}
