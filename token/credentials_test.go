package token_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/token"
)

// served is a RoundTripper that asks a handler without a network, so that it
// works in a bubble.
type served http.HandlerFunc

func (s served) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s(w, r)
	return w.Result(), nil
}

// cut is a RoundTripper that fails.
type cut struct{ err error }

func (c cut) RoundTrip(*http.Request) (*http.Response, error) { return nil, c.err }

func says(status int, body string) served {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const tokenURL = "https://user:pw@issuer.test/oauth/token?tenant=7"

func TestClientCredentialsAreSentByHTTPBasic(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		got = []string{
			r.Method, r.URL.Path, user, password, r.PostFormValue("grant_type"),
			r.PostFormValue("scope"), r.PostFormValue("audience"), r.PostFormValue("client_secret"), r.Header.Get("Accept"),
		}
		_, _ = io.WriteString(w, `{"access_token":"abc","token_type":"bearer","expires_in":3600}`)
	}))
	defer srv.Close()
	s := &token.Source{Fetcher: token.ClientCredentials{
		TokenURL: srv.URL + "/token", ID: "a b", Secret: "c:d%", Scopes: []string{"read", "write"},
		Params: url.Values{"audience": {"api"}},
	}}
	defer s.Close()
	tok := rejected(t, s)
	equal(t, "request", got, []string{
		"POST", "/token", "a+b", "c%3Ad%25", "client_credentials",
		"read write", "api", "", "application/json",
	})
	equal(t, "value", string(tok.Value), "Bearer abc")
	equal(t, "life", tok.Expires.Sub(tok.Issued), time.Hour)
}

func TestClientCredentialsGoIntoTheBodyOnRequest(t *testing.T) {
	var got []string
	c := token.ClientCredentials{
		TokenURL: tokenURL, ID: "me", Secret: "s", InBody: true, Header: "X-Token",
		Via: served(func(w http.ResponseWriter, r *http.Request) {
			got = []string{r.PostFormValue("client_id"), r.PostFormValue("client_secret"), r.Header.Get("Authorization")}
			_, _ = io.WriteString(w, `{"access_token":"abc"}`)
		}),
	}
	tok, err := c.Fetch(t.Context(), token.Token{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "request", got, []string{"me", "s", ""})
	equal(t, "header", tok.Header, "X-Token")
}

func TestExpiresInIsReadTolerantly(t *testing.T) {
	for _, tc := range []struct {
		raw  string
		want time.Duration // 0: no end
	}{
		{`,"expires_in":3600`, time.Hour},
		{`,"expires_in":"3600"`, time.Hour},
		{`,"expires_in":" 3600 "`, time.Hour},
		{`,"expires_in":3599.5`, 3599500 * time.Millisecond},
		{`,"expires_in":3.6e3`, time.Hour},
		{``, 0},
		{`,"expires_in":null`, 0},
		{`,"expires_in":0`, 0},
		{`,"expires_in":-5`, 0},
		{`,"expires_in":"soon"`, 0},
		{`,"expires_in":{}`, 0},
		{`,"expires_in":1e300`, 10 * 365 * 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := token.ClientCredentials{TokenURL: tokenURL, Via: says(200, `{"access_token":"abc"`+tc.raw+`}`)}
			tok, err := c.Fetch(t.Context(), token.Token{})
			if err != nil {
				t.Fatal(err)
			}
			life := time.Duration(0)
			if !tok.Expires.IsZero() {
				life = time.Until(tok.Expires)
			}
			equal(t, tc.raw, life, tc.want)
		})
	}
}

