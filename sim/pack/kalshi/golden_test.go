package kalshi_test

import (
	"strings"
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/kalshi"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	for name, ask := range map[string]func(r *rig) packtest.Answer{
		"too many reads": func(r *rig) packtest.Answer {
			for range 20 {
				r.signed("GET", orders, "")
			}
			return r.signed("GET", orders, "")
		},
		"an order that an earlier attempt placed": func(r *rig) packtest.Answer {
			r.signed("POST", orders, bid)
			return r.signed("POST", orders, bid)
		},
		"a signature that is too old": func(r *rig) packtest.Answer { return r.Send("GET", orders, "") },
		"an order without the money for it": func(r *rig) packtest.Answer {
			return r.signed("POST", orders, strings.Replace(bid, `"count":3,"yes_price":1`, `"count":1100,"yes_price":99`, 1))
		},
		"limits in the shape of production": func(r *rig) packtest.Answer { return r.signed("GET", root+"/account/limits", "") },
		"the last page of a list":           func(r *rig) packtest.Answer { return r.Send("GET", root+"/markets?status=settled", "") },
	} {
		want := packtest.Golden(t, kalshi.Pack(), name)
		if short := packtest.Alike(ask(open(t, sim.World{})), want, "code", "error", "cursor"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
