package hint

import (
	"strings"
	"time"
)

const second = time.Second

// What a quota has.
const (
	hasLimit uint8 = 1 << iota
	hasRemaining
	hasReset
	hasUsed
)

// quota is what one group of headers says.
type quota struct {
	limit, remaining, used int64
	reset, window          time.Duration
	has                    uint8
	from                   string // the header that gave reset
}

// origin keeps the first header that gave a reset.
func (q *quota) origin(s *source) {
	if q.from == "" && q.has&hasReset != 0 {
		q.from = s.name
	}
}

// set keeps the first value of a field.
func (q *quota) set(bit uint8, to *int64, n int64) {
	if q.has&bit == 0 {
		*to, q.has = n, q.has|bit
	}
}

// rank orders quotas by how much they matter: one that is used up before one
// that tells what remains, before one that tells only the limit.
func (q *quota) rank() int {
	switch {
	case q.has&hasRemaining != 0 && q.remaining == 0:
		return 3
	case q.has&(hasRemaining|hasReset) != 0:
		return 2
	case q.has != 0 || q.window > 0:
		return 1
	}
	return 0
}

// derive computes what remains where only limit and use are told.
func (q *quota) derive() {
	if q.has&(hasUsed|hasLimit|hasRemaining) == hasUsed|hasLimit {
		q.set(hasRemaining, &q.remaining, max(q.limit-q.used, 0))
	}
}

// plain reads one header that holds one field.
func (q *quota) plain(c *clock, s *source, values []string) {
	switch s.field {
	case Remaining:
		if n, ok := fewest(s, values); ok {
			q.set(hasRemaining, &q.remaining, n)
		}
	case Used:
		if n, ok := fewest(s, values); ok {
			q.set(hasUsed, &q.used, n)
		}
	case Limit:
		q.limits(s, values)
	case Reset:
		if r := s.wait(c, values); r.ok && q.has&hasReset == 0 {
			q.reset, q.has = r.wait, q.has|hasReset
		}
	case Window:
		if r := s.wait(c, values); r.ok && q.window == 0 {
			q.window = r.wait
		}
	case Quota:
		for _, v := range values {
			if s.format == UsedTotal {
				q.ratio(v, s.key)
			} else {
				q.members(c, v)
			}
		}
	}
}

// wait reads the values of a source that holds a time.
func (s *source) wait(c *clock, values []string) reading {
	f := s.format
	switch f {
	case KeyValue:
		v, _ := member(values[0], s.key, resetNames)
		values, f = []string{v}, RetryAfter
	case Number:
		f = Seconds
	}
	return c.longest(f, values)
}

// fewest reads a count; of several the smallest is the safest. A fraction is
// cut off.
func fewest(s *source, values []string) (least int64, ok bool) {
	for _, v := range values {
		if s.format == KeyValue {
			v, _ = member(v, s.key, remainingNames)
		}
		for v != "" {
			var m string
			m, v = cutMember(v)
			n, rest, valid := digits(m, maxCount)
			if strings.HasPrefix(rest, ".") {
				_, rest, _ = digits(rest[1:], maxCount)
			}
			if valid && rest == "" && (!ok || n < least) {
				least, ok = n, true
			}
		}
	}
	return least, ok
}

// limits reads a limit with the policies that drafts -02 to -06 append:
// 10, 10;w=1, 50;w=60. The window is that of the policy with the same number.
// A limit of nothing is no limit.
func (q *quota) limits(s *source, values []string) {
	for _, v := range values {
		if s.format == KeyValue {
			v, _ = member(v, s.key, limitNames)
		}
		for v != "" {
			var m string
			m, v = cutMember(v)
			n, rest, ok := digits(m, maxCount)
			if !ok || n == 0 || rest != "" && !strings.ContainsRune(" .:;", rune(rest[0])) {
				continue
			}
			q.set(hasLimit, &q.limit, n)
			if w, found := strings.CutPrefix(rest, ";w="); found && n == q.limit && q.window == 0 {
				a, after, _ := digits(w, maxWhole)
				if after == "" || after[0] == ';' {
					q.window, _ = amount{whole: a}.times(second)
				}
			}
		}
	}
}

// ratio reads used/total: 32/40 (Shopify), or a list of named ones,
// api-usage=25/5000; per-app-api-usage=17/250(appName=x) (Salesforce).
func (q *quota) ratio(s, key string) {
	for s != "" {
		var m string
		m, s, _ = strings.Cut(s, ";")
		name, v, named := strings.Cut(trim(m), "=")
		if !named || !strings.Contains(v, "/") {
			name, v = "", trim(m)
		}
		if key != "" && !strings.EqualFold(name, key) {
			continue
		}
		used, rest, ok := digits(v, maxCount)
		if !ok || rest == "" || rest[0] != '/' {
			continue
		}
		total, rest, ok := digits(rest[1:], maxCount)
		if !ok || total == 0 || rest != "" && rest[0] != '(' {
			continue
		}
		q.set(hasLimit, &q.limit, total)
		q.set(hasUsed, &q.used, used)
		return
	}
}

// The usual names of the members of a key=value list.
var (
	limitNames     = []string{"limit", "total", "quota", "max"}
	remainingNames = []string{"remaining", "left"}
	resetNames     = []string{"reset", "resets", "reset_in", "resets_in"}
	usedNames      = []string{"used"}
	windowNames    = []string{"window", "w"}
)

// members reads total=100; remaining=99; resets=41 (Zendesk) and limit=100,
// remaining=50, reset=5 (draft -07). What cannot be read is left out.
func (q *quota) members(c *clock, s string) {
	count := func(names []string) (int64, bool) {
		v, _ := member(s, "", names)
		n, rest, ok := digits(v, maxCount)
		return n, ok && rest == ""
	}
	if n, ok := count(limitNames); ok && n > 0 {
		q.set(hasLimit, &q.limit, n)
	}
	if n, ok := count(remainingNames); ok {
		q.set(hasRemaining, &q.remaining, n)
	}
	if n, ok := count(usedNames); ok {
		q.set(hasUsed, &q.used, n)
	}
	if v, ok := member(s, "", resetNames); ok && q.has&hasReset == 0 {
		if d, _, ok := c.retryAfter(v); ok {
			q.reset, q.has = d, q.has|hasReset
		}
	}
	if v, ok := member(s, "", windowNames); ok && q.window == 0 {
		if d, _, ok := c.goDuration(v); ok {
			q.window = d
		}
	}
}

// member returns the value of the member key of a key=value list, or, without
// a key, of the first member that bears one of names.
func member(s, key string, names []string) (string, bool) {
	for s != "" {
		m := s
		if i := strings.IndexAny(s, ";,"); i >= 0 {
			m, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		name, v, ok := strings.Cut(m, "=")
		if !ok {
			continue
		}
		name = trim(name)
		if key != "" && strings.EqualFold(name, key) {
			return trim(v), true
		}
		for _, n := range names {
			if key == "" && strings.EqualFold(name, n) {
				return trim(v), true
			}
		}
	}
	return "", false
}
