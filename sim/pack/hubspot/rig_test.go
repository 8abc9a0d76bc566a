package hubspot_test

import (
	"strconv"
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/hubspot"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a HubSpot on loopback whose clock stands still.
type rig struct{ *packtest.Client }

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	return &rig{packtest.Serve(t, hubspot.Pack(), w)}
}

// ask sends with the token of a private app.
func (r *rig) ask(method, path, body string) packtest.Answer {
	r.T.Helper()
	return r.Send(method, path, body, "Authorization: Bearer pat-na1-1")
}

// told is the status, and the category or the policy of an error.
func told(w packtest.Answer) string {
	var body struct{ Status, Category, PolicyName string }
	w.Into(&body)
	if body.Status != "error" {
		return "no error: " + w.Body
	}
	return strconv.Itoa(w.Status) + " " + body.Category + body.PolicyName
}
