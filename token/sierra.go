package token

import (
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/heedproject/heed/mask"
)

// Sierra gets the session token of an Innovative Sierra REST API: POST with
// HTTP Basic key and secret, answered by a bearer token that holds an hour.
//
// Sierra is known to answer now and then with 200 and nothing, or to close the
// connection without an answer (changelogs of NYPL's clients; NDL-VuFind2).
// Both are tried again after 1, 2 and 4 s.
type Sierra struct {
	// URL ends in /token. Required.
	URL string
	// Key and Secret are those of the API client. Required.
	Key, Secret mask.Secret
	// Via sends the request. nil: a client of its own with timeouts.
	Via http.RoundTripper
}

// sierraLife is the life of a token whose expires_in is missing (Innovative's
// guide, "Making a call").
const sierraLife = time.Hour

var errEmpty error = why("an empty answer, again and again")

// Fetch implements Fetcher.
func (s Sierra) Fetch(ctx context.Context, _ Token) (Token, error) {
	for wait := time.Second; ; wait *= 2 {
		t, err := s.fetch(ctx)
		if err == nil || wait > 4*time.Second || !empty(err) {
			return t, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return Token{}, err
		}
	}
}

func (s Sierra) fetch(ctx context.Context) (Token, error) {
	header := formHeader()
	header.Set("Authorization", string(basic(string(s.Key), string(s.Secret))))
	a, err := issuer{"sierra token", s.URL, s.Via}.post(ctx, header, "grant_type=client_credentials")
	if err != nil {
		return Token{}, err
	}
	if len(a.body) == 0 {
		return Token{}, a.fail(errEmpty)
	}
	t, err := a.grant()
	if err == nil && t.Expires.IsZero() {
		t.Expires = t.Issued.Add(sierraLife)
	}
	return t, err
}

// empty tells whether err is Sierra's way of saying nothing.
func empty(err error) bool {
	for _, silence := range []error{errEmpty, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET} {
		if errors.Is(err, silence) {
			return true
		}
	}
	return false
}
