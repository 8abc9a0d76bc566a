package token

import (
	"context"
	"encoding/base64"

	"github.com/heedproject/heed/mask"
)

// Static returns a Source whose credential is value in header (default
// Authorization) and never expires. A 401 cannot be cured by renewing it.
func Static(header string, value mask.Secret) *Source {
	return fixedSource(Token{Header: header, Value: value})
}

// Basic returns a Source of HTTP Basic credentials (RFC 7617).
func Basic(user, password mask.Secret) *Source {
	return fixedSource(Token{Value: basic(string(user), string(password))})
}

// Query returns a Source whose credential is the query parameter name.
func Query(name string, value mask.Secret) *Source {
	return fixedSource(Token{Query: name, Value: value})
}

func fixedSource(t Token) *Source {
	s := &Source{Fetcher: fixed{}}
	s.held.Store(&held{Token: t})
	return s
}

func basic(user, password string) mask.Secret {
	return mask.Secret("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// fixed stands for an issuer where there is none.
type fixed struct{}

// Fetch implements Fetcher.
func (fixed) Fetch(context.Context, Token) (Token, error) { return Token{}, ErrFixed }
