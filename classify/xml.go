package classify

import (
	"bufio"
	"bytes"
	"html"
	"strconv"
	"strings"
)

// xmlText follows the markup of an XML text as it streams by. With strict it
// checks that the text is one well-formed document; without, it takes what it
// can get and notes the elements that somebody looks for.
//
// Checked are tags, their nesting, attributes and the form of references; a
// document type is skipped and no entity is expanded, so that nothing is ever
// fetched and no text grows (the billion laughs).
type xmlText struct {
	in     *input
	strict bool
	root   bool   // the root element was seen
	names  []byte // of all open elements
	ends   []int  // where in names each of them ends
	other  []byte // the last name that was read and does not stay

	want  map[string]bool // local names to note
	found []tag
	noted bool // the current tag is the last of found
	says  bool // text belongs to the last of found
}

// tag is the start of an element, with local names, and the text that follows.
type tag struct {
	name  string
	attrs []attr
	raw   []byte // its text, references as they are written
}

// text is what the element begins with.
func (t *tag) text() string { return strings.TrimSpace(html.UnescapeString(string(t.raw))) }

type attr struct{ name, value string }

// maxValue bounds what is noted of an attribute or a text, in bytes.
const maxValue = 4 << 10

// tagsIn returns the elements of b whose local names are wanted.
func tagsIn(b []byte, want map[string]bool) []tag {
	x := xmlText{in: &input{r: utf8Text(bufio.NewReader(bytes.NewReader(b)))}, want: want}
	_ = x.document() // without strict, only the end of b is an error
	return x.found
}

// document reads to the end.
func (x *xmlText) document() error {
	for {
		err := x.content()
		switch d, broken := err.(*Defect); {
		case err == nil:
			return nil
		case broken && !d.Cut && !x.strict:
			x.in.back() // the byte that broke the markup may begin another
		default:
			return err
		}
	}
}

func (x *xmlText) content() error {
	for {
		c, ok := x.in.next()
		switch {
		case !ok && (len(x.ends) > 0 || !x.root):
			return x.cut("")
		case !ok:
			return x.in.failure()
		case c == '<':
			if err := x.markup(); err != nil {
				return err
			}
		case !x.strict:
			x.say(c)
		case isSpace(c):
		case len(x.ends) == 0:
			return x.in.wrong("xml", "text outside the root element")
		case c == '&':
			if err := x.reference(); err != nil {
				return err
			}
		}
	}
}

// say notes a byte of the text of an element.
func (x *xmlText) say(c byte) {
	if !x.says {
		return
	}
	if t := &x.found[len(x.found)-1]; len(t.raw) < maxValue {
		t.raw = append(t.raw, c)
	}
}

// markup reads what follows a <.
func (x *xmlText) markup() error {
	c, ok := x.in.next()
	switch {
	case !ok:
		return x.cut(">")
	case c == '?':
		return x.until("?>")
	case c == '!':
		return x.declaration()
	case c == '/':
		x.says = false
		return x.endTag()
	}
	x.says = false
	return x.startTag(c)
}

// until skips to the end of what ends with mark.
func (x *xmlText) until(mark string) error {
	var tail [3]byte
	seen := tail[3-len(mark):]
	for {
		c, ok := x.in.next()
		if !ok {
			return x.cut(mark)
		}
		copy(seen, seen[1:])
		seen[len(seen)-1] = c
		if string(seen) == mark {
			return nil
		}
	}
}

// declaration reads what follows <!: a comment, a CDATA section or a document type.
func (x *xmlText) declaration() error {
	c, ok := x.in.next()
	if !ok {
		return x.cut(">")
	}
	switch c {
	case '-':
		if c, ok = x.in.next(); !ok {
			return x.cut("-->")
		}
		if c != '-' {
			return x.in.wrong("xml", "neither a comment nor a declaration")
		}
		return x.until("-->")
	case '[':
		if x.strict && len(x.ends) == 0 {
			return x.in.wrong("xml", "text outside the root element")
		}
		return x.section()
	}
	if x.strict && x.root {
		return x.in.wrong("xml", "a declaration after the root element began")
	}
	return x.docType()
}

