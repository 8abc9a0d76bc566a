package jira_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/jira"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// rig is a Jira on loopback whose clock stands still.
type rig struct {
	*packtest.Client
	t   *testing.T
	api *sim.API
	url string
}

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	c := packtest.Serve(t, jira.Pack(), w)
	return &rig{c, t, c.API, c.URL}
}

// reply is an answer that was read to its end.
type reply struct{ packtest.Answer }

func (r *rig) send(method, path, body string, header ...string) reply {
	r.t.Helper()
	return reply{r.Send(method, path, body, header...)}
}

// ask sends with an API token.
func (r *rig) ask(method, path, body string) reply {
	r.t.Helper()
	return r.send(method, base+path, body, "Authorization: "+apiToken)
}

// asApp sends with an access token that was given out just now.
func (r *rig) asApp() func(method, path, body string) reply {
	r.t.Helper()
	pair := r.grant(`{"grant_type":"authorization_code","client_id":"app","code":"c"}`)
	return func(method, path, body string) reply {
		r.t.Helper()
		return r.send(method, base+path, body, "Authorization: Bearer "+pair.Access)
	}
}

type pair struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string
}

func (r *rig) grant(body string) (p pair) {
	r.t.Helper()
	r.send("POST", "/oauth/token", body).into(r.t, &p)
	return p
}

const (
	base     = "/rest/api/3"
	apiToken = "Basic bWVAZXhhbXBsZS5vcmc6dG9rZW4=" // me@example.org:token
)

func (r *rig) advance(d time.Duration) { r.Advance(d) }

func (w reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.Body), v); err != nil {
		t.Fatalf("%d %s: %v", w.Status, w.Body, err)
	}
}

// told is the status and what is wrong, field by field or as a whole.
func (w reply) told(t *testing.T) string {
	t.Helper()
	var body struct {
		Messages []string `json:"errorMessages"`
		Errors   map[string]string
	}
	w.into(t, &body)
	var text strings.Builder
	text.WriteString(strconv.Itoa(w.Status))
	for _, name := range slices.Sorted(maps.Keys(body.Errors)) {
		text.WriteString(" " + name)
	}
	return text.String() + " " + strings.Join(body.Messages, " ")
}
