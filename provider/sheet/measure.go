package sheet

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)` +
	`(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`

// Duration is a time span of zero or more, such as 90s or 1m30s.
func Duration(p *time.Duration) Value { return span(p, 0) }

// Zero is what 0s stands for where a zero Go value means the default: none is
// taken, or it is written as another value, such as a negative one.
type Zero time.Duration

// Refused is the Zero of a span that cannot be nothing.
const Refused Zero = math.MinInt64

// DurationZero is a Duration whose 0s means zero.
func DurationZero(p *time.Duration, zero Zero) Value { return span(p, zero) }

func span(p *time.Duration, zero Zero) Value {
	return Parsed{
		Parse: func(text string) error {
			d, err := parseDuration(text)
			switch {
			case err != nil:
				return err
			case d != 0:
				*p = d
			case zero == Refused:
				return errors.New("zero is not possible here; leave the key out for the default")
			default:
				*p = time.Duration(zero)
			}
			return nil
		},
		Show: func() (string, bool) {
			if *p < 0 || zero != 0 && *p == time.Duration(zero) {
				return "0s", true
			}
			return ShowDuration(*p), true
		},
		Remedy:  "write a duration with its unit, such as 90s or 1m30s",
		Pattern: durationPattern + "|^0$",
		Example: "90s",
		Numeric: false,
	}
}

func parseDuration(text string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil && text != "0" {
		return 0, fmt.Errorf("%s has no unit", quote(text))
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is not a duration", quote(text))
	case d < 0:
		return 0, fmt.Errorf("%s is negative", quote(text))
	}
	return d, nil
}

// ShowDuration writes d without units that say zero: 1m, not 1m0s.
func ShowDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// units of a rate, the finest first.
var units = []struct {
	name string
	span time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// Patterns of this package are compiled when they are first used: it takes time
// that every start of heed would pay.
var ratePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)/([0-9]+)?(s|min|h|d)$`)
})

// Rate is a number of requests per time, such as 25/s, 1000/min or 3/2s; the
// Go value is per second.
func Rate(p *float64) Value {
	return Parsed{
		Parse: func(text string) error {
			r, err := parseRate(text)
			if err == nil {
				*p = r
			}
			return err
		},
		Show:    func() (string, bool) { return ShowRate(*p), *p > 0 },
		Remedy:  "write requests per time, such as 25/s, 1000/min, 100000/d or 3/2s",
		Pattern: ratePattern().String(),
		Example: "25/s",
	}
}

func parseRate(text string) (float64, error) {
	m := ratePattern().FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s is not a rate", quote(text))
	}
	count, err := strconv.ParseFloat(m[1], 64)
	per := 1.0
	if m[2] != "" {
		per, _ = strconv.ParseFloat(m[2], 64)
	}
	if err != nil || per == 0 || math.IsInf(per, 0) {
		return 0, fmt.Errorf("%s is not a rate", quote(text))
	}
	for _, u := range units {
		if u.name == m[3] {
			per *= u.span.Seconds()
		}
	}
	return count / per, nil
}

// ShowRate writes r per the first unit that makes it a whole number.
func ShowRate(r float64) string {
	for _, u := range units {
		count := math.Round(r * u.span.Seconds())
		if count >= 1 && count/u.span.Seconds() == r {
			return strconv.FormatFloat(count, 'f', -1, 64) + "/" + u.name
		}
	}
	return strconv.FormatFloat(r, 'f', -1, 64) + "/s"
}

var sizePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+)(B|KiB|MiB|GiB|TiB|KB|MB|GB)?$`)
})

var factors = map[string]int64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// Size is a number of bytes, such as 64KiB. Where zero is false, 0 is refused.
func Size[T ~int | ~int64](p *T, zero bool) Value {
	return Parsed{
		Parse: func(text string) error {
			v, err := parseSize(text)
			if err == nil && v == 0 && !zero {
				err = errors.New("zero is not possible here; leave the key out for the default")
			}
			if err == nil {
				*p = T(v)
			}
			return err
		},
		Show:    func() (string, bool) { return showSize(int64(*p)), true },
		Remedy:  "write a size, such as 64KiB or 1GiB",
		Pattern: sizePattern().String(),
		Example: "64KiB",
		Numeric: true,
	}
}

func parseSize(text string) (int64, error) {
	m := sizePattern().FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s is not a size", quote(text))
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || v > math.MaxInt64/factors[m[2]] {
		return 0, fmt.Errorf("%s is out of range", quote(text))
	}
	return v * factors[m[2]], nil
}

func showSize(v int64) string {
	for _, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if f := factors[unit]; v >= f && v%f == 0 {
			return strconv.FormatInt(v/f, 10) + unit
		}
	}
	return strconv.FormatInt(v, 10)
}
