package kalshi_test

import (
	"strconv"
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/kalshi"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a Kalshi on loopback whose clock stands still.
type rig struct{ *packtest.Client }

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	return &rig{packtest.Serve(t, kalshi.Pack(), w)}
}

// signed sends with the three header fields, in a form that is accepted as
// long as no public key is known.
func (r *rig) signed(method, path, body string) packtest.Answer {
	r.T.Helper()
	return r.Send(method, path, body, "KALSHI-ACCESS-KEY: key-1", "KALSHI-ACCESS-SIGNATURE: c2ln", "KALSHI-ACCESS-TIMESTAMP: "+r.stamp())
}

// stamp is the time of the simulator in milliseconds.
func (r *rig) stamp() string { return strconv.FormatInt(r.Case.Now().UnixMilli(), 10) }

// told is the status and the code of an error.
func told(w packtest.Answer) string {
	var body struct{ Error struct{ Code string } }
	w.Into(&body)
	return strconv.Itoa(w.Status) + " " + body.Error.Code
}
