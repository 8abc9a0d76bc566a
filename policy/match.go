package policy

import (
	"net/http"
	"slices"
	"strings"
)

// Match tells whether path matches glob: * stands for any text within a
// segment, ** for any text across segments.
//
// A mismatch goes back to the last star, and when that one would have to cross
// a slash to the last double star; earlier ones cannot help, because the later
// star takes up whatever they leave. So no glob takes exponential time.
func Match(glob, path string) bool {
	var shallow, deep retreat
	g, i := 0, 0
	for g < len(glob) || i < len(path) {
		switch {
		case g < len(glob) && glob[g] == '*':
			rest := len(glob) - len(strings.TrimLeft(glob[g:], "*"))
			if rest-g > 1 {
				deep, shallow = retreat{rest, i, true}, retreat{}
			} else {
				shallow = retreat{rest, i, true}
			}
			g = rest
		case g < len(glob) && i < len(path) && glob[g] == path[i]:
			g, i = g+1, i+1
		case shallow.ok && shallow.path < len(path) && path[shallow.path] != '/':
			g, i = shallow.again()
		case deep.ok && deep.path < len(path):
			shallow.ok = false
			g, i = deep.again()
		default:
			return false
		}
	}
	return true
}

// retreat is where matching goes on after a star: the rest of the glob, and
// how far into the path the star reaches.
type retreat struct {
	glob, path int
	ok         bool
}

// again lets the star take one byte more.
func (r *retreat) again() (glob, path int) {
	r.path++
	return r.glob, r.path
}

// Permits tells whether the allow list lets method and path through.
func (p *Policy) Permits(method, path string) bool {
	if len(p.Allow) == 0 {
		return true
	}
	for _, a := range p.Allow {
		if Covers(a.Methods, method) && (a.Path == "" || Match(a.Path, path)) {
			return true
		}
	}
	return false
}

// Covers tells whether a list of allowed methods lets method through. An empty
// one lets all; GET includes HEAD, which asks for no more (RFC 9110 §9.3.2).
func Covers(methods []string, method string) bool {
	return len(methods) == 0 || slices.Contains(methods, method) ||
		method == http.MethodHead && slices.Contains(methods, http.MethodGet)
}

// GroupOf returns the index of the first path group that path belongs to, or -1.
func (l *Limits) GroupOf(path string) int {
	for i := range l.Groups {
		for _, glob := range l.Groups[i].Paths {
			if Match(glob, path) {
				return i
			}
		}
	}
	return -1
}
