package sierra_test

import (
	"strings"
	"testing"

	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/sierra"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	const holds = "/patrons/3000001/holds/requests"
	for name, ask := range map[string]func(l library) packtest.Answer{
		"a rate limit dressed as 500": func(l library) packtest.Answer {
			for range 10 {
				l.Get("/bibs/marc?limit=1")
			}
			return l.Get("/bibs/marc?limit=1")
		},
		"an API that is switched off":       func(l library) packtest.Answer { return l.Get("/orders") },
		"a service outside the access tier": func(l library) packtest.Answer { return l.Get("/invoices") },
		"a list without matches":            func(l library) packtest.Answer { return l.Get("/bibs?updatedDate=[2026-11-30T00:00:00Z,]") },
		"a list of deleted records without matches": func(l library) packtest.Answer {
			return l.Get("/bibs?deleted=true&deletedDate=2026-11-30")
		},
		"a record that is not there": func(l library) packtest.Answer { return l.Get("/bibs/1234567") },
		"a patron who is not found": func(l library) packtest.Answer {
			return l.Get("/patrons/find?varFieldTag=b&varFieldContent=1")
		},
		"a PIN that is too simple": func(l library) packtest.Answer { return l.Send("PUT", "/patrons/3000001", `{"pin":"1111"}`) },
		"an expired token":         func(l library) packtest.Answer { return l.Get("/bibs", "Authorization: Bearer none") },
		"a token":                  func(l library) packtest.Answer { return l.login("key", "secret") },
		"an update that worked":    func(l library) packtest.Answer { return l.Send("PUT", "/patrons/3000001", "{}") },
		"a hold that was placed by an earlier attempt": func(l library) packtest.Answer {
			l.Send("POST", holds, wish)
			return l.Send("POST", holds, wish)
		},
		"a hold of an item that does not exist": func(l library) packtest.Answer {
			return l.Send("POST", holds, strings.Replace(wish, "2000005", "2999999", 1))
		},
		"a hold that is refused": func(l library) packtest.Answer { return l.Send("POST", "/patrons/3000009/holds/requests", wish) },
		"an export of nothing":   func(l library) packtest.Answer { return l.Get("/bibs/marc?id=1999999") },
		"an export with a record that was cut": func(l library) packtest.Answer {
			return l.Get("/bibs/marc?id=1000007")
		},
		"an export": func(l library) packtest.Answer { return l.Get("/bibs/marc?id=1000001,1000002") },
		"the file of an export": func(l library) packtest.Answer {
			return l.Get(strings.TrimPrefix(packtest.Read[summary](l.Get("/bibs/marc?limit=1")).File, l.URL))
		},
	} {
		want := packtest.Golden(t, sierra.Pack(), name)
		if short := packtest.Alike(ask(open(t, "")), want, "code", "specificCode", "httpStatus", "description", "errors"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
