// Package token keeps a credential fresh. A Source fetches it, renews it in
// the background at 80 % of its life while traffic keeps using the old one,
// and renews it at once, one flight for all callers, when the server no longer
// accepts it.
package token

import (
	"context"
	"net/http"
	"time"

	"github.com/heedproject/heed/mask"
)

// Token is a credential as it goes onto a request. The zero Token puts nothing.
type Token struct {
	// Header is the header that carries Value. Default Authorization.
	Header string
	Value  mask.Secret
	// Cookies are sent beside or instead of Header (FOLIO).
	Cookies []*http.Cookie
	// Query names a query parameter that carries Value instead of a header.
	Query string
	// Issued and Expires bound its life. Zero Expires: it does not expire.
	Issued, Expires time.Time
}

// Fetcher gets a new Token from the issuer. old is the one it replaces, for
// issuers that rotate; it is zero the first time.
type Fetcher interface {
	Fetch(ctx context.Context, old Token) (Token, error)
}
