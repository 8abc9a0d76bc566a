package hint

import (
	"net/http"
	"strings"
	"time"
)

// clock turns what a server said into a duration from the receipt of the
// answer. Instants are measured against the answer's Date where that is less
// than a day from now, because the server reckoned by that clock; it is read
// only when an instant turns up.
type clock struct {
	header http.Header
	now    time.Time

	ref    time.Time // zero: not looked up yet
	skewed bool
}

func (c *clock) reference() time.Time {
	if !c.ref.IsZero() {
		return c.ref
	}
	c.ref = c.now
	if v := c.header["Date"]; len(v) > 0 {
		if date, _, ok := httpDate(trim(v[0]), c.now); ok {
			skew := date.Sub(c.now).Abs()
			c.skewed = skew > time.Minute
			if skew < 24*time.Hour {
				c.ref = date
			}
		}
	}
	return c.ref
}

// until is how long it is to t; nothing is ever negative.
func (c *clock) until(t time.Time) (time.Duration, Flags) {
	d := t.Sub(c.reference())
	var odd Flags
	if c.skewed {
		odd = Skewed
	}
	switch {
	case d < 0:
		return 0, odd | Past
	case d > MaxWait:
		return MaxWait, odd | Saturated
	}
	return d, odd
}

// lastEpoch is the last second of the year 9999.
const lastEpoch = 253402300799

// untilEpoch is how long it is to a Unix time in seconds or milliseconds.
func (c *clock) untilEpoch(a amount, millis bool) (time.Duration, Flags) {
	sec, ns := a.whole, a.nanos
	if millis {
		sec, ns = a.whole/1000, a.whole%1000*1e6+a.nanos/1000
	}
	if sec > lastEpoch {
		return MaxWait, Saturated
	}
	return c.until(time.Unix(sec, ns))
}

// reading is the longest of the waits added to it.
type reading struct {
	wait time.Duration
	odd  Flags
	ok   bool
}

func (r *reading) add(wait time.Duration, odd Flags, ok bool) {
	if ok && (!r.ok || wait > r.wait) {
		*r = reading{wait, odd, true}
	}
}

// longest reads all values of a field and returns the longest valid wait. A
// field that should be single and is not arrives as several lines or as one
// list (RFC 9110 §5.3).
func (c *clock) longest(f Format, values []string) reading {
	var best reading
	repeated := len(values) > 1
	for _, value := range values {
		value = trim(value)
		d, odd, ok := c.read(f, value)
		if best.add(d, odd, ok); ok || strings.IndexByte(value, ',') < 0 {
			continue
		}
		for value != "" {
			m, rest := cutMember(value)
			repeated = repeated || m != value
			best.add(c.read(f, m))
			value = rest
		}
	}
	if repeated {
		best.odd |= Repeated
	}
	return best
}

// cutMember cuts the first member off a list. The comma behind the name of a
// day belongs to a date.
func cutMember(s string) (member, rest string) {
	i := strings.IndexByte(s, ',')
	if i >= 0 && isDay(trim(s[:i])) {
		j := strings.IndexByte(s[i+1:], ',')
		if j < 0 {
			return trim(s), ""
		}
		i += 1 + j
	}
	if i < 0 {
		return trim(s), ""
	}
	return trim(s[:i]), s[i+1:]
}

// read reads one value as a wait.
func (c *clock) read(f Format, s string) (time.Duration, Flags, bool) {
	switch f {
	case RetryAfter:
		return c.retryAfter(s)
	case Seconds:
		return c.seconds(s)
	case Millis:
		return c.millis(s)
	case EpochSeconds, EpochMillis:
		return c.epoch(f, s)
	case HTTPDate:
		return c.date(s, httpDate)
	case ISO8601:
		return c.date(s, isoTime)
	case GoDuration:
		return c.goDuration(s)
	case ProtoDuration:
		return protoDuration(s)
	}
	return 0, 0, false
}

// retryAfter reads delay-seconds or a date in any of its forms. A number is
// tried first, so that no date parser takes it for a year.
func (c *clock) retryAfter(s string) (time.Duration, Flags, bool) {
	if a, rest, ok := number(s); ok && rest == "" {
		d, odd := c.delta(a)
		if a.point {
			odd |= Lenient // RFC 9110 knows whole seconds only; Shopify and Sentry do not
		}
		return d, odd, true
	}
	if d, odd, ok := c.date(s, httpDate); ok {
		return d, odd, true
	}
	d, odd, ok := c.date(s, isoTime)
	return d, odd | Lenient, ok
}

