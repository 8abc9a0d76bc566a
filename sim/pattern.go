package sim

import "strings"

// maxValues is how many {…} a pattern may have.
const maxValues = 6

// pattern matches paths segment by segment. A * matches one segment and a **
// all that follow, none included. {name} and {name...} do the same, but every
// text that they match counts apart. {name} may stand between plain text, as
// in {id}.json.
type pattern struct {
	text     string
	segments []segment
	tail     bool // the last segment takes all that follow
}

// segment is one part of a pattern: plain text, or text around what varies.
type segment struct {
	text           string
	name           string // of a {…}
	prefix, suffix string // around {name}
	kind           segmentKind
}

type segmentKind uint8

const (
	plain segmentKind = iota
	any1              // *
	anyN              // **
	each1             // {name}
	eachN             // {name...}
)

// values are what the {…} of a pattern matched, in order.
type values struct {
	n    int
	text [maxValues]string
}

func (v *values) add(text string) {
	v.text[v.n] = text
	v.n++
}

// apart is all values as one text.
func (v *values) apart() string {
	switch v.n {
	case 0:
		return ""
	case 1:
		return v.text[0]
	}
	return strings.Join(v.text[:v.n], "/")
}

func newPattern(text string) pattern {
	p := pattern{text: text}
	for s := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		p.segments = append(p.segments, newSegment(s))
	}
	last := p.segments[len(p.segments)-1].kind
	p.tail = last == anyN || last == eachN
	return p
}

func newSegment(s string) segment {
	switch s {
	case "*":
		return segment{text: s, kind: any1}
	case "**":
		return segment{text: s, kind: anyN}
	}
	open, shut := strings.IndexByte(s, '{'), strings.IndexByte(s, '}')
	if open < 0 || shut < open+2 {
		return segment{text: s}
	}
	g := segment{text: s, name: s[open+1 : shut], prefix: s[:open], suffix: s[shut+1:], kind: each1}
	if name, tail := strings.CutSuffix(g.name, "..."); tail && name != "" && len(s) == shut+1 && open == 0 {
		g.name, g.kind = name, eachN
	}
	return g
}

// match tells whether path fits, and notes what the {…} matched.
func (p *pattern) match(path string, v *values) bool {
	v.n = 0
	rest, more := strings.TrimPrefix(path, "/"), true
	for i := range p.segments {
		s := &p.segments[i]
		switch s.kind {
		case anyN:
			return true
		case eachN:
			v.add(rest)
			return true
		}
		if !more {
			return false
		}
		var have string
		have, rest, more = strings.Cut(rest, "/")
		if !s.match(have, v) {
			return false
		}
	}
	return !more
}

func (s *segment) match(have string, v *values) bool {
	switch s.kind {
	case plain:
		return have == s.text
	case any1:
		return have != ""
	}
	if len(have) <= len(s.prefix)+len(s.suffix) || !strings.HasPrefix(have, s.prefix) || !strings.HasSuffix(have, s.suffix) {
		return false
	}
	v.add(have[len(s.prefix) : len(have)-len(s.suffix)])
	return true
}

// meets tells whether some path fits both.
func (p *pattern) meets(o *pattern) bool {
	for i := 0; ; i++ {
		switch {
		case p.tail && i >= len(p.segments)-1, o.tail && i >= len(o.segments)-1:
			return true
		case i == len(p.segments) || i == len(o.segments):
			return len(p.segments) == len(o.segments)
		case !p.segments[i].meets(&o.segments[i]):
			return false
		}
	}
}

func (s *segment) meets(o *segment) bool {
	var v values
	switch {
	case s.kind == plain:
		return o.match(s.text, &v)
	case o.kind == plain:
		return s.match(o.text, &v)
	}
	return true // of what varies in both no more is asked
}

// names tells whether the pattern has a {name}.
func (p *pattern) names(name string) bool {
	for i := range p.segments {
		if p.segments[i].kind >= each1 && p.segments[i].name == name {
			return true
		}
	}
	return false
}

// value returns what {name} matched.
func (p *pattern) value(name string, v *values) string {
	n := 0
	for i := range p.segments {
		if p.segments[i].kind < each1 {
			continue
		}
		if p.segments[i].name == name && n < v.n {
			return v.text[n]
		}
		n++
	}
	return ""
}

// fault says what is wrong with the pattern and at which byte; "" if nothing.
func (p *pattern) fault() (message string, at int) {
	if !strings.HasPrefix(p.text, "/") {
		return "a path begins with /", 0
	}
	at = 1
	varying := 0
	for i, s := range p.segments {
		switch {
		case (s.kind == anyN || s.kind == eachN) && i < len(p.segments)-1:
			return s.text + " must be the last segment", at
		case s.kind == plain && strings.ContainsAny(s.text, "*{}"),
			s.kind == each1 && strings.ContainsAny(s.prefix+s.suffix+s.name, "*{}"):
			return "a segment is plain text, *, **, {name...}, or {name} with plain text around it", at
		case s.kind >= each1:
			varying++
		}
		at += len(s.text) + 1
	}
	if varying > maxValues {
		return "a path has at most 6 names in braces", 0
	}
	return "", 0
}
