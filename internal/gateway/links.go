package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// links mends the links in the head of an answer.
func (rt *route) links(h http.Header, sent *url.URL, self string) {
	rt.scrub(h)
	if rt.RewriteLinks {
		rt.relink(h, sent, self)
	}
}

// relink turns the targets of Location and Link that lie on the endpoint into
// targets that go through the gateway, so that paging does not bypass it. sent
// is the URL that was asked for, against which relative targets resolve; self
// is our own origin as the caller named it. Targets elsewhere stay as they
// are, and nothing is ever added to them.
func (rt *route) relink(h http.Header, sent *url.URL, self string) {
	for _, name := range [...]string{"Location", "Content-Location"} {
		if lines := h[name]; len(lines) == 1 {
			h[name] = []string{rt.through(lines[0], sent, self)}
		}
	}
	if lines := h["Link"]; len(lines) > 0 {
		fresh := make([]string, len(lines))
		for i, line := range lines {
			fresh[i] = mapLinks(line, func(to string) string { return rt.through(to, sent, self) })
		}
		h["Link"] = fresh
	}
}

// through returns to as a link through the gateway, or as it is.
func (rt *route) through(to string, sent *url.URL, self string) string {
	u, err := sent.Parse(to)
	if err != nil || !rt.holds(u) {
		return to
	}
	var b strings.Builder
	b.WriteString(self)
	b.WriteByte('/')
	b.WriteString(rt.Name)
	b.WriteString(strings.TrimPrefix(u.EscapedPath(), rt.base))
	if u.RawQuery != "" {
		b.WriteByte('?')
		b.WriteString(u.RawQuery)
	}
	if u.Fragment != "" {
		b.WriteByte('#')
		b.WriteString(u.EscapedFragment())
	}
	return b.String()
}

// holds tells whether u lies on the endpoint: its origin, below its base.
func (rt *route) holds(u *url.URL) bool {
	if !sameOrigin(u, rt.URL) || u.User != nil || u.Opaque != "" {
		return false
	}
	path := u.EscapedPath()
	rest, ok := strings.CutPrefix(path, rt.base)
	if !ok || rest != "" && rest[0] != '/' {
		return false
	}
	clean, wrong := cleanPath(rest)
	return wrong == "" && clean == rest
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// scrub takes the parameter that carries the credential out of the fields that
// hold links, wherever they lead: a provider that repeats the query in them
// would hand ours to the caller.
func (rt *route) scrub(h http.Header) {
	if rt.SecretQuery == "" {
		return
	}
	for _, name := range [...]string{"Location", "Content-Location", "Link", "Refresh"} {
		if lines := h[name]; len(lines) > 0 {
			fresh := make([]string, len(lines))
			for i, line := range lines {
				fresh[i] = without(line, rt.SecretQuery)
			}
			h[name] = fresh
		}
	}
}

// without returns line without the parameters called name, however the links
// in it are written. Parameters begin after ? & ; or #. Where one is dropped,
// that mark stays if it begins a list which goes on.
func without(line, name string) string {
	var b strings.Builder
	for {
		i := strings.IndexAny(line, "?&;#")
		if i < 0 {
			b.WriteString(line)
			return b.String()
		}
		b.WriteString(line[:i])
		mark, rest := line[i:i+1], line[i+1:]
		if html, ok := strings.CutPrefix(rest, "amp;"); ok && mark == "&" {
			mark, rest = "&amp;", html
		}
		end := len(rest)
		if j := strings.IndexAny(rest, "?&;#<>\"' \t"); j >= 0 {
			end = j
		}
		if !called(rest[:end], name) {
			b.WriteString(mark)
			line = rest
			continue
		}
		line = rest[end:]
		if mark == "?" || mark == "#" {
			after := strings.TrimPrefix(line, "&amp;")
			if after == line {
				after = strings.TrimLeft(line, "&;")
			}
			if after != line { // the next one takes its place
				line = mark + after
			}
		}
	}
}

// called tells whether a parameter has the name, in any case: some servers
// repeat it in their own.
func called(parameter, name string) bool {
	key, _, _ := strings.Cut(parameter, "=")
	plain, err := url.QueryUnescape(key)
	return err == nil && strings.EqualFold(plain, name)
}

// mapLinks replaces the targets of a Link field (RFC 8288 §3): what stands in
// angle brackets at the beginning of a member. Commas may stand in a target
// and in quoted parameters.
func mapLinks(line string, change func(string) string) string {
	var b strings.Builder
	for line != "" {
		open := strings.IndexByte(line, '<')
		if open < 0 || strings.Trim(line[:open], " \t,") != "" {
			break
		}
		end := strings.IndexByte(line[open:], '>')
		if end < 0 {
			break
		}
		end += open
		b.WriteString(line[:open+1])
		b.WriteString(change(line[open+1 : end]))
		line = line[end:]
		rest := line
		for part := range splitQuoted(line, ',') {
			rest = part
			break
		}
		b.WriteString(rest)
		line = line[len(rest):]
	}
	b.WriteString(line)
	return b.String()
}
