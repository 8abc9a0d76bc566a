package kalshi_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/kalshi"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a Kalshi on loopback whose clock stands still.
type rig struct {
	*packtest.Client
	t   *testing.T
	api *sim.API
	url string
}

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	c := packtest.Serve(t, kalshi.Pack(), w)
	return &rig{c, t, c.API, c.URL}
}

// reply is an answer that was read to its end.
type reply struct{ packtest.Answer }

func (r *rig) send(method, path, body string, header ...string) reply {
	r.t.Helper()
	return reply{r.Send(method, path, body, header...)}
}

// signed sends with the three header fields, in a form that is accepted as
// long as no public key is known.
func (r *rig) signed(method, path, body string) reply {
	r.t.Helper()
	return r.send(method, path, body, "KALSHI-ACCESS-KEY: key-1", "KALSHI-ACCESS-SIGNATURE: c2ln", "KALSHI-ACCESS-TIMESTAMP: "+r.stamp())
}

// stamp is the time of the simulator in milliseconds.
func (r *rig) stamp() string { return strconv.FormatInt(r.api.Case("").Now().UnixMilli(), 10) }

func (r *rig) advance(d time.Duration) { r.Advance(d) }

func (w reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.Body), v); err != nil {
		t.Fatalf("%d %s: %v", w.Status, w.Body, err)
	}
}

// told is the status and the code of an error.
func (w reply) told(t *testing.T) string {
	t.Helper()
	var body struct{ Error struct{ Code string } }
	w.into(t, &body)
	return strconv.Itoa(w.Status) + " " + body.Error.Code
}
