// Package sierra simulates the REST API of Innovative Sierra, version 6: bibs,
// items, patrons, holds and the export of MARC records.
//
// What it holds to, from techdocs.iii.com and from public clients: a token
// comes from POST /token with Basic authentication and lasts 3600 s; a list
// has 50 entries unless limit says otherwise, at most 2000, and its total is
// that of the page; an id= list that is longer than the page is cut without a
// word; a list without matches is 404 with code 107, but a list of deleted
// records is 200 with no entries; deleted records keep their id and a day;
// fields= with deleted=true is 500; there is no 429, and the one limit that
// was ever seen is 500 with the name "Rate exceeded for endpoint", for exports
// in 15 minutes. How many are too many is not known: here it is the eleventh.
//
// Holds are placed on items and bibs. The first of a record is ready two
// seconds later. The same request within five minutes is 500 with code 132 and
// specificCode 929, "already sent"; afterwards it is specificCode 2.
//
// Some records have a fate: orders are 503 with code 117 for ever, invoices
// with 118. Patron 3000009 is blocked, patron 3000007 can be read and not
// written, bib 1000007 is too large for a MARC record and is exported cut.
// The PIN of patron 3000001 is 4711, and so on upwards. Of the steps, empty,
// close, expire, commit-then-504 and the golden exchanges show the rest.
//
// Names of errors that no client has shown are ours.
package sierra

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

const root = "/iii/sierra-api/v6"

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "sierra",
		Access:     "Basic authentication with any key and secret at POST /iii/sierra-api/v6/token, then its token as Bearer, which lasts an hour; 401 without",
		Dialect:    sim.Dialect{Refuse: refuse, Quota: quota, Envelope: envelope},
		Limits:     limits,
		Credential: credential,
		Authorize:  authorize,
		Expire:     func(x *sim.Exchange) { tokens(x).Delete(bearer(x.Request)) },
		Operations: []sim.Operation{
			{Name: "tokens.create", Route: "POST " + root + "/token", Do: giveToken, Free: true},
			{Name: "tokens.info", Route: "GET " + root + "/info/token", Do: tellToken},
			{Name: "bibs.list", Route: "GET " + root + "/bibs", Do: listOf(bibs, wholeBib)},
			{Name: "bibs.create", Route: "POST " + root + "/bibs", Do: createBib},
			{Name: "bibs.marc", Route: "GET " + root + "/bibs/marc", Do: export},
			{Name: "bibs.marc.file", Route: "GET " + root + "/bibs/marc/files/{file}", Do: exported},
			{Name: "bibs.get", Route: "GET " + root + "/bibs/{id}", Do: oneOf(bibs, wholeBib)},
			{Name: "bibs.update", Route: "PUT " + root + "/bibs/{id}", Do: updateBib},
			{Name: "bibs.delete", Route: "DELETE " + root + "/bibs/{id}", Do: remove(bibs, "bib", func(b *bib) *record { return &b.record })},
			{Name: "items.list", Route: "GET " + root + "/items", Do: listOf(items, wholeItem)},
			{Name: "items.get", Route: "GET " + root + "/items/{id}", Do: oneOf(items, wholeItem)},
			{Name: "items.update", Route: "PUT " + root + "/items/{id}", Do: updateItem},
			{Name: "items.delete", Route: "DELETE " + root + "/items/{id}", Do: remove(items, "item", func(i *item) *record { return &i.record })},
			{Name: "patrons.list", Route: "GET " + root + "/patrons", Do: listOf(patrons, wholePatron)},
			{Name: "patrons.find", Route: "GET " + root + "/patrons/find", Do: findPatron},
			{Name: "patrons.validate", Route: "POST " + root + "/patrons/validate", Do: validatePatron},
			{Name: "patrons.get", Route: "GET " + root + "/patrons/{id}", Do: oneOf(patrons, wholePatron)},
			{Name: "patrons.update", Route: "PUT " + root + "/patrons/{id}", Do: updatePatron},
			{Name: "holds.list", Route: "GET " + root + "/patrons/{id}/holds", Do: listHolds},
			{Name: "holds.place", Route: "POST " + root + "/patrons/{id}/holds/requests", Do: placeHold},
			{Name: "holds.get", Route: "GET " + root + "/patrons/holds/{hold}", Do: getHold},
			{Name: "holds.cancel", Route: "DELETE " + root + "/patrons/holds/{hold}", Do: cancelHold},
			{Name: "orders.list", Route: "GET " + root + "/orders", Do: switchedOff(117, "API disabled")},
			{Name: "invoices.list", Route: "GET " + root + "/invoices", Do: switchedOff(118, "Service not in access tier")},
		},
	}
}

// limits has the one that was seen (Brown University's scripts). The window is
// theirs, the number ours.
var limits = []rate.Limit{{
	Name: "exports", Kind: rate.FixedWindow, Capacity: 10, Window: 15 * time.Minute,
	Routes: []string{"GET " + root + "/bibs/marc"},
}}

// switchedOff is a 503 that never heals.
func switchedOff(code int, name string) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer { return failed(x, fault{Code: code, Status: 503, Name: name}) }
}

// token is a bearer token.
type token struct {
	Key  string
	Ends time.Time
}

const tokenLife = time.Hour

func tokens(x *sim.Exchange) *sim.Table[token] { return sim.Rows[token](x, "tokens") }

func bearer(r *http.Request) string {
	scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return t
}

// credential is the client key, in Basic or within the token, so that a client
// stays the same one when its token changes.
func credential(r *http.Request) string {
	if key, _, ok := r.BasicAuth(); ok {
		return key
	}
	t := bearer(r)
	_, tail, _ := strings.Cut(t, ".")
	if key, err := base64.RawURLEncoding.DecodeString(tail); err == nil && len(key) > 0 {
		return string(key)
	}
	return t
}

func authorize(x *sim.Exchange) *sim.Refusal {
	t, ok := tokens(x).Get(bearer(x.Request))
	if !ok || !x.Now().Before(t.Ends) {
		return &sim.Refusal{Kind: sim.Unauthorized}
	}
	return nil
}

func giveToken(x *sim.Exchange) sim.Answer {
	key, secret, ok := x.Request.BasicAuth()
	if !ok || key == "" || secret == "" {
		return failed(x, fault{Code: 113, Status: 401, Name: "Unauthorized", Description: "Invalid or missing authorization header"})
	}
	if grant := x.Form().Get("grant_type"); grant != "" && grant != "client_credentials" {
		return failed(x, fault{Code: 108, Status: 400, Name: "Invalid parameter", Description: "this simulator has grant_type=client_credentials"})
	}
	t := x.ID("") + "." + base64.RawURLEncoding.EncodeToString([]byte(key))
	tokens(x).Put(t, token{key, x.Now().Add(tokenLife)})
	return sim.JSON(200, struct {
		Token string `json:"access_token"`
		Type  string `json:"token_type"`
		Life  int    `json:"expires_in"`
	}{t, "bearer", int(tokenLife / time.Second)})
}

func tellToken(x *sim.Exchange) sim.Answer {
	t, _ := tokens(x).Get(bearer(x.Request))
	sum := sha256.Sum256([]byte(t.Key)) // keys are told to nobody
	return sim.JSON(200, struct {
		Key  string   `json:"keyId"`
		Type string   `json:"grantType"`
		Ends int      `json:"expiresIn"`
		May  []string `json:"roles"`
	}{hex.EncodeToString(sum[:4]), "client_credentials", int(t.Ends.Sub(x.Now()) / time.Second), []string{"read", "write"}})
}
