package hint

import (
	"bytes"
	"strings"
	"time"
)

var months = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
var days = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// isDay tells whether s names a day of the week, whole or by three letters.
func isDay(s string) bool {
	for _, d := range days {
		if strings.EqualFold(s, d) || strings.EqualFold(s, d[:3]) {
			return true
		}
	}
	return false
}

// ParseDate reads an HTTP-date in any of the three forms of RFC 9110 §5.6.7,
// and what servers send instead: another zone, other case, no day of the week.
// now decides the century of a year with two digits.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	t, _, ok := httpDate(trim(s), now)
	return t, ok
}

// longestDate bounds what is looked at as a date, in bytes.
const longestDate = 64

// httpDate reads a date; exact tells that it keeps to the grammar.
func httpDate(s string, now time.Time) (t time.Time, exact, ok bool) {
	if len(s) > longestDate {
		return time.Time{}, false, false
	}
	p := dateParser{s: s, now: now}
	if !p.parse() {
		return time.Time{}, false, false
	}
	t, ok = p.clock.on(p.year, p.month, p.day)
	return t, ok && spelled(s, t, p.clock.sec == 60), ok
}

// spelled tells whether s is t as one of the three grammars writes it.
func spelled(s string, t time.Time, leap bool) bool {
	if leap {
		t = t.Add(-time.Second)
	}
	var buf [longestDate]byte
	for _, layout := range [...]string{
		"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC,
	} {
		b := t.AppendFormat(buf[:0], layout)
		if leap {
			copy(b[bytes.LastIndexByte(b, ':')+1:], "60")
		}
		if string(b) == s {
			return true
		}
	}
	return false
}

// dateParser walks over a date: words, numbers and what stands between them.
type dateParser struct {
	s                string
	now              time.Time
	year, month, day int64
	clock            timeOfDay
}

// timeOfDay is a time in a zone.
type timeOfDay struct {
	hour, min, sec, ns int64
	offset             time.Duration // east of UTC
}

// on returns the instant on a day, if there is such a day and time. A leap
// second is the second after :59.
func (c timeOfDay) on(year, month, day int64) (time.Time, bool) {
	if c.hour > 23 || c.min > 59 || c.sec > 60 || year > 9999 {
		return time.Time{}, false
	}
	date := time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	if int64(date.Day()) != day || int64(date.Month()) != month {
		return time.Time{}, false
	}
	since := time.Duration(c.hour)*time.Hour + time.Duration(c.min)*time.Minute + time.Duration(c.sec)*time.Second
	return date.Add(since + time.Duration(c.ns) - c.offset), true
}

func (p *dateParser) parse() bool {
	p.weekday()
	if p.s != "" && isDigit(p.s[0]) {
		return p.dayFirst()
	}
	return p.monthFirst()
}

// weekday skips the name of a day. A wrong one does no harm: day, month and
// year say which day is meant.
func (p *dateParser) weekday() {
	if w := word(p.s); isDay(w) {
		p.s = strings.TrimLeft(p.s[len(w):], ", \t")
	}
}

// dayFirst reads 15 Jul 2026 02:20:00 GMT and 15-Jul-26 02:20:00 GMT.
func (p *dateParser) dayFirst() bool {
	var ok bool
	if p.day, p.s, ok = digits(p.s, maxWhole); !ok || !p.skip(" -") || !p.monthName() || !p.skip(" -") {
		return false
	}
	before := len(p.s)
	if p.year, p.s, ok = digits(p.s, maxWhole); !ok {
		return false
	}
	switch before - len(p.s) {
	case 2:
		// A year that seems to lie more than 50 years ahead is the last one
		// with these digits (RFC 9110 §5.6.7).
		this := int64(p.now.Year())
		if p.year += this / 100 * 100; p.year > this+50 {
			p.year -= 100
		}
	case 4:
	default:
		return false
	}
	if !p.skip(" ") {
		return false
	}
	if p.clock, p.s, ok = readTime(p.s); !ok || !p.skip(" ") {
		return false
	}
	p.clock.offset, ok = zone(p.s)
	return ok
}

