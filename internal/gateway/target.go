package gateway

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/policy"
)

// route is an Endpoint in the form that requests are mapped with.
type route struct {
	*Endpoint
	base   string        // escaped path of URL without its last slash
	force  []parameter   // of ForceQuery
	keyed  bool          // the provider honours idempotency keys
	keyMax int           // the longest it takes
	full   bool          // answers are verified before they are delivered
	idle   time.Duration // that a caller may stand still for
}

// parameter is one request parameter, name as written and both encoded.
type parameter struct{ name, text string }

func newRoute(e *Endpoint) *route {
	rt := &route{Endpoint: e, base: strings.TrimSuffix(e.URL.EscapedPath(), "/"), idle: policy.Policy{}.WithDefaults().Timeouts.Idle}
	for k, v := range e.ForceQuery {
		rt.force = append(rt.force, parameter{k, url.QueryEscape(k) + "=" + url.QueryEscape(v)})
	}
	slices.SortFunc(rt.force, func(a, b parameter) int { return cmp.Compare(a.name, b.name) })
	if e.Transport != nil {
		p := e.Transport.Policy.WithDefaults()
		rt.keyed, rt.keyMax = p.Key.Header != "", p.Key.MaxLen
		rt.idle = p.Timeouts.Idle
		rt.full = p.Verify.Mode == policy.VerifyFull
	}
	return rt
}

// split cuts the escaped path of a request into the name of the endpoint and
// the rest, which is empty or begins with a slash.
func split(path string) (name, rest string, ok bool) {
	path, ok = strings.CutPrefix(path, "/")
	if !ok {
		return "", "", false
	}
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:], true
	}
	return path, "", true
}

// A refusal of a path says what is wrong with it.
const (
	pathClimbs    = "the path climbs above the endpoint with .. segments"
	pathHidden    = "the path hides .. segments in encoded characters"
	pathBackslash = "the path contains a backslash"
	pathControl   = "the path contains a control character"
	pathEncoding  = "the path contains an invalid % sequence"
)

// Target is where a request for an escaped path below the endpoint goes. path
// is empty or begins with a slash.
func (e *Endpoint) Target(path, query string) (*url.URL, error) {
	u, wrong := newRoute(e).target(path, query)
	if wrong != "" {
		return nil, fmt.Errorf("endpoint %s: %s", e.Name, wrong)
	}
	return u, nil
}

// target maps the rest of a path onto the endpoint. Scheme and authority are
// always those of the configuration, and the path lies below its base.
func (rt *route) target(rest, query string) (*url.URL, string) {
	clean, wrong := cleanPath(rest)
	if wrong != "" {
		return nil, wrong
	}
	u := &url.URL{Scheme: rt.URL.Scheme, Host: rt.URL.Host, RawQuery: rt.query(query)}
	escaped := rt.base + clean
	if clean == "" {
		escaped = rt.URL.EscapedPath()
	}
	u.Path = escaped
	if strings.IndexByte(escaped, '%') >= 0 {
		plain, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, pathEncoding
		}
		u.Path, u.RawPath = plain, escaped
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, ""
}

// cleanPath resolves dot segments, encoded ones too (RFC 3986 §6.2.2), and
// refuses what an upstream might read as something else than we do. Slashes
// at its beginning count as one. Encoded slashes inside a segment stay: some
// APIs take them as data.
func cleanPath(p string) (string, string) {
	for strings.HasPrefix(p, "//") {
		p = p[1:]
	}
	if plainPath(p) {
		return p, ""
	}
	segments := strings.Split(strings.TrimPrefix(p, "/"), "/")
	kept := segments[:0]
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return "", pathEncoding
		}
		if wrong := badSegment(plain); wrong != "" {
			return "", wrong
		}
		last := i == len(segments)-1
		switch plain {
		case ".", "..":
			if plain == ".." {
				if len(kept) == 0 {
					return "", pathClimbs
				}
				kept = kept[:len(kept)-1]
			}
			if last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, s)
		}
	}
	p = "/" + strings.Join(kept, "/")
	for strings.HasPrefix(p, "//") { // a/..//b
		p = p[1:]
	}
	return p, ""
}

// plainPath tells whether there is nothing in p that cleanPath would look at.
func plainPath(p string) bool {
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '%', c == '\\', c < ' ', c == 0x7f, c == '.' && i > 0 && p[i-1] == '/':
			return false
		}
	}
	return true
}

// badSegment says what is wrong with a decoded segment. It looks through
// further layers of encoding, because an upstream might too, and through path
// parameters, because servlet containers read ..;x as .. after routing.
func badSegment(s string) string {
	for layer := 0; ; layer++ {
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case c == '\\':
				return pathBackslash
			case c < ' ', c == 0x7f:
				return pathControl
			}
		}
		for part := range strings.SplitSeq(s, "/") {
			name, _, parameters := strings.Cut(part, ";")
			hidden := layer > 0 || parameters || part != s
			if hidden && (name == ".." || name == ".") {
				return pathHidden
			}
		}
		next, err := url.PathUnescape(s)
		if err != nil || next == s {
			return ""
		}
		if layer == 3 {
			return pathHidden
		}
		s = next
	}
}

// query returns raw with the parameters of ForceQuery in it. Their names are
// compared without case, as WMS does (OGC 06-042 §6.8.1). The others stay byte
// for byte as they are: some servers check a signature over them.
func (rt *route) query(raw string) string {
	if len(rt.force) == 0 {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		key, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(key)
		forced := err == nil && slices.ContainsFunc(rt.force, func(p parameter) bool { return strings.EqualFold(p.name, plain) })
		if part != "" && !forced {
			kept = append(kept, part)
		}
	}
	for _, p := range rt.force {
		kept = append(kept, p.text)
	}
	return strings.Join(kept, "&")
}
