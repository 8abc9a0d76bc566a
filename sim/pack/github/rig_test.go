package github_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/github"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a GitHub on loopback whose clock stands still.
type rig struct {
	*packtest.Client
	t   *testing.T
	api *sim.API
	url string
}

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	c := packtest.Serve(t, github.Pack(), w)
	return &rig{c, t, c.API, c.URL}
}

// reply is an answer that was read to its end.
type reply struct{ packtest.Answer }

func (r *rig) send(method, path, body string, header ...string) reply {
	r.t.Helper()
	return reply{r.Send(method, path, body, header...)}
}

// ask sends with a token.
func (r *rig) ask(method, path, body string, header ...string) reply {
	r.t.Helper()
	return r.send(method, path, body, append(header, "Authorization: Bearer ghp_1")...)
}

// noon is where clocks stand that need a known time.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (r *rig) advance(d time.Duration) { r.Advance(d) }

func (w reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.Body), v); err != nil {
		t.Fatalf("%d %s: %v", w.Status, w.Body, err)
	}
}

// quota is what headers say of a limit: what is left of how much, and until
// when.
func (w reply) quota() string {
	h := w.Header
	return h.Get("X-Ratelimit-Resource") + " " + h.Get("X-Ratelimit-Remaining") + "/" + h.Get("X-Ratelimit-Limit") + " until " + h.Get("X-Ratelimit-Reset")
}

// message is what an error says.
func (w reply) message(t *testing.T) string {
	t.Helper()
	var body struct{ Message string }
	w.into(t, &body)
	return body.Message
}
