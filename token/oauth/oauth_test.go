package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/heedproject/heed/token"
	"github.com/heedproject/heed/token/oauth"
)

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%s: -got +want\n%s", what, diff)
	}
}

// ask is a TokenSource.
type ask func() (*oauth2.Token, error)

func (a ask) Token() (*oauth2.Token, error) { return a() }

func TestTokenSourceFeedsASource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := &token.Source{Jitter: -1, Fetcher: oauth.Fetcher(ask(func() (*oauth2.Token, error) {
			n++
			return &oauth2.Token{AccessToken: fmt.Sprint("a", n), TokenType: "bearer", Expiry: time.Now().Add(time.Hour)}, nil
		}))}
		defer s.Close()
		for _, want := range []string{"Bearer a1", "Bearer a2"} {
			got, err := s.Current(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "value", string(got.Value), want)
			equal(t, "life", got.Expires.Sub(got.Issued), time.Hour)
			time.Sleep(48 * time.Minute)
			synctest.Wait()
		}
	})
}

func TestCachingTokenSourceIsNotAskedInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, issued atomic.Int64
		cached := oauth2.ReuseTokenSource(nil, ask(func() (*oauth2.Token, error) {
			issued.Add(1)
			return &oauth2.Token{AccessToken: "a", Expiry: time.Now().Add(time.Hour)}, nil
		}))
		s := &token.Source{Fetcher: oauth.Fetcher(ask(func() (*oauth2.Token, error) {
			asked.Add(1)
			return cached.Token()
		}))}
		defer s.Close()
		for range 2 * 3600 {
			if _, err := s.Current(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := asked.Load(); n > 20 {
			t.Errorf("asked %d times in two hours", n)
		}
		equal(t, "issued", issued.Load(), 3)
	})
}

func TestFuncRenewsARejectedToken(t *testing.T) {
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"a%d","token_type":"bearer","expires_in":3600}`, n)
	}))
	defer srv.Close()
	conf := clientcredentials.Config{ClientID: "me", ClientSecret: "s", TokenURL: srv.URL}
	s := &token.Source{Fetcher: oauth.Func(conf.Token)}
	defer s.Close()
	first, err := s.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Renew(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "values", []string{string(first.Value), string(second.Value)}, []string{"Bearer a1", "Bearer a2"})
}

func TestErrorsRepeatNeitherBodyNorURL(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{
			&oauth2.RetrieveError{Response: &http.Response{StatusCode: 400}, Body: []byte("canary"), ErrorCode: "invalid_grant", ErrorDescription: "canary"},
			"token source: oauth2 token: status 400 (invalid_grant): the issuer refuses: check the credential and the url",
		},
		{
			fmt.Errorf("canary: %w", &oauth2.RetrieveError{Response: &http.Response{StatusCode: 503}, Body: []byte("canary"), ErrorCode: "canary"}),
			"token source: oauth2 token: status 503",
		},
		{&url.Error{Op: "Post", URL: "http://issuer/?canary", Err: io.ErrUnexpectedEOF}, "token source: oauth2 token: unexpected EOF"},
		{errors.New("canary"), "token source: oauth2 token: the token source failed with a *errors.errorString"},
		{nil, "token source: oauth2 token: the token source gave no token"},
	} {
		_, err := oauth.Fetcher(ask(func() (*oauth2.Token, error) { return nil, tc.err })).Fetch(t.Context(), token.Token{})
		if err == nil {
			t.Fatalf("%v: no error", tc.err)
		}
		equal(t, "text", err.Error(), tc.want)
	}
}

func TestPanicInATokenSourceIsAnError(t *testing.T) {
	_, err := oauth.Fetcher(ask(func() (*oauth2.Token, error) { panic("canary") })).Fetch(t.Context(), token.Token{})
	if err == nil || !strings.Contains(err.Error(), "panicked with a string") {
		t.Errorf("got %v", err)
	}
}

func TestHungTokenSourceIsLeftAndJoinedByTheNextFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f := oauth.Fetcher(ask(func() (*oauth2.Token, error) {
			n++
			time.Sleep(time.Hour)
			return &oauth2.Token{AccessToken: "late"}, nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.Fetch(ctx, token.Token{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		got, err := f.Fetch(t.Context(), token.Token{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "value", string(got.Value), "Bearer late")
		equal(t, "asked", n, 1)
	})
}
