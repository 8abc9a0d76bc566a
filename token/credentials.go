package token

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/mask"
)

// ClientCredentials gets tokens by the OAuth 2 client credentials grant (RFC
// 6749 §4.4). For other grants see package oauth.
type ClientCredentials struct {
	// TokenURL is the token endpoint. Required.
	TokenURL string
	// ID and Secret are the client's. Required.
	ID, Secret mask.Secret
	// Scopes are asked for. Optional.
	Scopes []string
	// Params are sent in the form beside the grant, such as audience.
	Params url.Values
	// InBody sends ID and Secret in the form and not by HTTP Basic. RFC 6749
	// §2.3.1 advises against it; some issuers know nothing else.
	InBody bool
	// Header carries the token to the API. Default Authorization.
	Header string
	// Via sends the request. nil: a client of its own with timeouts.
	Via http.RoundTripper
}

// Fetch implements Fetcher.
func (c ClientCredentials) Fetch(ctx context.Context, _ Token) (Token, error) {
	form := url.Values{}
	maps.Copy(form, c.Params)
	form.Set("grant_type", "client_credentials")
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	header := formHeader()
	if c.InBody {
		form.Set("client_id", string(c.ID))
		form.Set("client_secret", string(c.Secret))
	} else {
		// RFC 6749 §2.3.1: both are form-encoded before Basic joins them.
		auth := basic(url.QueryEscape(string(c.ID)), url.QueryEscape(string(c.Secret)))
		header.Set("Authorization", string(auth))
	}
	a, err := issuer{"client credentials", c.TokenURL, c.Via}.post(ctx, header, form.Encode())
	if err != nil {
		return Token{}, err
	}
	t, err := a.grant()
	t.Header = c.Header
	return t, err
}

func formHeader() http.Header {
	return http.Header{
		"Accept":       {"application/json"},
		"Content-Type": {"application/x-www-form-urlencoded"},
	}
}

var (
	errNoGrant  error = why("the answer has no access_token: check the url")
	errLarge    error = why("the answer is larger than 1 MiB, which no token is: check the url")
	errBadGrant error = why("the token cannot be put into a header")
)

// grant reads a successful token answer (RFC 6749 §5.1).
func (a *answer) grant() (Token, error) {
	var said struct {
		Access  string          `json:"access_token"`
		Type    string          `json:"token_type"`
		Expires json.RawMessage `json:"expires_in"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Access == "" {
		return Token{}, a.noGrant()
	}
	if said.Type == "" || strings.EqualFold(said.Type, "bearer") {
		said.Type = "Bearer"
	}
	value := said.Type + " " + said.Access
	if !visible(value) {
		return Token{}, a.fail(errBadGrant)
	}
	t := Token{Value: mask.Secret(value), Issued: a.sent}
	if life := lifetime(said.Expires); life > 0 {
		t.Expires = a.sent.Add(life)
	}
	return t, nil
}

// noGrant is the error of a 2xx without a token. Some issuers refuse in one,
// with the code that belongs into a 400.
func (a *answer) noGrant() *Error {
	e := a.fail(errNoGrant)
	if said := Answered(e.Op, http.StatusBadRequest, codeIn(a.body)); said.Code != "" {
		e.Code, e.Refused, e.Err = said.Code, said.Refused, said.Err
	}
	return e
}

// visible tells whether s is printable ASCII, as the value of a header that
// carries a credential is.
func visible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// lifeMax keeps an absurd expires_in from overflowing an instant.
const lifeMax = 10 * 365 * 24 * time.Hour

// lifetime reads an expires_in in seconds, which some issuers send as a string
// or with a fraction. What cannot be read, or is not positive, is 0: not said.
func lifetime(raw json.RawMessage) time.Duration {
	text := string(bytes.Trim(raw, " \t\r\n\""))
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil && !math.IsInf(seconds, 1) || !(seconds > 0) {
		return 0
	}
	if seconds >= lifeMax.Seconds() {
		return lifeMax
	}
	return time.Duration(seconds * float64(time.Second))
}
