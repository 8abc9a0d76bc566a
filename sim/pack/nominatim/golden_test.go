package nominatim_test

import (
	"testing"

	"github.com/heedproject/heed/sim/pack/nominatim"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	for name, ask := range map[string]func(a atlas) packtest.Answer{
		"nothing there":                   func(a atlas) packtest.Answer { return a.ask("/reverse?lat=0&lon=0&format=json") },
		"nothing found":                   func(a atlas) packtest.Answer { return a.ask("/search?q=atlantis&format=json") },
		"a place":                         func(a atlas) packtest.Answer { return a.ask("/reverse?lat=50.1&lon=8&format=json") },
		"a request that is wrong":         func(a atlas) packtest.Answer { return a.ask("/reverse?lat=x&format=json") },
		"a request that is wrong, as XML": func(a atlas) packtest.Answer { return a.ask("/reverse?lat=x") },
		"blocked":                         func(a atlas) packtest.Answer { return a.ask("/search?q=x", "User-Agent: axios/1") },
		"a database in a good state":      func(a atlas) packtest.Answer { return a.ask("/status?format=json") },
		"too many": func(a atlas) packtest.Answer {
			a.ask("/search?q=x")
			return a.Get("/search?q=x")
		},
	} {
		want := packtest.Golden(t, nominatim.Pack(), name)
		if short := packtest.Alike(ask(open(t, "")), want, "error", "code", "status"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
