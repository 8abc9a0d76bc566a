package token_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/token"
)

func request(t *testing.T, rawURL string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestValueGoesIntoAuthorizationByDefault(t *testing.T) {
	r := request(t, "http://api.test/")
	token.Token{Value: "Bearer x"}.Apply(r)
	equal(t, "header", r.Header, http.Header{"Authorization": {"Bearer x"}})
}

func TestValueGoesIntoTheNamedHeader(t *testing.T) {
	r := request(t, "http://api.test/")
	r.Header.Set("X-Api-Key", "the caller's")
	token.Token{Header: "x-api-key", Value: "x"}.Apply(r)
	equal(t, "header", r.Header, http.Header{"X-Api-Key": {"x"}})
}

func TestHeaderIsMadeWhereThereIsNone(t *testing.T) {
	r := &http.Request{URL: &url.URL{}}
	token.Token{Value: "x"}.Apply(r)
	equal(t, "header", r.Header.Get("Authorization"), "x")
}

func TestZeroTokenPutsNothing(t *testing.T) {
	r := request(t, "http://api.test/?a=1")
	r.Header.Set("Cookie", "a=b")
	token.Token{}.Apply(r)
	equal(t, "header", r.Header, http.Header{"Cookie": {"a=b"}})
	equal(t, "query", r.URL.RawQuery, "a=1")
}

func TestQueryParameterIsReplacedAndTheRestLeftAsItIs(t *testing.T) {
	for _, tc := range []struct{ raw, want string }{
		{"", "api+key=s%26s"},
		{"b=2&a=%7e1", "b=2&a=%7e1&api+key=s%26s"},
		{"api+key=old&b=2&api%20key=older&", "b=2&api+key=s%26s"},
		{"bad=%zz&c", "bad=%zz&c&api+key=s%26s"},
	} {
		r := &http.Request{URL: &url.URL{RawQuery: tc.raw}}
		token.Token{Query: "api key", Value: "s&s"}.Apply(r)
		equal(t, tc.raw, r.URL.RawQuery, tc.want)
	}
}

func TestCookiesReplaceThoseOfTheSameName(t *testing.T) {
	r := request(t, "http://api.test/")
	r.Header.Set("Cookie", "session=old; theme=dark")
	tok := token.Token{Cookies: []*http.Cookie{{Name: "session", Value: "new"}}}
	tok.Apply(r)
	tok.Apply(r)
	equal(t, "cookies", r.Header["Cookie"], []string{"theme=dark; session=new"})
}

func TestHelpersPutTheirCredential(t *testing.T) {
	for _, tc := range []struct {
		source      *token.Source
		name, value string
	}{
		{token.Static("", "Bearer x"), "Authorization", "Bearer x"},
		{token.Static("X-Key", "x"), "X-Key", "x"},
		{token.Basic("Aladdin", "open sesame"), "Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}, // RFC 7617 §2
	} {
		r := request(t, "http://api.test/")
		rejected(t, tc.source).Apply(r)
		equal(t, tc.name, r.Header, http.Header{tc.name: {tc.value}})
	}
	r := request(t, "http://api.test/")
	rejected(t, token.Query("key", "x")).Apply(r)
	equal(t, "query", r.URL.RawQuery, "key=x")
}

func TestTokenIsNeverPrinted(t *testing.T) {
	tok := token.Token{
		Value:   "hunter2",
		Cookies: []*http.Cookie{{Name: "c", Value: "hunter2"}},
		Expires: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb, tok, &tok, []token.Token{tok})
	}
	for _, v := range []any{tok, &tok, map[string]token.Token{"a": tok}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	for _, leak := range []string{"hunter2", "68756e74657232"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in %s", leak, out.String())
		}
	}
	equal(t, "text", tok.String(), "token in header Authorization until 2030-01-02T03:04:05Z")
}
