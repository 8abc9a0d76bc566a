package observe

import (
	"log/slog"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// line is one log line while it is written, by hand: reflection and the
// boxing of values would cost more than everything else an Observer does.
// The output is that of slog.JSONHandler, or slog.TextHandler if text.
type line struct {
	b    []byte
	text bool
}

// begin starts the line with what every slog line has.
func (l *line) begin(t time.Time, level slog.Level, msg string) {
	l.b = l.b[:0]
	if l.text {
		l.b = append(l.b, "time="...)
		l.b = appendMillis(l.b, t)
		l.b = append(l.b, " level="...)
		l.b = append(l.b, level.String()...)
		l.str("msg", msg)
		return
	}
	l.b = append(l.b, `{"time":"`...)
	l.b = t.AppendFormat(l.b, time.RFC3339Nano)
	l.b = append(l.b, `","level":"`...)
	l.b = append(l.b, level.String()...)
	l.b = append(l.b, '"')
	l.str("msg", msg)
}

// end finishes the line and returns it; it is valid until the next begin.
func (l *line) end() []byte {
	if !l.text {
		l.b = append(l.b, '}')
	}
	l.b = append(l.b, '\n')
	return l.b
}

func (l *line) key(k string) {
	if l.text {
		l.b = append(l.b, ' ')
		l.b = append(l.b, k...)
		l.b = append(l.b, '=')
		return
	}
	l.b = append(l.b, ',', '"')
	l.b = append(l.b, k...)
	l.b = append(l.b, '"', ':')
}

func (l *line) str(k, v string) {
	l.key(k)
	switch {
	case !l.text:
		l.b = appendJSON(l.b, v)
	case needsQuotes(v):
		l.b = strconv.AppendQuote(l.b, v)
	default:
		l.b = append(l.b, v...)
	}
}

// some writes v unless it is empty.
func (l *line) some(k, v string) {
	if v != "" {
		l.str(k, v)
	}
}

func (l *line) num(k string, v int64) {
	l.key(k)
	l.b = strconv.AppendInt(l.b, v, 10)
}

func (l *line) flag(k string, v bool) {
	l.key(k)
	l.b = strconv.AppendBool(l.b, v)
}

// secs writes d as a decimal number of seconds, to the microsecond.
func (l *line) secs(k string, d time.Duration) {
	l.key(k)
	us := d.Microseconds()
	if us < 0 {
		l.b = append(l.b, '-')
		us = -us
	}
	l.b = strconv.AppendInt(l.b, us/1e6, 10)
	frac := us % 1e6
	if frac == 0 {
		return
	}
	l.b = append(l.b, '.')
	for unit := int64(1e5); frac > 0; unit /= 10 {
		l.b = append(l.b, '0'+byte(frac/unit))
		frac %= unit
	}
}

// appendMillis appends t as slog.TextHandler does: RFC 3339 with exactly
// three digits of a second.
func appendMillis(b []byte, t time.Time) []byte {
	return t.AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
}

// plain tells the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendJSON appends s as a JSON string. Unlike slog it also escapes DEL and
// the C1 control characters: a terminal that shows the log obeys them.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r >= 0xa0 && r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, r)
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// needsQuotes tells whether slog.TextHandler would quote s.
func needsQuotes(s string) bool {
	if s == "" {
		return true
	}
	for _, r := range s {
		switch {
		case r == ' ' || r == '=' || r == '"' || r == utf8.RuneError:
			return true
		case !unicode.IsPrint(r):
			return true
		}
	}
	return false
}

// bound shortens s, which somebody outside chose, to at most n bytes.
func bound(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "…"
	cut := n - len(more)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + more
}
