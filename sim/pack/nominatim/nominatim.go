// Package nominatim simulates a public Nominatim: search, reverse, lookup and
// status, in JSON, GeoJSON or XML.
//
// What it holds to, from the OSMF usage policy and the source of Nominatim: an
// application names itself by User-Agent or Referer, and has one request a
// second and one at a time, whoever its users are. Too many is 429, and ten
// more that come too early are a ban for an hour, 403; both are HTML, and
// nothing tells how long. The names that HTTP libraries send of themselves are
// not let in. How many are too many is not documented: ten is ours.
//
// Search answers jsonv2 by default, reverse and lookup XML. Reverse where
// nothing is near is 200 with the error "Unable to geocode". A search gives 10
// places, at most 40 without a word about it; XML names the rest in more_url,
// JSON does not. Other errors are {"error":{"code","message"}} or the same as
// XML. A search that was cut short under load is the step cut-valid, and an
// outage is 503 in plain text; a query that took too long and a database in a
// bad state are among the golden exchanges.
//
// The places lie around 50° N 8° E, and are roads of ten towns.
package nominatim

import (
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "nominatim",
		Access:     "a User-Agent of your own, not that of a library, or a Referer; 403 without",
		Hosts:      []string{"nominatim.openstreetmap.org"},
		Dialect:    sim.Dialect{Refuse: refuse, Quota: func(*sim.Answer, []rate.Told) {}, Envelope: envelope},
		Limits:     limits,
		Credential: application,
		Authorize:  authorize,
		Operations: []sim.Operation{
			{Name: "places.search", Route: "GET /search", Do: search},
			{Name: "places.reverse", Route: "GET /reverse", Do: reverse},
			{Name: "places.lookup", Route: "GET /lookup", Do: lookup},
			{Name: "server.status", Route: "GET /status", Do: status},
		},
	}
}

// limits are those of the usage policy; the ban's measures are ours.
var limits = []rate.Limit{
	{Name: "one a second", Kind: rate.TokenBucket, Capacity: 1, Refill: 1,
		Penalty: rate.Penalty{First: time.Second, Max: time.Second, BanAfter: 10, BanFor: time.Hour}},
	{Name: "one at a time", Kind: rate.Concurrency, Capacity: 1},
}

// application is how a caller names itself.
func application(r *http.Request) string {
	if a := r.Header.Get("User-Agent"); a != "" && !library(a) {
		return a
	}
	return r.Header.Get("Referer")
}

// library tells whether a User-Agent is that of a library, not of an application.
func library(agent string) bool {
	for _, name := range []string{"Go-http-client/", "python-requests/", "Python-urllib/", "python-httpx/", "okhttp/", "Java/", "axios/", "node-fetch"} {
		if strings.HasPrefix(agent, name) {
			return true
		}
	}
	return false
}

func authorize(x *sim.Exchange) *sim.Refusal {
	if x.Credential() == "" {
		return &sim.Refusal{Kind: sim.Forbidden, Detail: "Access blocked: send a User-Agent of your application's own"}
	}
	return nil
}

// format is the one that a request asks for.
func format(x *sim.Exchange) string {
	if f := x.Query("format"); f != "" {
		return f
	}
	if x.Path == "/search" {
		return "jsonv2"
	}
	return "xml"
}

var formats = map[string]bool{"xml": true, "json": true, "jsonv2": true, "geojson": true}

// status tells of the server: as text, or, with format=json, with more.
func status(x *sim.Exchange) sim.Answer {
	if x.Query("format") != "json" {
		return sim.Text(200, "text/plain; charset=utf-8", "OK")
	}
	return sim.JSON(200, struct {
		Status   int    `json:"status"`
		Message  string `json:"message"`
		Updated  string `json:"data_updated"`
		Software string `json:"software_version"`
	}{0, "OK", x.Now().UTC().Truncate(time.Hour).Format(time.RFC3339), "5.1.0"})
}
