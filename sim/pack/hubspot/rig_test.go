package hubspot_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/hubspot"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a HubSpot on loopback whose clock stands still.
type rig struct {
	*packtest.Client
	t   *testing.T
	api *sim.API
	url string
}

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	c := packtest.Serve(t, hubspot.Pack(), w)
	return &rig{c, t, c.API, c.URL}
}

// reply is an answer that was read to its end.
type reply struct{ packtest.Answer }

func (r *rig) send(method, path, body string, header ...string) reply {
	r.t.Helper()
	return reply{r.Send(method, path, body, header...)}
}

// ask sends with the token of a private app.
func (r *rig) ask(method, path, body string) reply {
	r.t.Helper()
	return r.send(method, path, body, "Authorization: Bearer pat-na1-1")
}

func (r *rig) advance(d time.Duration) { r.Advance(d) }

func (w reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.Body), v); err != nil {
		t.Fatalf("%d %s: %v", w.Status, w.Body, err)
	}
}

// told is the status, and the category or the policy of an error.
func (w reply) told(t *testing.T) string {
	t.Helper()
	var body struct{ Status, Category, PolicyName string }
	w.into(t, &body)
	if body.Status != "error" {
		t.Errorf("got status %q in %s", body.Status, w.Body)
	}
	return strconv.Itoa(w.Status) + " " + body.Category + body.PolicyName
}
