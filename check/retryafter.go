package check

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

var ruleWait = Rule{"a client does not come back before the time that it was told", "RFC 9110 §10.2.3, RFC 6585 §4"}

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
	return slices.Concat(all, unusable(), farOff(), series())
}

// farOff are hints that are far beyond any use: nobody comes back early
// because a number did not fit.
func farOff() []Case {
	rule := Rule{"a hint that is too long for the client is no reason to come back early", "RFC 9110 §10.2.3, RFC 9111 §1.2.2"}
	var all []Case
	for _, t := range []told{
		{name: "hour", title: "an hour", values: fixed("3600")},
		{name: "overflow-32", title: "25 days", values: fixed("2147484")},
		{name: "overflow-64", title: "292 years", values: fixed("9223372037")},
		{name: "huge", title: "more than fits into 64 bits", values: fixed("18446744073709551616")},
		{name: "year-9999", title: "the end of the year 9999", values: fixed("Fri, 31 Dec 9999 23:59:59 GMT")},
		{name: "epoch", title: "seconds since 1970", wait: 2 * time.Second, values: func(now time.Time) []string {
			return []string{strconv.FormatInt(now.Add(3*time.Second-1).Unix(), 10)}
		}},
	} {
		all = append(all, Case{ID: "retry-after/" + t.name, Title: "429 with Retry-After: " + t.title, Rule: rule,
			World: hinted(429, t, 50), Ask: []Operation{{ID: "read", Path: "/v1/items/read", Deadline: 2500 * time.Millisecond}},
			Needs: []Claim{Retries}, Limit: 4 * time.Second, Patient: true, Judge: staysAway(t.wait)})
	}
	return all
}

// staysAway wants no second request before wait; 0 is never.
func staysAway(wait time.Duration) judge {
	return func(e *Evidence) Verdict {
		tries, o := e.First()
		switch {
		case len(tries) == 0:
			return failed("no request came, and %s", said(o))
		case len(tries) > 1 && (wait == 0 || tries[1].Since < wait-slack):
			return failed("it came back after %s; %s in all", brief(tries[1].Since), count(len(tries), "request"))
		}
		return passed("%s, and none too early; %s", count(len(tries), "request"), said(o))
	}
}

// series are hints that come several times, elsewhere than with 429, or not at all.
func series() []Case {
	read := []Operation{{ID: "read", Path: "/v1/items/read"}}
	return []Case{
		{ID: "retry-after/503", Title: "503 with Retry-After: 2 seconds", Rule: ruleWait, Weight: 2, Needs: []Claim{Retries},
			World: hinted(503, told{values: fixed("2")}, 1), Ask: read, Judge: heeds(2 * time.Second)},
		{ID: "retry-after/escalating", Title: "429 with Retry-After: 1, then 2, then 3 seconds", Rule: ruleWait, Needs: []Claim{Retries},
			World: world("GET /v1/items/*: 429(after=1s), 429(after=2s), 429(after=3s), ok"), Ask: read, Limit: 20 * time.Second,
			Judge: waits(time.Second, 2*time.Second, 3*time.Second)},
		{ID: "retry-after/none", Title: "429 three times, without any hint", Needs: []Claim{Retries},
			Rule:  Rule{"without a hint there is a pause all the same", "RFC 6585 §4"},
			World: world("GET /v1/items/*: 429 x3, ok"), Ask: read, Judge: pauses(100 * time.Millisecond)},
		{ID: "retry-after/shared", Title: "429 for one operation, while another one begins", Needs: []Claim{Remembers, Parallel, Paces},
			Rule:  Rule{"a hint is for all who use the same credential", "RFC 6585 §4"},
			World: world("GET /v1/items/first: 429(after=2s), ok"), Judge: shared,
			Ask: []Operation{{ID: "first", Path: "/v1/items/first"},
				{ID: "second", Path: "/v1/items/second", Pause: 400 * time.Millisecond}}},
	}
}

// pauses wants the gaps of the first operation to be so long altogether.
func pauses(least time.Duration) judge {
	return func(e *Evidence) Verdict {
		tries, o := e.First()
		var sum time.Duration
		for _, a := range tries {
			sum += a.Since
		}
		switch {
		case len(tries) < 2:
			return unclear("it sent %s, so its pauses were not seen; %s", count(len(tries), "request"), said(o))
		case sum < least:
			return failed("%s with %s between them altogether", count(len(tries), "request"), brief(sum))
		}
		return passed("%s with %s between them altogether", count(len(tries), "request"), brief(sum))
	}
}

// shared wants the second operation to wait for what the first was told.
func shared(e *Evidence) Verdict {
	first, second := e.Of("first"), e.Of("second")
	if len(first) == 0 || len(second) == 0 {
		return unclear("%s and %s came", count(len(first), "request"), count(len(second), "request"))
	}
	if second[0].Time.Before(first[0].End()) {
		return unclear("the second operation came before the first was answered")
	}
	if got := second[0].Time.Sub(first[0].Time); got < 2*time.Second-slack {
		return failed("the second operation came %s after the answer that asked for 2 s", brief(got))
	}
	return passed("the second operation came %s after the answer that asked for 2 s", brief(second[0].Time.Sub(first[0].Time)))
}

// unusable are hints that name no wait: the client goes on as without one.
func unusable() []Case {
	rule := Rule{"a hint that names no wait is none: the client goes on with its own backoff, and ends", "RFC 9110 §10.2.3, §5.6.7"}
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