func (x *xmlText) section() error {
	for _, want := range []byte("CDATA[") {
		c, ok := x.in.next()
		if !ok {
			return x.cut("]]>")
		}
		if c != want {
			return x.in.wrong("xml", "not a CDATA section")
		}
	}
	if x.says {
		return x.literal()
	}
	return x.until("]]>")
}

// literal notes a CDATA section, in which an & is no reference.
func (x *xmlText) literal() error {
	t := &x.found[len(x.found)-1]
	from := len(t.raw)
	var tail [3]byte
	for string(tail[:]) != "]]>" {
		c, ok := x.in.next()
		if !ok {
			return x.cut("]]>")
		}
		copy(tail[:], tail[1:])
		tail[2] = c
		x.say(c)
	}
	text := html.EscapeString(string(bytes.TrimSuffix(t.raw[from:], tail[:])))
	t.raw = append(t.raw[:from], text...)
	return nil
}

// docType skips a document type, with what is declared between its brackets.
func (x *xmlText) docType() error {
	for depth := 1; depth > 0; {
		c, ok := x.in.next()
		switch {
		case !ok:
			return x.cut(">")
		case c == '[' || c == ']':
		case c == '"' || c == '\'':
			if err := x.until(string(c)); err != nil {
				return err
			}
		case c == '>':
			depth--
		case c == '<':
			inner, err := x.inner()
			if err != nil {
				return err
			}
			depth += inner
		}
	}
	return nil
}

// inner reads what follows a < within a document type: a comment or an
// instruction whole, and of a declaration only that it began.
func (x *xmlText) inner() (opened int, err error) {
	c, ok := x.in.next()
	if ok && c == '?' {
		return 0, x.until("?>")
	}
	for n := 0; ok && n < 2; n++ {
		if c, ok = x.in.next(); ok && c != '-' {
			x.in.back()
			return 1, nil
		}
	}
	if !ok {
		return 0, x.cut(">")
	}
	return 0, x.until("-->")
}

// name appends the name that begins with c to names, and returns what follows it.
func (x *xmlText) name(names []byte, c byte) (out []byte, next byte, err error) {
	if !nameByte(c) || x.strict && (isDigit(c) || c == '-' || c == '.') {
		return names, 0, x.in.wrong("xml", "not a name")
	}
	for n := 1; ; n++ {
		names = append(names, c)
		var ok bool
		if c, ok = x.in.next(); !ok {
			return names, 0, x.cut(">")
		}
		if !nameByte(c) {
			return names, c, nil
		}
		if n == maxName {
			return names, 0, x.in.wrong("xml", "a name too long")
		}
	}
}

// nameByte takes every byte beyond ASCII, whatever the charset is.
func nameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) || c >= 0x80 || c == '_' || c == ':' || c == '-' || c == '.'
}

func local(name []byte) []byte { return name[bytes.LastIndexByte(name, ':')+1:] }

func (x *xmlText) endTag() error {
	c, ok := x.in.next()
	if !ok {
		return x.cut(">")
	}
	name, c, err := x.name(x.other[:0], c)
	if x.other = name; err != nil {
		return err
	}
	if isSpace(c) {
		if c, ok = x.in.space(); !ok {
			return x.cut(">")
		}
	}
	switch {
	case c != '>':
		return x.in.wrong("xml", "more than a name in an end tag")
	case !x.strict:
		return nil
	case len(x.ends) == 0 || string(x.top()) != string(name):
		return x.in.wrong("xml", "an end tag that ends another element")
	}
	x.names = x.names[:len(x.names)-len(name)]
	x.ends = x.ends[:len(x.ends)-1]
	return nil
}

// top is the name of the innermost open element.
func (x *xmlText) top() []byte {
	from := 0
	if n := len(x.ends); n > 1 {
		from = x.ends[n-2]
	}
	return x.names[from:]
}

