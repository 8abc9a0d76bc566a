package config

import (
	"slices"
	"strings"

	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// needs lists, per kind of auth, the keys that must be there and those that
// may be.
var needs = map[AuthKind]struct{ must, may []string }{
	AuthNone:        {},
	AuthPassthrough: {},
	AuthHeader:      {must: []string{"value"}, may: []string{"header", "prefix"}},
	AuthQuery:       {must: []string{"query", "value"}},
	AuthBasic:       {must: []string{"user", "password"}},
	AuthOAuth2:      {must: []string{"token_url", "user", "password"}, may: []string{"scopes", "lifetime"}},
	AuthSierra:      {must: []string{"user", "password"}, may: []string{"token_url", "lifetime"}},
	AuthFolio:       {must: []string{"user", "password", "tenant"}, may: []string{"token_url", "lifetime"}},
}

func authFields(a *Auth) sheet.Block {
	fields := []sheet.Field{
		{Name: "kind", Doc: "How requests are authenticated; passthrough sends the caller's own credential on.", Required: true,
			Value: sheet.OneOf(&a.Kind, AuthNone, AuthPassthrough, AuthHeader, AuthQuery, AuthBasic, AuthOAuth2, AuthSierra, AuthFolio)},
		{Name: "header", Doc: "kind header: the header that carries value. Default Authorization.", Value: provider.Header(&a.Header)},
		{Name: "prefix", Doc: "kind header: put before value, such as \"apikey \".", Value: sheet.Text(&a.Prefix)},
		{Name: "query", Doc: "kind query: the parameter that carries value.", Value: sheet.Text(&a.Query)},
		{Name: "value", Doc: "kinds header and query: the credential.", Value: secret(&a.Value)},
		{Name: "user", Doc: "The user, key or client id.", Value: secret(&a.User)},
		{Name: "password", Doc: "The password or client secret.", Value: secret(&a.Password)},
		{Name: "token_url", Doc: "Where a token is fetched. Default of the kinds sierra and folio: below url.", Value: tokenURL(&a.TokenURL)},
		{Name: "scopes", Doc: "kind oauth2: the scopes to ask for.", Value: sheet.Texts(&a.Scopes)},
		{Name: "tenant", Doc: "kind folio: sent as X-Okapi-Tenant.", Value: sheet.Text(&a.Tenant)},
		{Name: "lifetime", Doc: "How long a token holds where the issuer does not say.", Value: sheet.If(a.Lifetime != 0, sheet.Duration(&a.Lifetime))},
	}
	return sheet.Block{Fields: fields, Check: func(m sheet.Read) { checkAuth(a, m) }}
}

func checkAuth(a *Auth, m sheet.Read) {
	need, ok := needs[a.Kind]
	if !ok {
		return // reported by kind itself
	}
	for _, key := range need.must {
		if !m.Has(key) {
			m.Bad(key, "add it", "auth of kind %s needs %s", a.Kind, key)
		}
	}
	for _, member := range m.Node.Members {
		key := member.Key.Text
		if known(key) && !slices.Contains(need.must, key) && !slices.Contains(need.may, key) {
			m.Bad(key, "leave it out", "%s does not belong to auth of kind %s", key, a.Kind)
		}
	}
	if strings.ContainsAny(a.Prefix, "\r\n\x00") {
		m.Bad("prefix", "write one line", "the prefix holds a line break")
	}
	if a.Kind == AuthHeader && slices.Contains(framing, strings.ToLower(a.Header)) {
		m.Bad("header", "name the header of the credential", "this header is not free to be set")
	}
}

// framing are headers that belong to the connection, not to a credential.
var framing = []string{"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}

// known tells whether key is a key of auth that some kind has.
func known(key string) bool {
	for _, need := range needs {
		if slices.Contains(need.must, key) || slices.Contains(need.may, key) {
			return true
		}
	}
	return false
}
