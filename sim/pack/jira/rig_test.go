package jira_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/jira"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a Jira on loopback whose clock stands still.
type rig struct{ *packtest.Client }

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	return &rig{packtest.Serve(t, jira.Pack(), w)}
}

// ask sends with an API token.
func (r *rig) ask(method, path, body string) packtest.Answer {
	r.T.Helper()
	return r.Send(method, base+path, body, "Authorization: "+apiToken)
}

// asApp sends with an access token that was given out just now.
func (r *rig) asApp() func(method, path, body string) packtest.Answer {
	r.T.Helper()
	pair := r.grant(`{"grant_type":"authorization_code","client_id":"app","code":"c"}`)
	return func(method, path, body string) packtest.Answer {
		r.T.Helper()
		return r.Send(method, base+path, body, "Authorization: Bearer "+pair.Access)
	}
}

type pair struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string
}

func (r *rig) grant(body string) (p pair) {
	r.T.Helper()
	r.Send("POST", "/oauth/token", body).Into(&p)
	return p
}

const (
	base     = "/rest/api/3"
	apiToken = "Basic bWVAZXhhbXBsZS5vcmc6dG9rZW4=" // me@example.org:token
)

// told is the status and what is wrong, field by field or as a whole.
func told(w packtest.Answer) string {
	var body struct {
		Messages []string `json:"errorMessages"`
		Errors   map[string]string
	}
	w.Into(&body)
	var text strings.Builder
	text.WriteString(strconv.Itoa(w.Status))
	for _, name := range slices.Sorted(maps.Keys(body.Errors)) {
		text.WriteString(" " + name)
	}
	return text.String() + " " + strings.Join(body.Messages, " ")
}
