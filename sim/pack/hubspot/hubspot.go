// Package hubspot simulates the CRM API of HubSpot, version 3: contacts to
// make, change, read and search, one at a time or in batches.
//
// What it holds to, from developers.hubspot.com: 100 requests of an app in any
// ten seconds, 250,000 of an account in a day that ends at midnight in the
// account's own time zone, 5 searches in a second; which of them refused, only
// the body of the 429 says, and nothing says for how long; headers tell what is
// left, but not of a search, and not of the day to an OAuth app; a batch of
// which a part failed is 207; a contact is found by a search only some time
// after it was written; a search ends at 10,000 results. The account lies five
// hours west of Greenwich all year round.
//
// A private app's token begins with pat-. An OAuth app gets its access token
// at POST /oauth/v1/token, with any code or refresh token, for 30 minutes.
// There are 30 contacts at first.
package hubspot

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

const base = "/crm/v3/objects/contacts"

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "hubspot",
		Access:     "Authorization: Bearer TOKEN that begins with pat-, or one of POST /oauth/v1/token, which lasts 30 min; 401 without",
		Hosts:      []string{"api.hubapi.com"},
		Dialect:    sim.Dialect{Refuse: refuse, Tell: tell, Envelope: envelope},
		Limits:     limits,
		Credential: credential,
		Authorize:  authorize,
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "expired").Put(x.Credential(), true) },
		Operations: []sim.Operation{
			{Name: "oauth.token", Route: "POST /oauth/v1/token", Do: giveToken, Free: true},
			{Name: "account.details", Route: "GET /account-info/v3/details", Do: details},
			{Name: "contacts.search", Route: "POST " + base + "/search", Do: search},
			{Name: "contacts.batch_create", Route: "POST " + base + "/batch/create", Do: batch(createOne)},
			{Name: "contacts.batch_read", Route: "POST " + base + "/batch/read", Do: batch(readOne)},
			{Name: "contacts.batch_update", Route: "POST " + base + "/batch/update", Do: batch(updateOne)},
			{Name: "contacts.batch_upsert", Route: "POST " + base + "/batch/upsert", Do: batch(upsertOne)},
			{Name: "contacts.batch_archive", Route: "POST " + base + "/batch/archive", Do: archiveMany},
			{Name: "contacts.create", Route: "POST " + base, Do: createContact},
			{Name: "contacts.list", Route: "GET " + base, Do: listContacts},
			{Name: "contacts.get", Route: "GET " + base + "/{id}", Do: getContact},
			{Name: "contacts.update", Route: "PATCH " + base + "/{id}", Do: updateContact},
			{Name: "contacts.archive", Route: "DELETE " + base + "/{id}", Do: archiveContact},
		},
	}
}

// The limits bear the names of the policies that a 429 tells of.
const (
	tenSeconds = "TEN_SECONDLY_ROLLING"
	daily      = "DAILY"
	oneSecond  = "SECONDLY"
)

var limits = []rate.Limit{
	{Name: tenSeconds, Kind: rate.SlidingWindow, Capacity: 100, Window: 10 * time.Second,
		Routes: []string{"GET /**", "PATCH /**", "DELETE /**", "POST " + base, "POST " + base + "/batch/*"}},
	{Name: daily, Kind: rate.Daily, Capacity: 250_000, Midnight: 5 * time.Hour, Scope: rate.Everyone},
	{Name: oneSecond, Kind: rate.SlidingWindow, Capacity: 5, Window: time.Second, Scope: rate.Everyone,
		Routes: []string{"POST " + base + "/search"}},
}

// tell tells of the ten seconds, and a private app of the day too, but never
// after a search.
func tell(x *sim.Exchange, an *sim.Answer, told []rate.Told) {
	searched := strings.HasSuffix(x.Path, "/search")
	for _, t := range told {
		most, left := strconv.Itoa(int(t.Capacity)), strconv.Itoa(int(t.Remaining))
		switch {
		case t.Limit.Name == oneSecond:
		case t.Limit.Name == daily:
			if private(x.Credential()) && !searched {
				an.Set("X-HubSpot-RateLimit-Daily", most)
				an.Set("X-HubSpot-RateLimit-Daily-Remaining", left)
			}
		default:
			an.Set("X-HubSpot-RateLimit-Max", most)
			an.Set("X-HubSpot-RateLimit-Remaining", left)
			an.Set("X-HubSpot-RateLimit-Interval-Milliseconds", strconv.FormatInt(t.Limit.Window.Milliseconds(), 10))
		}
	}
}

