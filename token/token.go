// Package token keeps a credential fresh. A Source fetches it, renews it in
// the background at 80 % of its life while traffic keeps using the old one,
// and renews it at once, one flight for all callers, when the server no longer
// accepts it.
//
// A Source works from its zero value once Fetcher is set. Current is asked
// before every attempt and costs one look while the credential is fresh; Renew
// is called after a 401; Close ends the background work. A credential that
// nobody asked for during its whole life is not renewed, so an idle Source
// sends nothing.
//
// After a failed fetch the issuer is left alone for a growing time. Whoever
// needs a credential meanwhile is told at once, with the instant at which
// asking again makes sense, and decides for itself whether that is worth the
// wait: the retries of a call are decided in one place, and not here.
//
// A refresh token or a count of bad logins lives in one process. Programs that
// share an account do not see each other here.
package token

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/mask"
)

// Token is a credential as it goes onto a request. The zero Token puts nothing.
// However it is printed or encoded, it shows where it goes and until when it
// holds, never what it is.
type Token struct {
	// Header is the header that carries Value. Default Authorization.
	Header string
	Value  mask.Secret
	// Cookies are sent beside or instead of Header (FOLIO).
	Cookies []*http.Cookie
	// Query names a query parameter that carries Value instead of a header.
	Query string
	// Issued and Expires bound its life. Zero Expires: it does not expire. A
	// Source fills in Issued where the Fetcher left it zero, and makes it
	// later than that of every token before, so that Issued tells tokens apart.
	Issued, Expires time.Time
}

// Fetcher gets a new Token from the issuer. old is the one it replaces, for
// issuers that rotate; it is zero the first time. Fetch returns when ctx ends.
// It is called by one goroutine at a time.
type Fetcher interface {
	Fetch(ctx context.Context, old Token) (Token, error)
}

// Apply puts the credential onto r. It writes to r.Header and r.URL, which
// must be the caller's own copies (http.Request.Clone makes them): a
// RoundTripper may not change the request it was given. A header, cookie or
// parameter of the same name is replaced, so that applying the successor of a
// token leaves nothing of it behind.
func (t Token) Apply(r *http.Request) {
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	switch {
	case t.Value == "":
	case t.Query != "":
		r.URL.RawQuery = setParam(r.URL.RawQuery, t.Query, string(t.Value))
	default:
		r.Header.Set(t.header(), string(t.Value))
	}
	if len(t.Cookies) > 0 {
		t.addCookies(r)
	}
}

func (t Token) header() string {
	if t.Header == "" {
		return "Authorization"
	}
	return t.Header
}

func (t Token) addCookies(r *http.Request) {
	before := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range before {
		if !slices.ContainsFunc(t.Cookies, func(own *http.Cookie) bool { return own.Name == c.Name }) {
			r.AddCookie(c)
		}
	}
	for _, c := range t.Cookies {
		r.AddCookie(c)
	}
}

// setParam replaces the parameter name in the query raw and leaves the others
// byte for byte as they are: some servers check a signature over them.
func setParam(raw, name, value string) string {
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		key, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(key); part != "" && (err != nil || plain != name) {
			kept = append(kept, part)
		}
	}
	return strings.Join(append(kept, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}

// String tells where the credential goes and until when it holds.
func (t Token) String() string {
	place := "nowhere"
	switch {
	case t.Query != "":
		place = "query " + t.Query
	case t.Value != "":
		place = "header " + t.header()
	case len(t.Cookies) > 0:
		place = "cookies"
	}
	if t.Expires.IsZero() {
		return "token in " + place
	}
	return "token in " + place + " until " + t.Expires.UTC().Format(time.RFC3339)
}

// Format implements fmt.Formatter, so that no verb reaches the fields.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.String()) }

// MarshalText implements encoding.TextMarshaler, which JSON and slog use.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
