package drift

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/heedproject/heed/sim"
)

// Words returns the segments of the routes of packs that are plain text: what
// an API may well call a part of a path.
func Words(packs []sim.Pack) []string {
	words := map[string]bool{}
	for _, p := range packs {
		for _, o := range p.Operations {
			_, path, _ := strings.Cut(o.Route, " ")
			for s := range strings.SplitSeq(path, "/") {
				if s != "" && !strings.ContainsAny(s, "{*") {
					words[s] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(words))
}

// version of an API, which is no value: v1, v60.0, 2024-01, 1.1.
var version = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(v[0-9]{1,3}(\.[0-9])?|[0-9]{4}-[0-9]{2}|[0-9]\.[0-9]{1,2})$`)
})

// path takes the values out of the path, and returns them too. Where an
// operation of a pack fits, its route tells them; else all is a value that is
// neither a version nor a known word.
func (r *Recorder) path(method, path string) (masked string, values []string) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, p := range r.packs {
		for _, o := range p.Operations {
			m, route, _ := strings.Cut(o.Route, " ")
			if m != method && m != "*" {
				continue
			}
			if spans, ok := fit(strings.Split(strings.TrimPrefix(route, "/"), "/"), parts); ok {
				return r.blank(parts, spans)
			}
		}
	}
	spans := make([]span, len(parts))
	for i, part := range parts {
		if part != "" && !r.words[part] && !version().MatchString(part) {
			spans[i] = span{0, len(part)}
		}
	}
	return r.blank(parts, spans)
}

// span is where in a segment a value stands. The zero span: nowhere.
type span struct{ from, to int }

// fit tells whether parts are a path of the route, and which of them are values.
func fit(route, parts []string) ([]span, bool) {
	spans := make([]span, len(parts))
	for i, s := range route {
		if s == "**" || strings.HasPrefix(s, "{") && strings.HasSuffix(s, "...}") {
			for ; i < len(parts); i++ {
				spans[i] = span{0, len(parts[i])}
			}
			return spans, true
		}
		if i >= len(parts) {
			return nil, false
		}
		prefix, rest, varies := strings.Cut(s, "{")
		_, suffix, _ := strings.Cut(rest, "}")
		if s == "*" {
			prefix, varies = "", true
		}
		have := parts[i]
		switch {
		case !varies && have != s,
			varies && (len(have) <= len(prefix)+len(suffix) || !strings.HasPrefix(have, prefix) || !strings.HasSuffix(have, suffix)):
			return nil, false
		case varies:
			spans[i] = span{len(prefix), len(have) - len(suffix)}
		}
	}
	return spans, len(route) == len(parts)
}

// blank writes the path with a reference, or nothing, in place of its values.
func (r *Recorder) blank(parts []string, spans []span) (masked string, values []string) {
	for i, part := range parts {
		masked += "/"
		s := spans[i]
		if s == (span{}) {
			masked += part
			continue
		}
		value := part[s.from:s.to]
		values = append(values, value)
		masked += part[:s.from] + "{" + r.ref(value, true) + "}" + part[s.to:]
	}
	return masked, values
}