// trouble is how HubSpot tells errors.
type trouble struct {
	Status      string `json:"status"`
	Message     string `json:"message"`
	Correlation string `json:"correlationId,omitempty"`
	Category    string `json:"category,omitempty"`
	Type        string `json:"errorType,omitempty"`
	Policy      string `json:"policyName,omitempty"`
	Group       string `json:"groupName,omitempty"`
}

// categories are the words for a kind.
var categories = map[sim.Kind]string{
	sim.BadRequest:   "VALIDATION_ERROR",
	sim.Unauthorized: "INVALID_AUTHENTICATION",
	sim.Forbidden:    "MISSING_SCOPES",
	sim.NotFound:     "OBJECT_NOT_FOUND",
	sim.Conflict:     "CONFLICT",
}

// messages are what a policy says of itself.
var messages = map[string]string{
	tenSeconds: "You have reached your ten_secondly_rolling limit.",
	daily:      "You have reached your daily limit.",
	oneSecond:  "You have reached your secondly limit.",
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	t := trouble{Status: "error", Message: r.Detail, Correlation: x.ID(""), Category: categories[r.Kind]}
	switch {
	case r.Kind == sim.Throttled:
		t.Type, t.Policy, t.Group = "RATE_LIMIT", tenSeconds, "publicapi:private-apps:calls-by-app"
		if r.Limit != nil && messages[r.Limit.Name] != "" {
			t.Policy = r.Limit.Name
		}
		t.Message = messages[t.Policy]
	case r.Kind == sim.Unauthorized && strings.Contains(r.Detail, "expired"):
		t.Category = "EXPIRED_AUTHENTICATION"
	case r.Operations != nil:
		t.Message += "; there are: " + strings.Join(r.Operations, ", ")
	}
	an := sim.JSON(r.StatusOr(r.Kind.DefaultStatus()), t)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	if r.Kind == sim.Overloaded {
		sim.RetryAfter(x, &an, r)
	}
	return an
}

// envelope is an error that lost its status on the way.
func envelope(x *sim.Exchange) sim.Answer {
	return sim.JSON(http.StatusOK, trouble{Status: "error", Message: "internal error", Correlation: x.ID("")})
}

func credential(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// private tells whether this is the token of a private app.
func private(token string) bool { return strings.HasPrefix(token, "pat-") }

// tokenLife is how long an access token is good.
const tokenLife = 30 * time.Minute

func authorize(x *sim.Exchange) *sim.Refusal {
	token := x.Credential()
	expired, _ := sim.Rows[bool](x, "expired").Get(token)
	until, known := sim.Rows[time.Time](x, "access tokens").Get(token)
	switch {
	case expired, known && !x.Now().Before(until):
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "The OAuth token used to make this call expired."}
	case known, private(token):
		return nil
	}
	return &sim.Refusal{Kind: sim.Unauthorized, Detail: "Authentication credentials not found or not accepted."}
}

func giveToken(x *sim.Exchange) sim.Answer {
	form := x.Form()
	refresh := form.Get("refresh_token")
	switch form.Get("grant_type") {
	case "authorization_code":
		refresh = x.ID("rt-")
	case "refresh_token":
		if refresh == "" {
			return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "missing or invalid refresh token"})
		}
	default:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "grant_type is authorization_code or refresh_token"})
	}
	access := x.ID("at-")
	sim.Rows[time.Time](x, "access tokens").Put(access, x.Now().Add(tokenLife))
	x.Effect("token", "", 0)
	return sim.JSON(200, struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Expires int    `json:"expires_in"`
		Type    string `json:"token_type"`
	}{access, refresh, int(tokenLife.Seconds()), "bearer"})
}

func details(*sim.Exchange) sim.Answer {
	return sim.JSON(200, struct {
		Portal int    `json:"portalId"`
		Zone   string `json:"timeZone"`
		Offset string `json:"utcOffset"`
	}{1, "America/New_York", "-05:00"})
}
