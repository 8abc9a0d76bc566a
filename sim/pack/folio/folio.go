// Package folio simulates a FOLIO tenant: logins, users, inventory storage and
// requests, as the modules answer behind Okapi or Kong.
//
// What it holds to, from the sources of mod-login, mod-authtoken and
// raml-module-builder: POST /authn/login-with-expiry gives two cookies, for 600
// s and for 7 days; POST /authn/refresh replaces both; a refresh token that
// was used, or is not known, ends every token of its user; the fifth wrong
// password locks the account for ten minutes. Errors are text/plain, but a
// record that is refused is 422 with a JSON list. An id is the client's own,
// and 422 "already exists" when it is sent again. _version is a lock:
// instances and items answer a stale one with 409, holdings, as modules do
// whose interface has no 409, with 500 and SQLSTATE 23F09 in the text.
//
// Lists have 10 records unless limit says otherwise. totalRecords is exact
// below 1000, with limit=0 and with totalRecords=exact; else it is an
// estimate, here an eighth too high, which a page that ends corrects. Queries are
// CQL: index, relation and text joined by and, or, not, then sortBy.
//
// A request is not yet filled, and after two seconds awaits pickup. Every
// tenant is there; user diku_admin and those of /users log in with the
// password admin. FOLIO has no rate limit: 429, 502 and 504 are of the
// hoster's ingress, and come by steps. Cookies lack Secure, so that clients
// send them over plain HTTP.
package folio

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Pack returns it.
func Pack() sim.Pack {
	p := sim.Pack{
		Name:       "folio",
		Access:     "POST /authn/login-with-expiry with diku_admin and admin, or a user of /users and admin; then its cookie or X-Okapi-Token, and X-Okapi-Tenant; 401 without",
		Dialect:    sim.Dialect{Refuse: refuse, Quota: func(*sim.Answer, []rate.Told) {}, Envelope: envelope},
		Credential: credential,
		Authorize:  authorize,
		Expire:     expire,
		Operations: []sim.Operation{
			{Name: "authn.login", Route: "POST /authn/login-with-expiry", Do: login, Free: true},
			{Name: "authn.login-legacy", Route: "POST /authn/login", Do: loginLegacy, Free: true},
			{Name: "authn.refresh", Route: "POST /authn/refresh", Do: refresh, Free: true},
			{Name: "authn.logout", Route: "POST /authn/logout", Do: logout},
		},
	}
	for i := range collections {
		c := &collections[i]
		p.Operations = append(p.Operations,
			sim.Operation{Name: c.list + ".list", Route: "GET " + c.path, Do: c.search},
			sim.Operation{Name: c.list + ".create", Route: "POST " + c.path, Do: c.create},
			sim.Operation{Name: c.list + ".get", Route: "GET " + c.path + "/{id}", Do: c.get},
			sim.Operation{Name: c.list + ".update", Route: "PUT " + c.path + "/{id}", Do: c.update},
			sim.Operation{Name: c.list + ".delete", Route: "DELETE " + c.path + "/{id}", Do: c.remove},
		)
	}
	return p
}

// credential is who asks: user and tenant, or, before a login, the tenant. It
// stays the same when the tokens change.
func credential(r *http.Request) string {
	for _, t := range []string{accessOf(r), refreshOf(r)} {
		if who := holder(t); who != "" {
			return who
		}
	}
	return r.Header.Get("X-Okapi-Tenant")
}

func cookie(r *http.Request, name string) string {
	if c, err := r.Cookie(name); err == nil {
		return c.Value
	}
	return ""
}

func accessOf(r *http.Request) string {
	if t := r.Header.Get("X-Okapi-Token"); t != "" {
		return t
	}
	return cookie(r, "folioAccessToken")
}

func refreshOf(r *http.Request) string { return cookie(r, "folioRefreshToken") }

// holder is user@tenant of a token: its middle part, as in a JWT.
func holder(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	who, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	return string(who)
}

func text(status int, body string) sim.Answer { return sim.Text(status, "text/plain", body) }

// empty is the answer of a change that worked.
func empty() sim.Answer { return sim.Answer{Status: 204, Fields: [][2]string{{"Content-Type", ""}}} }

// refuse writes what modules and the ingress write as plain text.
func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	switch {
	case r.Kind == sim.Unauthorized && r.Field == "":
		r.Detail = "Access token has expired"
	case r.Operations != nil:
		r.Detail += ", module not found for this path; this simulator has: " + strings.Join(r.Operations, ", ")
	}
	an := text(r.StatusOr(r.Kind.DefaultStatus()), r.Detail)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	sim.RetryAfter(x, &an, r)
	return an
}

// envelope is an error of a backend module that lost its status.
func envelope(*sim.Exchange) sim.Answer {
	return sim.JSON(200, invalid{[]problem{{Message: "Internal server error"}}})
}

// invalid is what a 422 says.
type invalid struct {
	Errors []problem `json:"errors"`
}

type problem struct {
	Message    string      `json:"message"`
	Type       string      `json:"type,omitempty"`
	Code       string      `json:"code,omitempty"`
	Parameters []parameter `json:"parameters,omitempty"`
}

type parameter struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func unprocessable(p problem) sim.Answer { return sim.JSON(422, invalid{[]problem{p}}) }
