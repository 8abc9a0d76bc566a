package check

import (
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

const quotaWait = 2 * time.Second

// quotaForm is one way to say that nothing is left for two seconds.
type quotaForm struct {
	name, title string
	fields      func(now time.Time) [][2]string
}

// quotaForms are those that no vendor owns.
var quotaForms = []quotaForm{
	{"delta", "X-RateLimit-Reset in seconds", func(time.Time) [][2]string {
		return [][2]string{{"X-RateLimit-Limit", "60"}, {"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "2"}}
	}},
	{"epoch", "X-RateLimit-Reset in seconds since 1970", func(now time.Time) [][2]string {
		return [][2]string{{"X-RateLimit-Limit", "60"}, {"X-RateLimit-Remaining", "0"},
			{"X-RateLimit-Reset", strconv.FormatInt(later(now).Unix(), 10)}}
	}},
	{"epoch-ms", "X-RateLimit-Reset in milliseconds since 1970", func(now time.Time) [][2]string {
		return [][2]string{{"X-RateLimit-Limit", "60"}, {"X-RateLimit-Remaining", "0"},
			{"X-RateLimit-Reset", strconv.FormatInt(later(now).UnixMilli(), 10)}}
	}},
	{"hyphens", "X-Rate-Limit-Reset in seconds since 1970", func(now time.Time) [][2]string {
		return [][2]string{{"X-Rate-Limit-Limit", "60"}, {"X-Rate-Limit-Remaining", "0"},
			{"X-Rate-Limit-Reset", strconv.FormatInt(later(now).Unix(), 10)}}
	}},
	{"draft-06", "RateLimit-Reset as in draft 06", func(time.Time) [][2]string {
		return [][2]string{{"RateLimit-Limit", "60"}, {"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "2"}}
	}},
	{"draft-07", "RateLimit as in draft 07", func(time.Time) [][2]string {
		return [][2]string{{"RateLimit", "limit=60, remaining=0, reset=2"}}
	}},
	{"draft-10", "RateLimit as in draft 10", func(time.Time) [][2]string {
		return [][2]string{{"RateLimit-Policy", `"default";q=60;w=60`}, {"RateLimit", `"default";r=0;t=2`}}
	}},
}

// quota is what headers say of what is left.
func quota() []Case {
	read := []Operation{{ID: "read", Path: "/v1/items/read"}}
	rule := Rule{"where quota headers tell when more is left, a client waits until then", "draft-ietf-httpapi-ratelimit-headers"}
	var all []Case
	for _, f := range quotaForms {
		all = append(all,
			Case{ID: "quota/429-" + f.name, Title: "429 with " + f.title, Rule: rule, Needs: []Claim{Retries, Paces},
				World: quoted429(f), Ask: read, Judge: heeds(quotaWait)},
			Case{ID: "quota/200-" + f.name, Title: "200 with nothing left: " + f.title, Needs: []Claim{Paces, Remembers},
				Rule:  Rule{"what is left counts on a good answer, too: the next request waits, the answer does not", "S3 of docs/features.md"},
				World: spent(f), Ask: twoReads, Judge: holdsNext})
	}
	all = append(all, spoken()...)
	return append(all,
		Case{ID: "quota/hint-wins", Title: "429 with Retry-After: 2 and RateLimit t=60", Needs: []Claim{Retries, Paces},
			Rule:  Rule{"Retry-After goes before the RateLimit field", "draft-ietf-httpapi-ratelimit-headers §7"},
			World: scripted(answer(429, [2]string{"Retry-After", "2"}, [2]string{"RateLimit", `"default";r=0;t=60`})),
			Ask:   read, Judge: heeds(quotaWait)},
		Case{ID: "quota/malformed", Title: "429 with a RateLimit that does not parse", Needs: []Claim{Retries, Paces},
			Rule:  Rule{"a RateLimit field that does not parse is not there", "RFC 9651 §4.2; draft-ietf-httpapi-ratelimit-headers §4"},
			World: scripted(answer(429, [2]string{"RateLimit", `"default" ;r=0;t=60`})),
			Ask:   read, Judge: comesBack(8 * time.Second)},
		Case{ID: "quota/past", Title: "200 with nothing left until an instant that is past", Needs: []Claim{Paces, Remembers},
			Rule: Rule{"a reset that is past holds nobody", "S3 of docs/features.md"},
			World: spent(quotaForm{fields: func(now time.Time) [][2]string {
				return [][2]string{{"X-RateLimit-Limit", "60"}, {"X-RateLimit-Remaining", "0"},
					{"X-RateLimit-Reset", strconv.FormatInt(now.Add(-time.Minute).Unix(), 10)}}
			}}), Ask: twoReads, Judge: holdsNobody},
	)
}

var twoReads = []Operation{{ID: "first", Path: "/v1/items/first"}, {ID: "second", Path: "/v1/items/second", Wave: 1}}

// quoted429 throttles once and tells by quota headers alone.
func quoted429(f quotaForm) func(Place) sim.World {
	return func(Place) sim.World {
		one := func(x *sim.Exchange) sim.Answer { return answer(429, f.fields(x.Now())...)(x) }
		return sim.World{Packs: []sim.Pack{provider(func(*sim.Exchange) []say { return []say{one} })}, Limits: []rate.Limit{}}
	}
}

// spent answers the operation first well and says that nothing is left.
func spent(f quotaForm) func(Place) sim.World {
	return func(Place) sim.World {
		good := func(x *sim.Exchange) sim.Answer {
			an := getItem(x)
			an.Fields = append(an.Fields, f.fields(x.Now())...)
			return an
		}
		return sim.World{Limits: []rate.Limit{}, Packs: []sim.Pack{provider(func(x *sim.Exchange) []say {
			if x.Value("op") == "first" {
				return []say{good}
			}
			return nil
		})}}
	}
}

// holdsNext wants the second operation to wait for what the first was told.
func holdsNext(e *Evidence) Verdict {
	first, second := e.Of("first"), e.Of("second")
	if len(first) == 0 || len(second) == 0 {
		return unclear("%s and %s came", count(len(first), "request"), count(len(second), "request"))
	}
	gap := second[0].Time.Sub(first[0].Time)
	if kept := e.Outcomes["first"].Ended.Sub(e.Outcomes["second"].Began); kept > 0 {
		return unclear("the operations were not asked for one after the other")
	}
	switch held := e.Outcomes["first"].Ended.Sub(first[0].End()); {
	case held > quotaWait-500*time.Millisecond:
		return failed("the good answer was kept from its caller for %s, though only the next request has to wait", brief(held))
	case gap < quotaWait-slack:
		return failed("the next request came %s after the answer that said that nothing is left for 2 s", brief(gap))
	case gap > quotaWait+6*time.Second:
		return failed("the next request came after %s, where 2 s were told", brief(gap))
	}
	return passed("the next request came after %s, where 2 s were told", brief(gap))
}

// holdsNobody wants the second operation to come soon.
func holdsNobody(e *Evidence) Verdict {
	first, second := e.Of("first"), e.Of("second")
	if len(first) == 0 || len(second) == 0 {
		return failed("%s and %s came", count(len(first), "request"), count(len(second), "request"))
	}
	if gap := second[0].Time.Sub(first[0].End()); gap > 4*time.Second {
		return failed("the next request came after %s, though the reset was a minute ago", brief(gap))
	}
	return passed("the next request came at once")
}
