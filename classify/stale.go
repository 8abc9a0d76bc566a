package classify

import (
	"math"
	"strings"
	"time"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// stale says why the answer to a read is older than agreed, or "".
func stale(x *Exchange, v *policy.Verify) string {
	if !safe(x.Method) {
		return ""
	}
	if v.MaxAge > 0 {
		if age(x) > v.MaxAge {
			return "older than verify.max_age"
		}
		if servedStale(x.Header["Cache-Status"]) {
			return "a cache served it past its life"
		}
	}
	if v.MaxUnmodified > 0 {
		// A date that lies ahead of us is a skewed clock, not an old copy.
		if t, ok := hint.ParseDate(first(x.Header, "Last-Modified"), x.Now); ok && x.Now.Sub(t) > v.MaxUnmodified {
			return "unmodified for longer than verify.max_unmodified"
		}
	}
	return ""
}

// age is how old the answer is (RFC 9111 §4.2.3): what the caches counted plus
// the time it took to get here, or the time since its Date, if that is more.
// What cannot be read counts as nothing.
func age(x *Exchange) time.Duration {
	var age time.Duration
	if n, ok := ageSeconds(first(x.Header, "Age")); ok {
		age = n
		if delay := x.Now.Sub(x.SentAt); !x.SentAt.IsZero() && delay > 0 {
			age += delay
		}
	}
	if t, ok := hint.ParseDate(first(x.Header, "Date"), x.Now); ok && !x.Now.IsZero() {
		age = max(age, x.Now.Sub(t))
	}
	return age
}

// ageSeconds reads an Age. Of a list the first member counts (RFC 9111 §5.1);
// a number too large for the arithmetic is simply very old (§1.2.2).
func ageSeconds(s string) (time.Duration, bool) {
	s, _, _ = strings.Cut(s, ",")
	s = strings.Trim(s, " \t")
	var n int64
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), math.MaxInt32)
	}
	return time.Duration(n) * time.Second, s != ""
}

// servedStale tells whether a cache on the way says, by Cache-Status (RFC 9211),
// that it answered from its store with a copy past its life. A field that is
// malformed counts as absent (RFC 9651 §4.2). X-Cache says no such thing.
func servedStale(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	f := fields{s: lines[0]}
	if len(lines) > 1 {
		f.s = strings.Join(lines, ",")
	}
	found := false
	for f.member() {
		var hit, past bool
		for f.param() {
			switch f.key {
			case "hit":
				hit = f.value == "" || f.value == "?1"
			case "ttl":
				past = f.whole() && f.value[0] == '-' && strings.Trim(f.value, "-0") != ""
			}
		}
		found = found || hit && past
	}
	return found && !f.bad
}

// fields walks a structured-field list of items with parameters (RFC 9651 §3.1).
type fields struct {
	s     string // the rest
	begun bool
	bad   bool // the whole field counts for nothing

	key, value string // the last parameter
}

// member goes to the next item.
func (f *fields) member() bool {
	f.s = strings.TrimLeft(f.s, " \t")
	if f.bad || f.s == "" {
		return false
	}
	if f.begun {
		if f.s[0] != ',' {
			return f.fail()
		}
		f.s = strings.TrimLeft(f.s[1:], " \t")
	}
	f.begun = true
	if _, ok := f.item(); !ok {
		return f.fail()
	}
	return true
}

// param goes to the next parameter of the item. One without a value is true.
func (f *fields) param() bool {
	if f.bad || f.s == "" || f.s[0] != ';' {
		return false
	}
	f.s = strings.TrimLeft(f.s[1:], " ")
	n := 0
	for n < len(f.s) && keyByte(f.s[n], n == 0) {
		n++
	}
	if n == 0 {
		return f.fail()
	}
	f.key, f.value, f.s = f.s[:n], "", f.s[n:]
	if rest, ok := strings.CutPrefix(f.s, "="); ok {
		f.s = rest
		if f.value, ok = f.item(); !ok {
			return f.fail()
		}
	}
	return true
}

func (f *fields) fail() bool {
	f.bad = true
	return false
}

// item reads a bare item and returns it as it is written.
func (f *fields) item() (string, bool) {
	if f.s == "" {
		return "", false
	}
	n := 1
	if f.s[0] == '"' {
		for ; n < len(f.s) && f.s[n] != '"'; n++ {
			if f.s[n] == '\\' {
				n++
			}
			if n >= len(f.s) || f.s[n] < ' ' || f.s[n] > '~' {
				return "", false
			}
		}
		if n++; n > len(f.s) {
			return "", false
		}
	} else {
		for n < len(f.s) && strings.IndexByte("\" \t,;=()", f.s[n]) < 0 {
			n++
		}
		if !bareItem(f.s[:n]) {
			return "", false
		}
	}
	item := f.s[:n]
	f.s = f.s[n:]
	return item, true
}

// bareItem tells whether s can be a token, number, boolean, date or byte sequence.
func bareItem(s string) bool {
	switch c := s[0]; {
	case c|0x20 >= 'a' && c|0x20 <= 'z', c == '*', c == ':', c == '@':
		return true
	case c == '?':
		return s == "?0" || s == "?1"
	case c == '-' || isDigit(c):
		return strings.Trim(s, "-.0123456789") == "" && strings.LastIndexByte(s, '-') <= 0 && isDigit(s[len(s)-1])
	}
	return false
}

// whole tells whether the value of the last parameter is an integer.
func (f *fields) whole() bool {
	return f.value != "" && (f.value[0] == '-' || isDigit(f.value[0])) && strings.IndexByte(f.value, '.') < 0
}

func keyByte(c byte, first bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c == '*':
		return true
	case first:
		return false
	}
	return isDigit(c) || c == '_' || c == '-' || c == '.'
}