// monthFirst reads Jul 15 02:20:00 2026, the form of asctime, which is UTC.
func (p *dateParser) monthFirst() bool {
	var ok bool
	if !p.monthName() || !p.skip(" ") {
		return false
	}
	if p.day, p.s, ok = digits(p.s, maxWhole); !ok || !p.skip(" ") {
		return false
	}
	if p.clock, p.s, ok = readTime(p.s); !ok || !p.skip(" ") {
		return false
	}
	for _, utc := range []string{"GMT ", "UTC "} {
		p.s = strings.TrimPrefix(p.s, utc)
	}
	before := len(p.s)
	p.year, p.s, ok = digits(p.s, maxWhole)
	return ok && before == 4 && p.s == ""
}

func (p *dateParser) monthName() bool {
	w := word(p.s)
	for i, name := range months {
		if len(w) >= 3 && len(w) <= 9 && strings.EqualFold(w[:3], name) {
			p.month, p.s = int64(i+1), p.s[len(w):]
			return true
		}
	}
	return false
}

// skip passes over at least one of the separators in set.
func (p *dateParser) skip(set string) bool {
	rest := strings.TrimLeft(p.s, set)
	skipped := len(rest) < len(p.s)
	p.s = rest
	return skipped
}

// word is the run of letters that s begins with.
func word(s string) string {
	i := 0
	for i < len(s) && ('a' <= s[i]|0x20 && s[i]|0x20 <= 'z') {
		i++
	}
	return s[:i]
}

// readTime reads hh:mm:ss.
func readTime(s string) (c timeOfDay, rest string, ok bool) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return c, "", false
	}
	for i, part := range []*int64{&c.hour, &c.min, &c.sec} {
		n, after, ok := digits(s[3*i:3*i+2], maxWhole)
		if !ok || after != "" {
			return c, "", false
		}
		*part = n
	}
	return c, s[8:], true
}

// zone reads GMT, UTC, Z or a numeric offset.
func zone(s string) (time.Duration, bool) {
	switch strings.ToUpper(s) {
	case "GMT", "UTC", "UT", "Z":
		return 0, true
	}
	if len(s) < 3 || (s[0] != '+' && s[0] != '-') {
		return 0, false
	}
	hours, rest, ok := digits(s[1:3], 99)
	if !ok || rest != "" || hours > 23 {
		return 0, false
	}
	offset := time.Duration(hours) * time.Hour
	if min := strings.TrimPrefix(s[3:], ":"); min != "" {
		n, rest, ok := digits(min, 99)
		if !ok || rest != "" || len(min) != 2 || n > 59 {
			return 0, false
		}
		offset += time.Duration(n) * time.Minute
	}
	if s[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// isoTime reads RFC 3339 and its relatives: a space for the T, no seconds
// (Jira), no colon in the zone, no zone at all (UTC).
func isoTime(s string, _ time.Time) (t time.Time, exact, ok bool) {
	if len(s) < len("2006-01-02T15:04") || len(s) > longestDate || s[4] != '-' || s[7] != '-' || s[13] != ':' ||
		!strings.ContainsRune("Tt ", rune(s[10])) {
		return time.Time{}, false, false
	}
	var part [5]int64
	for i, at := range [...]string{s[0:4], s[5:7], s[8:10], s[11:13], s[14:16]} {
		n, rest, ok := digits(at, maxWhole)
		if !ok || rest != "" {
			return time.Time{}, false, false
		}
		part[i] = n
	}
	c := timeOfDay{hour: part[3], min: part[4]}
	rest := s[16:]
	if rest != "" && rest[0] == ':' {
		a, after, ok := number(rest[1:])
		if !ok || a.plus || len(rest) < 3 || !isDigit(rest[2]) {
			return time.Time{}, false, false
		}
		c.sec, c.ns, rest = a.whole, a.nanos, after
	}
	if rest = trim(rest); rest != "" {
		if c.offset, ok = zone(rest); !ok {
			return time.Time{}, false, false
		}
	}
	t, ok = c.on(part[0], part[1], part[2])
	return t, true, ok
}
