package hubspot_test

import (
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/hubspot"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	for name, ask := range map[string]func(r *rig) packtest.Answer{
		"too many in ten seconds": func(r *rig) (w packtest.Answer) {
			for range 101 {
				w = r.ask("GET", contacts+"/1", "")
			}
			return w
		},
		"too many searches in one second": func(r *rig) (w packtest.Answer) {
			for range 6 {
				w = r.ask("POST", contacts+"/search", `{}`)
			}
			return w
		},
		"a batch of which a part failed": func(r *rig) packtest.Answer {
			return r.ask("POST", contacts+"/batch/create", `{"inputs":[`+ada+`,`+ada+`]}`)
		},
		"a batch of which all went well": func(r *rig) packtest.Answer { return r.ask("POST", contacts+"/batch/create", `{"inputs":[`+ada+`]}`) },
		"a contact that exists already": func(r *rig) packtest.Answer {
			r.ask("POST", contacts, ada)
			return r.ask("POST", contacts, ada)
		},
		"a token that is not accepted": func(r *rig) packtest.Answer { return r.Send("GET", contacts, "") },
	} {
		want := packtest.Golden(t, hubspot.Pack(), name)
		if short := packtest.Alike(ask(open(t, sim.World{})), want, "policyName", "errorType"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
