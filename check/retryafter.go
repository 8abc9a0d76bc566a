package check

import (
	"net/http"
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

var ruleWait = Rule{"a client does not come back before the time that it was told", "RFC 9110 §10.2.3, RFC 6585 §4; T1, T2"}

// told is one value of Retry-After and how long to wait for it.
type told struct {
	name, title string
	values      func(now time.Time) []string
	wait        time.Duration
	skew        time.Duration // of the server's clock
	quick       bool
}

// retryAfter is 429 with a hint in every form that is seen.
func retryAfter() []Case {
	var all []Case
	for _, t := range []told{
		{name: "seconds", title: "2 seconds", values: fixed("2"), wait: 2 * time.Second, quick: true},
		{name: "imf-date", title: "a date", values: dated(http.TimeFormat), wait: 2 * time.Second, quick: true},
		{name: "rfc850-date", title: "a date as in RFC 850", values: dated("Monday, 02-Jan-06 15:04:05 GMT"), wait: 2 * time.Second},
		{name: "asctime-date", title: "a date as asctime writes it", values: dated(time.ANSIC), wait: 2 * time.Second},
		{name: "two-lines", title: "two lines, of 2 and 3 seconds", values: fixed("2", "3"), wait: 2 * time.Second},
		{name: "skew-behind", title: "a date, by a clock that is 10 minutes slow", values: dated(http.TimeFormat),
			wait: 2 * time.Second, skew: -10 * time.Minute},
		{name: "skew-ahead", title: "a date, by a clock that is 10 minutes fast", values: dated(http.TimeFormat),
			wait: 2 * time.Second, skew: 10 * time.Minute},
	} {
		all = append(all, Case{ID: "retry-after/" + t.name, Title: "429 with Retry-After: " + t.title, Weight: 2, Quick: t.quick,
			Rule: ruleWait, World: hinted(429, t, 1), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}},
			Needs: []Claim{Retries}, Judge: heeds(t.wait)})
	}
	return append(all, unusable()...)
}

// unusable are hints that name no wait: the client goes on as without one.
func unusable() []Case {
	rule := Rule{"a hint that names no wait is none: the client goes on with its own backoff, and ends", "RFC 9110 §10.2.3, §5.6.7; T1, T4"}
	var all []Case
	for _, t := range []told{
		{name: "zero", title: "0", values: fixed("0")},
		{name: "past-date", title: "a date that is past", values: fixed("Sun, 06 Nov 1994 08:49:37 GMT")},
		{name: "garbage", title: "soon", values: fixed("soon")},
		{name: "negative", title: "-5", values: fixed("-5")},
		{name: "empty", title: "nothing", values: fixed("")},
		{name: "float", title: "1.5", values: fixed("1.5")},
		{name: "unit", title: "1s", values: fixed("1s")},
	} {
		all = append(all, Case{ID: "retry-after/" + t.name, Title: "429 with Retry-After: " + t.title, Rule: rule,
			World: hinted(429, t, 1), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}}, Needs: []Claim{Retries},
			Judge: comesBack(8 * time.Second)})
	}
	return all
}

// hinted answers with the hint so many times, then as usual.
func hinted(status int, t told, times int) func(Place) sim.World {
	return func(Place) sim.World {
		one := func(x *sim.Exchange) sim.Answer {
			var fields [][2]string
			for _, v := range t.values(x.Now()) {
				fields = append(fields, [2]string{"Retry-After", v})
			}
			return answer(status, fields...)(x)
		}
		all := func(*sim.Exchange) (list []say) {
			for range times {
				list = append(list, one)
			}
			return list
		}
		w := sim.World{Packs: []sim.Pack{provider(all)}, Limits: []rate.Limit{}}
		if t.skew != 0 {
			w.Clock.Start = time.Now().Add(t.skew)
		}
		return w
	}
}

func fixed(values ...string) func(time.Time) []string {
	return func(time.Time) []string { return values }
}

// dated is the first whole second that is two seconds away, so that no reading
// of it is shorter.
func dated(layout string) func(time.Time) []string {
	return func(now time.Time) []string {
		at := now.Add(3*time.Second - 1).Truncate(time.Second)
		return []string{at.UTC().Format(layout)}
	}
}

// heeds wants the wait and then no more than a few seconds above it.
func heeds(wait time.Duration) judge {
	return every(waits(wait), comesBack(wait+6*time.Second))
}

func secondsText(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
