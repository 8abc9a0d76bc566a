package sim

import "strings"

// pattern matches paths segment by segment. A * matches one segment and a **
// all that follow, none included. {name} and {name...} do the same, but every
// text that they match counts apart.
type pattern struct {
	text     string
	segments []string
}

func newPattern(text string) pattern {
	return pattern{text, strings.Split(strings.TrimPrefix(text, "/"), "/")}
}

// match tells whether path fits, and what the {…} of the pattern matched.
func (p pattern) match(path string) (apart string, ok bool) {
	rest, more := strings.TrimPrefix(path, "/"), true
	for _, want := range p.segments {
		if tail, each := isTail(want); tail {
			if each {
				apart = join(apart, rest)
			}
			return apart, true
		}
		if !more {
			return "", false
		}
		var have string
		have, rest, more = strings.Cut(rest, "/")
		switch {
		case isEach(want):
			if have == "" {
				return "", false
			}
			apart = join(apart, have)
		case want == "*":
			if have == "" {
				return "", false
			}
		case want != have:
			return "", false
		}
	}
	return apart, !more
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "/" + b
}

func isTail(segment string) (tail, each bool) {
	each = isEach(segment) && strings.HasSuffix(segment, "...}")
	return each || segment == "**", each
}

func isEach(segment string) bool {
	return len(segment) > 2 && segment[0] == '{' && segment[len(segment)-1] == '}'
}

// fault says what is wrong with the pattern and at which byte; "" if nothing.
func (p pattern) fault() (message string, at int) {
	if !strings.HasPrefix(p.text, "/") {
		return "a path begins with /", 0
	}
	at = 1
	for i, s := range p.segments {
		tail, _ := isTail(s)
		switch {
		case tail && i < len(p.segments)-1:
			return s + " must be the last segment", at
		case !tail && s != "*" && !isEach(s) && strings.ContainsAny(s, "*{}"):
			return "a segment is plain text, or *, **, {name} or {name...} alone", at
		}
		at += len(s) + 1
	}
	return "", 0
}
