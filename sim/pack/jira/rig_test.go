package jira_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/jira"
)

// rig is a Jira on loopback whose clock stands still.
type rig struct {
	t   *testing.T
	api *sim.API
	url string
}

func open(t *testing.T, w sim.World) *rig {
	t.Helper()
	w.Packs, w.Clock.Stepped = []sim.Pack{jira.Pack()}, true
	a, err := sim.New(w)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return &rig{t, a, s.URL}
}

// reply is an answer that was read to its end.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

func (r *rig) send(method, path, body string, header ...string) reply {
	r.t.Helper()
	q, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		q.Header.Set(name, value)
	}
	w, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply{w.StatusCode, w.Header, string(text)}
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

func (r *rig) advance(d time.Duration) { r.api.Case("").Advance(d) }

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
