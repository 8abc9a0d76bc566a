package check_test

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// misread replaces the reading of Retry-After where odd says so.
func misread(odd func(v string) (time.Duration, bool)) func(*habits) {
	return func(h *habits) {
		right := h.Hint
		h.Hint = func(resp *http.Response) (time.Duration, bool) {
			if all := resp.Header.Values("Retry-After"); len(all) > 0 {
				if d, ok := odd(all[0]); ok {
					return d, true
				}
			}
			return right(resp)
		}
	}
}

// isDate tells whether a Retry-After is a date in one of these layouts.
func isDate(v string, layouts ...string) bool {
	for _, l := range layouts {
		if _, err := time.Parse(l, v); err == nil {
			return true
		}
	}
	return false
}

// seconds is a Retry-After that is a number, however large; else -1.
func seconds(v string) float64 {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return -1
	}
	return n
}

// isEpoch tells whether a number is an instant of these times, in seconds.
func isEpoch(n float64) bool { return n > 5e8 && n < 5e9 }

const (
	rfc850  = "Monday, 02-Jan-06 15:04:05 GMT"
	asctime = time.ANSIC
)

// dates are the cases in which a date is told.
var dates = []string{"retry-after/imf-date", "retry-after/rfc850-date", "retry-after/asctime-date", "retry-after/skew-*", "retry-after/year-9999"}

// hints are the cases in which a Retry-After names a wait of more than a second.
var hints = append([]string{"retry-after/seconds", "retry-after/two-lines", "retry-after/503", "retry-after/escalating", "retry-after/shared",
	"retry-after/hour", "retry-after/overflow-*", "retry-after/huge", "retry-after/epoch", "quota/hint-wins"}, dates...)

// wrongHints do not do what Retry-After says.
func wrongHints() []wrong {
	return []wrong{
		{"ignores Retry-After", func(h *habits) {
			h.Hint = func(*http.Response) (time.Duration, bool) { return 0, false }
		}, hints},
		{"clamps Retry-After", func(h *habits) {
			h.Hint = func(resp *http.Response) (time.Duration, bool) {
				d, ok := readHint(resp)
				return min(d, 500*time.Millisecond), ok
			}
		}, hints},
		{"clamps what is absurd", misread(func(v string) (time.Duration, bool) {
			n := seconds(v)
			return 500 * time.Millisecond, n > 3e6 && !isEpoch(n)
		}), []string{"retry-after/overflow-64", "retry-after/huge"}},
		{"clamps Retry-After to two minutes", func(h *habits) {
			h.Hint = func(resp *http.Response) (time.Duration, bool) {
				d, ok := readHint(resp)
				if d > 2*time.Minute { // two minutes are beyond a case
					d = 500 * time.Millisecond
				}
				return d, ok
			}
		}, []string{"retry-after/hour", "retry-after/overflow-*", "retry-after/huge", "retry-after/year-9999"}},
		{"knows no Retry-After that comes twice", func(h *habits) {
			h.Hint = func(resp *http.Response) (time.Duration, bool) {
				if len(resp.Header.Values("Retry-After")) > 1 {
					return 0, false
				}
				return readHint(resp)
			}
		}, []string{"retry-after/two-lines"}},
		{"knows Retry-After with 429 only", func(h *habits) {
			h.Hint = func(resp *http.Response) (time.Duration, bool) {
				if resp.StatusCode != 429 {
					return 0, false
				}
				return readHint(resp)
			}
		}, []string{"retry-after/503"}},
		{"is patient twice", heedsTwice, []string{"retry-after/escalating"}},
		{"keeps to itself what it was told", func(h *habits) { h.Shares = false }, append([]string{"retry-after/shared", "limits/penalty"}, ofGood...)},
		{"comes before the time that it was told", func(h *habits) {
			h.Extra = func(hint time.Duration, _ *rand.Rand) time.Duration { return -min(hint, 10*time.Second) / 2 }
		}, append([]string{"quota/429-*", "quota/403-*", "quota/200-*", "limits/penalty"}, soon...)},
	}
}

// wrongNumbers read a date or a number otherwise than it is meant.
func wrongNumbers() []wrong {
	return []wrong{
		{"takes dates for zero", misread(func(v string) (time.Duration, bool) {
			return 0, isDate(v, http.TimeFormat, rfc850, asctime)
		}), dates},
		{"knows one form of dates", misread(func(v string) (time.Duration, bool) {
			return 0, isDate(v, rfc850, asctime)
		}), []string{"retry-after/rfc850-date", "retry-after/asctime-date"}},
		{"measures dates by its own clock", func(h *habits) {
			h.Hint = func(resp *http.Response) (time.Duration, bool) {
				if at, err := http.ParseTime(resp.Header.Get("Retry-After")); err == nil {
					return min(forever, max(0, time.Until(at))), true
				}
				return readHint(resp)
			}
		}, []string{"retry-after/skew-*"}},
		{"has timers of 32 bits", misread(func(v string) (time.Duration, bool) {
			return time.Millisecond, seconds(v)*1000 > 1<<31
		}), []string{"retry-after/overflow-*", "retry-after/huge", "retry-after/epoch"}},
		{"counts nanoseconds in 64 bits", misread(func(v string) (time.Duration, bool) {
			return 0, seconds(v)*1e9 > 1<<63
		}), []string{"retry-after/overflow-64", "retry-after/huge"}},
		{"takes the end of time for zero", misread(func(v string) (time.Duration, bool) {
			return 0, strings.Contains(v, "9999")
		}), []string{"retry-after/year-9999"}},
		{"takes an instant in seconds for no hint", misread(func(v string) (time.Duration, bool) {
			return 0, isEpoch(seconds(v))
		}), []string{"retry-after/epoch"}},
		{"waits a minute where it was told that none is needed", misread(func(v string) (time.Duration, bool) {
			at, err := http.ParseTime(v)
			return time.Minute, v == "0" || err == nil && at.Year() < 1995
		}), []string{"retry-after/zero", "retry-after/past-date"}},
		{"waits a minute where a hint cannot be read", misread(func(v string) (time.Duration, bool) {
			_, err := strconv.ParseUint(v, 10, 64)
			return time.Minute, err != nil && len(v) < 10
		}), []string{"retry-after/garbage", "retry-after/negative", "retry-after/empty", "retry-after/float", "retry-after/unit", "quota/429-shopify-float"}},
	}
}

// soon are the hints that end within the case: a part of an hour is an hour, too.
var soon = []string{"retry-after/seconds", "retry-after/imf-date", "retry-after/rfc850-date", "retry-after/asctime-date", "retry-after/two-lines", "retry-after/503", "retry-after/escalating", "retry-after/shared",
	"retry-after/skew-*", "retry-after/epoch", "quota/hint-wins"}

// heedsTwice heeds the first two hints for a URL.
func heedsTwice(h *habits) {
	var mu sync.Mutex
	heard := map[string]int{}
	h.Hint = func(resp *http.Response) (time.Duration, bool) {
		mu.Lock()
		defer mu.Unlock()
		at := resp.Request.URL.Path
		if heard[at]++; heard[at] > 2 {
			return 0, false
		}
		return readHint(resp)
	}
}