func TestIssuersRefusalSaysStatusAndKnownCode(t *testing.T) {
	c := token.ClientCredentials{TokenURL: tokenURL, Via: says(401, `{"error":"invalid_client","error_description":"no such hunter2"}`)}
	_, err := c.Fetch(t.Context(), token.Token{})
	e, ok := errors.AsType[*token.Error](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	equal(t, "refused", e.Refused, true)
	equal(t, "text", e.Error(), "token source: client credentials at issuer.test/oauth/token: status 401 (invalid_client): the issuer refuses: check the credential and the url")
}

func TestTransientAnswersAreNoRefusal(t *testing.T) {
	for status, want := range map[int]bool{302: true, 400: true, 403: true, 404: true, 408: false, 425: false, 429: false, 500: false, 503: false} {
		c := token.ClientCredentials{TokenURL: tokenURL, Via: says(status, "")}
		_, err := c.Fetch(t.Context(), token.Token{})
		e, ok := errors.AsType[*token.Error](err)
		if !ok {
			t.Fatalf("%d: got %v", status, err)
		}
		equal(t, fmt.Sprint(status), e.Refused, want)
	}
}

func TestRetryAfterOfTheIssuerIsCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for said, want := range map[string]time.Duration{"120": 2 * time.Minute, "999999999": time.Hour, "never": 0} {
			c := token.ClientCredentials{TokenURL: tokenURL, Via: served(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", said)
				w.WriteHeader(429)
			})}
			_, err := c.Fetch(t.Context(), token.Token{})
			e, ok := errors.AsType[*token.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			var wait time.Duration
			if !e.RetryAt.IsZero() {
				wait = time.Until(e.RetryAt)
			}
			equal(t, said, wait, want)
		}
	})
}

func TestRedirectIsNotFollowedWithTheSecret(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	c := token.ClientCredentials{TokenURL: srv.URL, ID: "a", Secret: "b"}
	if _, err := c.Fetch(t.Context(), token.Token{}); err == nil || !strings.Contains(err.Error(), "status 307") {
		t.Errorf("got %v", err)
	}
}

func TestAnswerThatIsNoTokenIsAnError(t *testing.T) {
	for _, body := range []string{"", "{}", "[]", "null", "<html>", `{"access_token":7}`, `{"access_token":"a\r\nX-Evil: 1"}`, `{"access_token":"a","token_type":"ü"}`} {
		c := token.ClientCredentials{TokenURL: tokenURL, Via: says(200, body)}
		tok, err := c.Fetch(t.Context(), token.Token{})
		if err == nil || tok.Value != "" {
			t.Errorf("%q: got %v, %v", body, tok, err)
		}
	}
}

func TestUnusableURLIsSaidAndNotRepeated(t *testing.T) {
	for _, raw := range []string{"", "token", "/token", "ftp://x/y", "http://a:hunter2@%zz/", "https://"} {
		c := token.ClientCredentials{TokenURL: raw}
		_, err := c.Fetch(t.Context(), token.Token{})
		if err == nil || !strings.Contains(err.Error(), "give http or https, host and path") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v", raw, err)
		}
	}
}

func TestSecretsAreInNoError(t *testing.T) {
	const id, secret, inURL = "canary-id", "canary-secret", "canary-url"
	echo := func(status int) served {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Set-Cookie", "canary-cookie=1")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":"%s %s","id":"canary-body","x":%q}`, id, secret, body)
		}
	}
	vias := []http.RoundTripper{
		echo(200), echo(201), echo(302), echo(400), echo(401), echo(403), echo(429), echo(500),
		says(200, "canary-body"), says(500, "canary-body"),
		cut{&url.Error{Op: "Post", URL: "http://canary-url/?canary", Err: io.ErrUnexpectedEOF}},
		cut{errors.New("connection refused")},
	}
	const base = "https://canary-user:canary-pw@issuer.test/token?key=" + inURL
	for n, via := range vias {
		for _, f := range []token.Fetcher{
			token.ClientCredentials{TokenURL: base, ID: id, Secret: secret, Via: via},
			token.ClientCredentials{TokenURL: base, ID: id, Secret: secret, InBody: true, Via: via},
			token.Sierra{URL: base, Key: id, Secret: secret, Via: via},
			&token.Folio{URL: "https://issuer.test", User: id, Password: secret, Via: via},
		} {
			synctest.Test(t, func(t *testing.T) {
				var renewal error
				s := &token.Source{Fetcher: f, OnRenew: func(r token.Renewal) { renewal = r.Err }}
				_, err := s.Current(t.Context())
				s.Close()
				if err == nil {
					t.Fatalf("%d %T: no error", n, f)
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					if text := fmt.Sprintf("%v %+v %s", e, renewal, e); strings.Contains(text, "canary") {
						t.Errorf("%d %T: %s", n, f, text)
					}
				}
			})
		}
	}
}

func TestFetchLeavesNoConnection(t *testing.T) {
	closed := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(says(200, `{"access_token":"abc"}`)))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	srv.Start()
	defer srv.Close()
	c := token.ClientCredentials{TokenURL: srv.URL}
	if _, err := c.Fetch(t.Context(), token.Token{}); err != nil {
		t.Fatal(err)
	}
	<-closed
}
