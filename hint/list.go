package hint

import (
	"slices"
	"strings"
)

// item is a member of a structured List (RFC 9651 §3.1) as far as RateLimit
// and RateLimit-Policy need it. A parameter that is absent is -1, and so is one
// of the wrong type.
type item struct {
	name       string // a String or a Token; empty for an Integer
	n          int64  // the Integer, or -1
	r, t, q, w int64
	unit       string
}

// maxItems bounds a list: a server that has more policies than this says
// nothing that could be heeded, and may be out to use up memory.
const maxItems = 64

// parseList reads a List of Items. It fails as a whole on the first breach of
// the grammar, as RFC 9651 §4.2 demands.
func parseList(s string) ([]item, bool) {
	p := lexer{s: strings.Trim(s, " ")}
	if p.s == "" {
		return nil, false
	}
	var items []item
	for {
		it, ok := p.item()
		if !ok || len(items) == maxItems {
			return nil, false
		}
		items = append(items, it)
		p.space(" \t")
		if p.s == "" {
			return items, true
		}
		if !p.eat(',') {
			return nil, false
		}
		if p.space(" \t"); p.s == "" {
			return nil, false
		}
	}
}

// lexer walks over a structured field.
type lexer struct{ s string }

func (p *lexer) eat(c byte) bool {
	if p.s == "" || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

func (p *lexer) space(set string) { p.s = strings.TrimLeft(p.s, set) }

func (p *lexer) item() (item, bool) {
	it := item{n: -1, r: -1, t: -1, q: -1, w: -1}
	v, ok := p.bare()
	if !ok {
		return it, false
	}
	it.name, it.n = v.text, v.n
	for p.eat(';') {
		p.space(" ")
		key, ok := p.key()
		if !ok {
			return it, false
		}
		v := value{n: -1} // a bare key is the Boolean true
		if p.eat('=') {
			if v, ok = p.bare(); !ok {
				return it, false
			}
		}
		it.set(key, v)
	}
	return it, true
}

// set keeps a parameter. The last one of a name counts (RFC 9651 §3.1.2).
func (it *item) set(key string, v value) {
	switch key {
	case "r":
		it.r = v.n
	case "t":
		it.t = v.n
	case "q":
		it.q = v.n
	case "w":
		it.w = v.n
	case "qu":
		it.unit = v.text
	}
}

// value is a bare item: text for a String or Token, n for an Integer of zero
// or more and -1 for all else.
type value struct {
	text string
	n    int64
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isAlpha(c byte) bool { return isLower(c | 0x20) }

func (p *lexer) key() (string, bool) {
	if p.s == "" || !isLower(p.s[0]) && p.s[0] != '*' {
		return "", false
	}
	return p.run(func(c byte) bool { return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0 }), true
}

// run takes the bytes that belong.
func (p *lexer) run(belongs func(byte) bool) string {
	i := 0
	for i < len(p.s) && belongs(p.s[i]) {
		i++
	}
	taken := p.s[:i]
	p.s = p.s[i:]
	return taken
}

func (p *lexer) bare() (value, bool) {
	if p.s == "" {
		return value{}, false
	}
	switch c := p.s[0]; {
	case c == '"':
		text, ok := p.quoted()
		return value{text: text, n: -1}, ok
	case isDigit(c) || c == '-':
		return p.decimal()
	case isAlpha(c) || c == '*':
		return value{text: p.run(isTokenByte), n: -1}, true
	case c == '?':
		ok := len(p.s) >= 2 && (p.s[1] == '0' || p.s[1] == '1')
		if ok {
			p.s = p.s[2:]
		}
		return value{n: -1}, ok
	case c == ':':
		end := strings.IndexByte(p.s[1:], ':')
		if end < 0 || strings.IndexFunc(p.s[1:1+end], notBase64) >= 0 {
			return value{}, false
		}
		p.s = p.s[end+2:]
		return value{n: -1}, true
	case c == '@':
		p.s = p.s[1:]
		v, ok := p.decimal()
		return value{n: -1}, ok && v.n != -1
	}
	return value{}, false
}

func isTokenByte(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}

func notBase64(r rune) bool {
	return r >= 0x80 || !isAlpha(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune("+/=", r)
}

// quoted reads a String: printable ASCII, with \" and \\ escaped.
func (p *lexer) quoted() (string, bool) {
	var text []byte
	for i := 1; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			p.s = p.s[i+1:]
			return string(text), true
		case c == '\\':
			if i++; i == len(p.s) || p.s[i] != '"' && p.s[i] != '\\' {
				return "", false
			}
			text = append(text, p.s[i])
		case c < 0x20 || c > 0x7e:
			return "", false
		default:
			text = append(text, c)
		}
	}
	return "", false
}

// decimal reads an Integer of up to 15 digits or a Decimal of up to 12 and 3.
func (p *lexer) decimal() (value, bool) {
	negative := p.eat('-')
	whole := p.run(isDigit)
	if whole == "" || len(whole) > 15 {
		return value{}, false
	}
	n, _, _ := digits(whole, maxCount)
	if p.eat('.') {
		frac := p.run(isDigit)
		return value{n: -1}, frac != "" && len(frac) <= 3 && len(whole) <= 12
	}
	if negative && n > 0 {
		n = -1
	}
	return value{n: n}, true
}

// isDictionary tells the form of draft -07, limit=100, remaining=50, from the
// lists of later drafts, which have no equals sign before a semicolon.
func isDictionary(s string) bool {
	i := strings.IndexAny(s, `=;,"`)
	return i > 0 && s[i] == '='
}

// structured reads all values of RateLimit or RateLimit-Policy into q and
// returns the items of the newer forms.
func (q *quota) structured(c *clock, values []string) []item {
	field := strings.Join(values, ", ")
	if isDictionary(field) {
		q.members(c, field)
		return nil
	}
	items, _ := parseList(field)
	return items
}

// settle takes the item that binds most, and the policy that belongs to it.
// An item without r says nothing.
func (q *quota) settle(items []item) {
	var binding *item
	for i := range items {
		it := &items[i]
		if it.n >= 0 && it.q < 0 {
			it.q = it.n // 100;w=60 is the policy of drafts -02 to -06
		}
		if it.r >= 0 && it.name != "" && (it.r == 0 || countsRequests(items, it.name)) && binds(it, binding) {
			binding = it
		}
	}
	p := policyOf(items, binding)
	if p != nil {
		q.set(hasLimit, &q.limit, p.q)
		if p.w > 0 && q.window == 0 {
			q.window, _ = amount{whole: min(p.w, maxWhole)}.times(second)
		}
	}
	if binding == nil {
		return
	}
	remaining := binding.r
	if p != nil && p.q > 0 {
		remaining = min(remaining, p.q) // more than the policy has is no promise
	}
	q.set(hasRemaining, &q.remaining, remaining)
	if binding.t >= 0 && q.has&hasReset == 0 {
		q.reset, _ = amount{whole: binding.t}.times(second)
		q.has |= hasReset
	}
}

// binds tells whether a leaves less than b; of two that are used up, the one
// that comes back later.
func binds(a, b *item) bool {
	return b == nil || a.r < b.r || a.r == b.r && a.t > b.t
}

// countsRequests is false for a policy that counts bytes or connections.
func countsRequests(items []item, name string) bool {
	return !slices.ContainsFunc(items, func(it item) bool {
		return it.name == name && it.unit != "" && it.unit != "requests"
	})
}

// policyOf finds the policy of the binding item: by name, or the only one.
// Without a binding item it is the strictest.
func policyOf(items []item, binding *item) *item {
	var strictest *item
	seen := 0
	for i := range items {
		p := &items[i]
		if p.q < 0 || p.unit != "" && p.unit != "requests" {
			continue
		}
		if binding != nil && p.name == binding.name {
			return p
		}
		seen++
		if strictest == nil || stricter(p, strictest) {
			strictest = p
		}
	}
	if binding != nil && seen > 1 {
		return nil
	}
	return strictest
}

// stricter compares quota per time; a policy without a window is the looser.
func stricter(a, b *item) bool {
	if a.w <= 0 || b.w <= 0 {
		return a.w > 0
	}
	return float64(a.q)*float64(b.w) < float64(b.q)*float64(a.w)
}
