package github_test

import (
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/github"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a GitHub on loopback whose clock stands still.
type rig struct{ *packtest.Client }

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	return &rig{packtest.Serve(t, github.Pack(), w)}
}

// ask sends with a token.
func (r *rig) ask(method, path, body string, header ...string) packtest.Answer {
	r.T.Helper()
	return r.Send(method, path, body, append(header, "Authorization: Bearer ghp_1")...)
}

// quota is what headers say of a limit: what is left of how much, and until
// when.
func quota(w packtest.Answer) string {
	h := w.Header
	return h.Get("X-Ratelimit-Resource") + " " + h.Get("X-Ratelimit-Remaining") + "/" + h.Get("X-Ratelimit-Limit") + " until " + h.Get("X-Ratelimit-Reset")
}

// message is what an error says.
func message(w packtest.Answer) string {
	var body struct{ Message string }
	w.Into(&body)
	return body.Message
}