// seconds reads delta seconds, whole or with a fraction.
func (c *clock) seconds(s string) (time.Duration, Flags, bool) {
	a, rest, ok := number(s)
	if !ok || rest != "" {
		return 0, 0, false
	}
	d, odd := c.delta(a)
	return d, odd, true
}

// delta is a number of seconds, or a Unix time where it cannot be one.
func (c *clock) delta(a amount) (d time.Duration, odd Flags) {
	if a.plus {
		odd = Lenient
	}
	if a.whole >= firstEpoch {
		d, more := c.untilEpoch(a, a.whole >= firstEpochMillis)
		return d, odd | more | EpochGuess
	}
	d, sat := a.times(time.Second)
	if sat {
		odd |= Saturated
	}
	return d, odd
}

func (c *clock) millis(s string) (time.Duration, Flags, bool) {
	a, rest, ok := number(s)
	if !ok || rest != "" {
		return 0, 0, false
	}
	var odd Flags
	if a.plus {
		odd = Lenient
	}
	if a.whole >= firstEpochMillis {
		d, more := c.untilEpoch(a, true)
		return d, odd | more | EpochGuess, true
	}
	d, sat := a.times(time.Millisecond)
	if sat {
		odd |= Saturated
	}
	return d, odd, true
}

// epoch reads a Unix time. A value that is one only in the other unit is read
// in that; one that is in neither is no time at all, and never "long past".
func (c *clock) epoch(f Format, s string) (time.Duration, Flags, bool) {
	a, rest, ok := number(s)
	if !ok || rest != "" || a.whole < firstEpoch {
		return 0, 0, false
	}
	millis := a.whole >= firstEpochMillis
	d, odd := c.untilEpoch(a, millis)
	if a.plus {
		odd |= Lenient
	}
	if millis != (f == EpochMillis) {
		odd |= EpochGuess
	}
	return d, odd, true
}

func (c *clock) date(s string, parse func(string, time.Time) (time.Time, bool, bool)) (time.Duration, Flags, bool) {
	t, exact, ok := parse(s, c.now)
	if !ok {
		return 0, 0, false
	}
	d, odd := c.until(t)
	if !exact {
		odd |= Lenient
	}
	return d, odd, true
}

// units of a Go duration, longest name first where one begins another.
var units = []struct {
	name string
	unit time.Duration
}{
	{"ns", time.Nanosecond}, {"us", time.Microsecond}, {"µs", time.Microsecond}, {"μs", time.Microsecond},
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// goDuration reads 6m0s, 17ms, 1m26.4s; a bare number is seconds (GitHub
// Models sends one where OpenAI sends a duration), or a Unix time where it
// cannot be seconds.
func (c *clock) goDuration(s string) (sum time.Duration, odd Flags, ok bool) {
	a, rest, ok := number(s)
	if ok && rest == "" {
		d, odd := c.delta(a)
		return d, odd, true
	}
	for s != "" {
		if a, rest, ok = number(s); !ok {
			return 0, 0, false
		}
		unit := time.Duration(0)
		for _, u := range units {
			if after, found := strings.CutPrefix(rest, u.name); found {
				unit, s = u.unit, after
				break
			}
		}
		if unit == 0 || a.plus {
			return 0, 0, false
		}
		d, sat := a.times(unit)
		odd |= saturatedIf(sat)
		if sum, sat = capped(sum + d); sat {
			odd |= Saturated
		}
	}
	return sum, odd, ok
}

// protoDuration reads the JSON form of google.protobuf.Duration: 31s, 0.1s.
func protoDuration(s string) (time.Duration, Flags, bool) {
	a, rest, ok := number(s)
	if !ok || a.plus || rest != "s" {
		return 0, 0, false
	}
	d, sat := a.times(time.Second)
	return d, saturatedIf(sat), true
}

func saturatedIf(sat bool) Flags {
	if sat {
		return Saturated
	}
	return 0
}

// ParseWait reads texts, the lines of a header or a member of a body, as one
// wait from now: the longest of those that can be read. It fails where none can
// be, on negative values, and on a format that is no time.
func ParseWait(f Format, texts []string, now time.Time) (time.Duration, Flags, bool) {
	if f == KeyValue {
		var values []string
		for _, text := range texts {
			if v, ok := member(text, "", resetNames); ok {
				values = append(values, v)
			}
		}
		texts, f = values, RetryAfter
	}
	c := clock{now: now}
	r := c.longest(f, texts)
	return r.wait, r.odd, r.ok
}

// Member is the value of the member key of a list such as total=100; resets=41,
// or "".
func Member(list, key string) string {
	v, _ := member(list, key, nil)
	return v
}
