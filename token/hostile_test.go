package token_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/heedproject/heed/token"
)

// echoes is the address of an issuer that puts what authorized the request into
// an answer, in a place where net/http cannot read it and quotes it.
func echoes(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				fmt.Fprintf(c, answer+"\r\n\r\n", r.Header.Get("Authorization"))
			}
			c.Close()
		}
	}()
	return "http://" + l.Addr().String() + "/token"
}

func TestAnIssuerThatEchoesTheCredentialIsNotQuoted(t *testing.T) {
	const secret = "aWQ6Y2FuYXJ5" // id:canary
	for _, answer := range []string{
		"%s", "HTTP/1.1 200 OK\r\n%s", "HTTP/1.1 200 OK\r\nContent-Length: %s", "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s",
	} {
		var renewal error
		s := &token.Source{
			Fetcher: token.ClientCredentials{TokenURL: echoes(t, answer), ID: "id", Secret: "canary"},
			OnRenew: func(r token.Renewal) { renewal = r.Err },
		}
		_, err := s.Current(t.Context())
		s.Close()
		if err == nil {
			t.Fatalf("%q: no error", answer)
		}
		encoded, _ := json.Marshal(err)
		if text := fmt.Sprint(err, renewal, string(encoded)); strings.Contains(text, secret) {
			t.Errorf("%q: %s", answer, text)
		}
	}
}

func TestARefusalWithinA200IsARefusal(t *testing.T) {
	c := token.ClientCredentials{TokenURL: tokenURL, Via: says(200, `{"error":"invalid_client"}`)}
	_, err := c.Fetch(t.Context(), token.Token{})
	want := "token source: client credentials at issuer.test/oauth/token: status 200 (invalid_client): the issuer refuses: check the credential and the url"
	e, ok := err.(*token.Error)
	if !ok {
		t.Fatalf("got %v", err)
	}
	equal(t, "refused", e.Refused, true)
	equal(t, "text", e.Error(), want)
}

func TestAnAnswerTooLargeForATokenSaysSo(t *testing.T) {
	c := token.ClientCredentials{TokenURL: tokenURL, Via: says(200, `{"access_token":"a","x":"`+strings.Repeat("x", 1<<20)+`"}`)}
	if tok, err := c.Fetch(t.Context(), token.Token{}); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("got %v, %v", tok, err)
	}
}
