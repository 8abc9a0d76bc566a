package hint

import (
	"math/bits"
	"time"
)

const (
	// maxWhole bounds whole numbers; what is larger stands for "very large".
	maxWhole = 1 << 53
	// maxCount is the largest integer of a structured field (RFC 9651 §3.3.1).
	maxCount = 999_999_999_999_999

	// A number of seconds from firstEpoch on is read as a Unix time, from
	// firstEpochMillis on as one in milliseconds: 1e9 seconds are 31 years,
	// 1e12 the year 33658.
	firstEpoch       = 1_000_000_000
	firstEpochMillis = 1_000_000_000_000
)

// amount is an unsigned decimal number, exact to the nanosecond.
type amount struct {
	whole int64 // at most maxWhole
	nanos int64 // the fraction, rounded up
	plus  bool  // written with a sign
	point bool  // written with a decimal point
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits reads the digits that s begins with and saturates at top.
func digits(s string, top int64) (n int64, rest string, ok bool) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		if n = n*10 + int64(s[i]-'0'); n > top {
			n = top
		}
		i++
	}
	return n, s[i:], i > 0
}

// number reads the decimal number that s begins with: [+] digits [. digits].
// There is no exponent, no hexadecimal, no sign but plus.
func number(s string) (a amount, rest string, ok bool) {
	if s != "" && s[0] == '+' {
		a.plus, s = true, s[1:]
	}
	if a.whole, s, ok = digits(s, maxWhole); !ok {
		return amount{}, "", false
	}
	if s == "" || s[0] != '.' {
		return a, s, true
	}
	a.point = true
	scale := int64(100_000_000)
	inexact := false
	i := 1
	for ; i < len(s) && isDigit(s[i]); i++ {
		a.nanos += int64(s[i]-'0') * scale
		inexact = inexact || scale == 0 && s[i] != '0'
		scale /= 10
	}
	if inexact {
		a.nanos++
	}
	return a, s[i:], true
}

// times returns a·unit rounded up to the millisecond, so that nothing is read
// as earlier than it was said; sat tells that it is MaxWait and stands for more.
func (a amount) times(unit time.Duration) (d time.Duration, sat bool) {
	if a.whole > int64(MaxWait/unit) {
		return MaxWait, true
	}
	d = time.Duration(a.whole) * unit
	if a.nanos > 0 {
		hi, lo := bits.Mul64(uint64(a.nanos), uint64(unit))
		part, rem := bits.Div64(hi, lo, uint64(time.Second))
		if rem > 0 {
			part++
		}
		d += time.Duration(part)
	}
	return capped(ceilMillis(d))
}

func ceilMillis(d time.Duration) time.Duration {
	if rem := d % time.Millisecond; rem > 0 {
		d += time.Millisecond - rem
	}
	return d
}

func capped(d time.Duration) (time.Duration, bool) {
	if d > MaxWait {
		return MaxWait, true
	}
	return d, false
}

// trim cuts optional white space (RFC 9110 §5.6.3) off both ends.
func trim(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}
