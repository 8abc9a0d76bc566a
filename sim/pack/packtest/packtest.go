// Package packtest puts a pack behind a real HTTP server on loopback, in a case
// whose clock stands still, and is a client of it. It is for the tests of packs.
//
// The case is reached by its path, and every answer is searched for addresses
// of the server that lie outside of it: a pack that forgets the case in a link
// fails the test that met it.
package packtest

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
)

// Noon is what the clock shows at first.
var Noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Client talks to a pack.
type Client struct {
	T    *testing.T
	Case *sim.Case
	// URL comes before every path; the pack's own root may be added to it.
	URL string
	// Header is sent with every request.
	Header http.Header

	host string
}

// Serve puts p behind a server until the test ends. The world's clock stands
// still at Noon unless it says when it starts.
func Serve(t *testing.T, p sim.Pack, w sim.World) *Client {
	t.Helper()
	w.Packs, w.Clock.Stepped = []sim.Pack{p}, true
	if w.Clock.Start.IsZero() {
		w.Clock.Start = Noon
	}
	a, err := sim.New(w)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	return &Client{T: t, Case: a.Case(inside), URL: srv.URL + mount, Header: http.Header{}, host: srv.Listener.Addr().String()}
}

const (
	inside = "inside" // the case
	mount  = "/t/" + inside
)

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   string

	t *testing.T
}

// Send sends one request. More header fields are "Name: value". Redirects are
// answers; the path may be that of a Location.
func (c *Client) Send(method, path, body string, header ...string) Answer {
	c.T.Helper()
	a, err := c.Try(method, path, body, header...)
	if err != nil {
		c.T.Fatal(err)
	}
	return a
}

// Get is Send without a body.
func (c *Client) Get(path string, header ...string) Answer {
	c.T.Helper()
	return c.Send(http.MethodGet, path, "", header...)
}

// Try is Send for a request that may have no answer, or only a part of one. It
// goes over a connection of its own, on which net/http sends nothing again.
func (c *Client) Try(method, path, body string, header ...string) (Answer, error) {
	to := c.URL + path
	if strings.HasPrefix(path, mount+"/") { // it was a Location
		to = "http://" + c.host + path
	}
	r, err := http.NewRequest(method, to, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.Header = c.Header.Clone()
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	resp, err := once.RoundTrip(r)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if link := astray(c.host, resp.Header, string(data)); link != "" {
		c.T.Errorf("%s %s: the answer leads out of the case, to %s; make links with Exchange.URL", method, path, link)
	}
	return Answer{resp.StatusCode, resp.Header, string(data), c.T}, err
}

// astray finds what leads to the host, or to a path, outside of the case.
func astray(host string, h http.Header, body string) string {
	var text strings.Builder
	text.WriteString(body)
	for _, lines := range h {
		text.WriteString("\n" + strings.Join(lines, "\n"))
	}
	for _, rest := range strings.Split(strings.ReplaceAll(text.String(), `\/`, "/"), host)[1:] {
		if end := rest + " "; !strings.HasPrefix(rest, mount) || !strings.ContainsRune("/?#\"'<> \n", rune(end[len(mount)])) {
			return host + rest[:min(len(rest), 60)]
		}
	}
	if strings.Contains(text.String(), "https://"+host) {
		return "https://" + host + ", which is not there"
	}
	if to := h.Get("Location"); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, mount+"/") {
		return to
	}
	return ""
}

var once = &http.Transport{DisableKeepAlives: true}

// Advance moves the clock on.
func (c *Client) Advance(d time.Duration) { c.Case.Advance(d) }

// Statuses are those of n requests for path, one after the other.
func (c *Client) Statuses(n int, path string) (got []int) {
	c.T.Helper()
	for range n {
		got = append(got, c.Get(path).Status)
	}
	return got
}

// Into reads the body as JSON.
func (a Answer) Into(v any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		a.t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
}

// Read reads the body of an answer as JSON.
func Read[T any](a Answer) (v T) {
	a.t.Helper()
	a.Into(&v)
	return v
}

// ReadXML reads the body of an answer as XML.
func ReadXML[T any](a Answer) (v T) {
	a.t.Helper()
	if err := xml.Unmarshal([]byte(a.Body), &v); err != nil {
		a.t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	return v
}
