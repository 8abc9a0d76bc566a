package jira

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// tokenLife is how long an access token is good.
const tokenLife = time.Hour

// authorize takes an API token, in Basic, and an access token that was given
// out here.
func authorize(x *sim.Exchange) *sim.Refusal {
	expired, _ := sim.Rows[bool](x, "expired").Get(x.Credential())
	token, bearer := strings.CutPrefix(x.Credential(), "Bearer ")
	user, pass, basic := x.Request.BasicAuth()
	switch until, known := sim.Rows[time.Time](x, "access tokens").Get(token); {
	case expired:
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "the token is over"}
	case bearer && known && x.Now().Before(until):
		return nil
	case bearer && known:
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "the access token has expired"}
	case basic && strings.Contains(user, "@") && pass != "":
		return nil
	}
	return &sim.Refusal{Kind: sim.Unauthorized, Detail: "send an email address and an API token, or an access token"}
}

// grant is a request for tokens.
type grant struct {
	Type    string `json:"grant_type"`
	Client  string `json:"client_id"`
	Code    string `json:"code"`
	Refresh string `json:"refresh_token"`
}

// giveToken exchanges a code, any, or a refresh token, once, for a new pair.
func giveToken(x *sim.Exchange) sim.Answer {
	g := grantOf(x)
	refreshes := sim.Rows[bool](x, "refresh tokens")
	switch {
	case g.Client == "":
		return oauthError(http.StatusUnauthorized, "access_denied", "client_id is missing")
	case g.Type == "authorization_code" && g.Code != "":
	case g.Type == "refresh_token":
		if !refreshes.Delete(g.Refresh) {
			return oauthError(http.StatusForbidden, "invalid_grant", "Unknown or invalid refresh token.")
		}
	default:
		return oauthError(http.StatusBadRequest, "unsupported_grant_type", "use authorization_code with a code, or refresh_token")
	}
	pair := struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Expires int    `json:"expires_in"`
		Type    string `json:"token_type"`
		Scope   string `json:"scope"`
	}{x.ID("at_"), x.ID("rt_"), int(tokenLife.Seconds()), "Bearer", "read:jira-work write:jira-work offline_access"}
	sim.Rows[time.Time](x, "access tokens").Put(pair.Access, x.Now().Add(tokenLife))
	refreshes.Put(pair.Refresh, true)
	x.Effect("token", "", 0)
	return sim.JSON(200, pair)
}

// grantOf reads a grant in JSON, or in a form.
func grantOf(x *sim.Exchange) grant {
	var g grant
	if x.Decode(&g) == nil {
		return g
	}
	form, _ := url.ParseQuery(string(x.Body)) // what can be read of it counts
	return grant{form.Get("grant_type"), form.Get("client_id"), form.Get("code"), form.Get("refresh_token")}
}

func oauthError(status int, code, detail string) sim.Answer {
	return sim.JSON(status, struct {
		Error  string `json:"error"`
		Detail string `json:"error_description"`
	}{code, detail})
}

func myself(x *sim.Exchange) sim.Answer {
	user, _, _ := x.Request.BasicAuth()
	if user == "" {
		user = "app@example.org"
	}
	return sim.JSON(200, struct {
		ID     string `json:"accountId"`
		Email  string `json:"emailAddress"`
		Active bool   `json:"active"`
	}{"5b10a2844c20165700ede21g", user, true})
}
