package policy

import (
	"slices"
	"strings"
)

// Match tells whether path matches glob: * stands for any text within a
// segment, ** for any text across segments.
func Match(glob, path string) bool {
	star := strings.IndexByte(glob, '*')
	if star < 0 {
		return glob == path
	}
	path, ok := strings.CutPrefix(path, glob[:star])
	if !ok {
		return false
	}
	deep := strings.HasPrefix(glob[star:], "**")
	rest := strings.TrimLeft(glob[star:], "*")
	if rest == "" {
		return deep || !strings.Contains(path, "/")
	}
	return matchAny(rest, path, deep)
}

// matchAny tries glob at every offset of path that the star before it may skip to.
func matchAny(glob, path string, deep bool) bool {
	for i := 0; i <= len(path); i++ {
		if Match(glob, path[i:]) {
			return true
		}
		if i < len(path) && path[i] == '/' && !deep {
			return false
		}
	}
	return false
}

// Permits tells whether the allow list lets method and path through.
func (p *Policy) Permits(method, path string) bool {
	if len(p.Allow) == 0 {
		return true
	}
	for _, a := range p.Allow {
		if (len(a.Methods) == 0 || slices.Contains(a.Methods, method)) && (a.Path == "" || Match(a.Path, path)) {
			return true
		}
	}
	return false
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