func (x *xmlText) startTag(c byte) error {
	from := len(x.names)
	names, c, err := x.name(x.names, c)
	if err != nil {
		return err
	}
	if x.strict && x.root && len(x.ends) == 0 {
		return x.in.wrong("xml", "a second root element")
	}
	x.root = true
	if x.noted = x.want[string(local(names[from:]))]; x.noted {
		x.found = append(x.found, tag{name: string(local(names[from:]))})
	}
	closed, err := x.attributes(c)
	x.says = x.noted && !closed && err == nil
	if err != nil || closed || !x.strict {
		return err
	}
	if len(x.ends) == maxDepth || len(names) > maxNames {
		return x.in.wrong("xml", "nested too deep")
	}
	x.names = names
	x.ends = append(x.ends, len(names))
	return nil
}

// attributes reads to the end of a start tag, from c on; closed tells that
// the element has no content.
func (x *xmlText) attributes(c byte) (closed bool, err error) {
	ok := true
	for {
		if isSpace(c) {
			if c, ok = x.in.space(); !ok {
				return false, x.cut(">")
			}
		}
		switch c {
		case '>':
			return false, nil
		case '/':
			if c, ok = x.in.next(); !ok {
				return false, x.cut(">")
			}
			if c != '>' {
				return false, x.in.wrong("xml", "a slash within a tag")
			}
			return true, nil
		}
		if c, err = x.attribute(c); err != nil {
			return false, err
		}
	}
}

// attribute reads the attribute whose name begins with c, and returns what
// follows it.
func (x *xmlText) attribute(c byte) (next byte, err error) {
	name, c, err := x.name(x.other[:0], c)
	if x.other = name; err != nil {
		return 0, err
	}
	ok := true
	if isSpace(c) {
		c, ok = x.in.space()
	}
	if ok && c != '=' {
		return 0, x.in.wrong("xml", "an attribute without a value")
	}
	if ok {
		c, ok = x.in.space()
	}
	if ok && c != '"' && c != '\'' {
		return 0, x.in.wrong("xml", "an attribute without quotes")
	}
	if !ok {
		return 0, x.cut(">")
	}
	value, err := x.value(c)
	if err != nil {
		return 0, err
	}
	if x.noted {
		t := &x.found[len(x.found)-1]
		t.attrs = append(t.attrs, attr{string(local(name)), html.UnescapeString(string(value))})
	}
	if next, ok = x.in.next(); !ok {
		return 0, x.cut(">")
	}
	return next, nil
}

// value reads an attribute's value up to quote.
func (x *xmlText) value(quote byte) (value []byte, err error) {
	for {
		c, ok := x.in.next()
		switch {
		case !ok:
			return nil, x.cut(string(quote) + ">")
		case c == quote:
			return value, nil
		case x.strict && c == '<':
			return nil, x.in.wrong("xml", "a < in the value of an attribute")
		case x.strict && c == '&':
			if err := x.reference(); err != nil {
				return nil, err
			}
		case x.noted && len(value) < maxValue:
			value = append(value, c)
		}
	}
}

// reference reads what follows an &: a name or a number, and a semicolon.
func (x *xmlText) reference() error {
	for n := 0; ; n++ {
		c, ok := x.in.next()
		switch {
		case !ok:
			return x.cut(";")
		case c == ';' && n > 0:
			return nil
		case n == 0 && c == '#':
		case !nameByte(c) || n == maxName:
			return x.in.wrong("xml", "an & that begins no reference")
		}
	}
}

// cut is the error for a text that ends too early, within markup that ends
// with mark if it has one. The names of the elements stay out of it: they are
// part of the body.
func (x *xmlText) cut(mark string) error {
	what := mark
	switch n := len(x.ends); {
	case mark != "" && n > 0:
		what += " and the ends of " + strconv.Itoa(n) + " elements"
	case n > 0:
		what = "the ends of " + strconv.Itoa(n) + " elements"
	case mark == "":
		what = "the root element"
	}
	return x.in.cut("xml", what)
}
