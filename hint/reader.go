package hint

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/policy"
)

// Reader reads hints. It is compiled by NewReader and then safe for use by
// many goroutines; nil and the zero Reader read the Standard sources.
type Reader struct {
	compiled bool
	waits    []source
	groups   []group
	// shapes has, by first byte, a bit for the length of every name that is
	// read: a look at a header that has none of them ends the reading.
	shapes [128]uint64
}

// source is a Source with its name in canonical form, ready for a direct look
// into a header.
type source struct {
	name   string
	field  Field
	format Format
	key    string
	ignore []string
}

// group is the headers that tell of one quota.
type group struct {
	key        string
	structured []source
	plain      []source
}

// standard is what nil and the zero Reader read.
var standard = compile(Standard())

// Standard returns the vendor-neutral sources: Retry-After, the RateLimit
// fields of all drafts, and X-RateLimit-* in both spellings with a reset in
// whatever unit its size gives away. A profile puts its own before them.
func Standard() []Source {
	sources := []Source{
		{Header: "Retry-After", Field: Wait, Format: RetryAfter},
		{Header: "RateLimit", Field: Quota, Format: Structured},
		{Header: "RateLimit-Policy", Field: Quota, Format: Structured},
	}
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-", "X-Rate-Limit-"} {
		sources = append(sources,
			Source{Header: prefix + "Remaining", Field: Remaining, Format: Number},
			Source{Header: prefix + "Limit", Field: Limit, Format: Number},
			Source{Header: prefix + "Reset", Field: Reset, Format: RetryAfter})
	}
	return sources
}

// NewReader compiles sources; nil stands for the Standard ones, and an empty
// list reads nothing. They are tried in order: the first usable wait counts.
// An ObserveOnly source also keeps its header away from the sources after it.
// Sources with problems are left out of the Reader.
func NewReader(sources []Source) (*Reader, []policy.Problem) {
	if sources == nil {
		return standard, nil
	}
	var good []Source
	var all []policy.Problem
	for i, s := range sources {
		ps := s.problems(i)
		if all = append(all, ps...); len(ps) == 0 {
			good = append(good, s)
		}
	}
	return compile(good), all
}

func compile(sources []Source) *Reader {
	r := &Reader{compiled: true}
	type header struct {
		name  string
		field Field
	}
	hidden := map[header]bool{}
	for _, s := range sources {
		at := header{http.CanonicalHeaderKey(s.Header), s.Field}
		if hidden[at] = hidden[at] || s.ObserveOnly; hidden[at] {
			continue
		}
		if first := at.name[0]; first < 128 {
			r.shapes[first] |= 1 << (len(at.name) & 63)
		}
		c := source{name: at.name, field: s.Field, format: s.Format, key: s.Key, ignore: s.Ignore}
		if s.Field == Wait {
			r.waits = append(r.waits, c)
			continue
		}
		g := r.group(groupOf(at.name))
		if s.Format == Structured {
			g.structured = append(g.structured, c)
		} else {
			g.plain = append(g.plain, c)
		}
	}
	return r
}

func (r *Reader) group(key string) *group {
	i := slices.IndexFunc(r.groups, func(g group) bool { return g.key == key })
	if i < 0 {
		i = len(r.groups)
		r.groups = append(r.groups, group{key: key})
	}
	return &r.groups[i]
}

// groupOf says which headers belong together: those whose names differ only
// in the last word that names a field, so that X-RateLimit-Limit-Tokens and
// X-RateLimit-Reset-Tokens do, and X-RateLimit-Limit-Requests does not.
func groupOf(name string) string {
	words := strings.Split(strings.ReplaceAll(strings.ToLower(name), "rate-limit", "ratelimit"), "-")
	for i := len(words) - 1; i >= 0; i-- {
		switch words[i] {
		case "limit", "remaining", "reset", "resets", "used", "policy", "window", "interval", "quota", "total", "max":
			return strings.Join(slices.Delete(words, i, i+1), "-")
		case "after":
			words = slices.Delete(words, i, i+1)
		}
	}
	return strings.Join(words, "-")
}

// Read reads the header of an answer that was received now. It allocates
// nothing for numbers, nor where there is no hint at all.
func (r *Reader) Read(h http.Header, now time.Time) Hint {
	var out Hint
	if len(h) == 0 {
		return out
	}
	if r == nil || !r.compiled {
		r = standard
	}
	if !r.speaks(h) {
		return out
	}
	c := clock{header: h, now: now}
	r.readWait(&c, &out)
	r.readQuota(&c, &out)
	if c.skewed {
		out.Flags |= Skewed
	}
	return out
}

// speaks tells whether h may have a header that is read.
func (r *Reader) speaks(h http.Header) bool {
	for name := range h {
		if name != "" && name[0] < 128 && r.shapes[name[0]]&(1<<(len(name)&63)) != 0 {
			return true
		}
	}
	return false
}

func (r *Reader) readWait(c *clock, out *Hint) {
	for i := range r.waits {
		s := &r.waits[i]
		values := s.values(c.header)
		if len(values) == 0 {
			continue
		}
		got := s.wait(c, values)
		out.Flags |= got.odd
		if got.ok {
			out.Wait, out.HasWait, out.From = got.wait, true, s.name
			return
		}
		out.Flags |= Malformed
	}
}

// readQuota takes the quota of the first group that has one; a later group
// counts instead if it tells more, or that it is used up.
func (r *Reader) readQuota(c *clock, out *Hint) {
	var best quota
	rank := 0
	for i := range r.groups {
		q := r.groups[i].read(c)
		if n := q.rank(); n > rank {
			best, rank = q, n
		}
	}
	// What a cache hands out was said to another request, some time ago
	// (draft-ietf-httpapi-ratelimit-headers-10: ignore when age is above 0).
	if rank == 0 || cached(c.header) {
		return
	}
	out.Limit, out.HasLimit = best.limit, best.has&hasLimit != 0
	out.Remaining, out.HasRemaining = best.remaining, best.has&hasRemaining != 0
	if best.has&hasReset != 0 {
		out.Reset, out.HasReset, out.ResetFrom = best.reset, true, best.from
	}
	out.Window = best.window
}

func cached(h http.Header) bool {
	v := h["Age"]
	if len(v) == 0 {
		return false
	}
	m, _ := cutMember(v[0])
	n, rest, ok := digits(m, maxWhole)
	return ok && rest == "" && n > 0
}

func (g *group) read(c *clock) quota {
	var q quota
	var items []item
	for i := range g.structured {
		s := &g.structured[i]
		if values := s.values(c.header); len(values) > 0 {
			items = append(items, q.structured(c, values)...)
			q.origin(s)
		}
	}
	if items != nil {
		q.settle(items)
		q.origin(&g.structured[0])
	}
	for i := range g.plain {
		s := &g.plain[i]
		if values := s.values(c.header); len(values) > 0 {
			q.plain(c, s, values)
			q.origin(s)
		}
	}
	q.derive()
	return q
}

// values are the lines of the source's header, less a value that means nothing.
func (s *source) values(h http.Header) []string {
	values := h[s.name]
	if len(s.ignore) == 0 || len(values) == 0 {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		return slices.Contains(s.ignore, trim(v))
	})
}
