package token_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/token"
)

const sierraURL = "https://ils.test/iii/sierra-api/v6/token"

// script answers one request after the other; the last answer repeats.
type script struct {
	steps []http.RoundTripper
	asked []time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	step := s.steps[min(len(s.asked), len(s.steps)-1)]
	s.asked = append(s.asked, time.Now())
	return step.RoundTrip(r)
}

const sierraToken = `{"access_token":"abc","token_type":"bearer","expires_in":3600}`

func TestSierraSendsKeyAndSecret(t *testing.T) {
	var auth, form string
	s := token.Sierra{URL: sierraURL, Key: "k/+", Secret: "s%", Via: served(func(w http.ResponseWriter, r *http.Request) {
		auth, form = r.Header.Get("Authorization"), r.PostFormValue("grant_type")
		_, _ = io.WriteString(w, sierraToken)
	})}
	tok, err := s.Fetch(t.Context(), token.Token{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "auth", auth, "Basic "+base64.StdEncoding.EncodeToString([]byte("k/+:s%")))
	equal(t, "form", form, "client_credentials")
	equal(t, "value", string(tok.Value), "Bearer abc")
}

func TestSierraTokenHoldsAnHourUnlessItSaysOtherwise(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"access_token":"abc"}`:                  time.Hour,
		`{"access_token":"abc","expires_in":600}`: 10 * time.Minute,
	} {
		tok, err := token.Sierra{URL: sierraURL, Via: says(200, body)}.Fetch(t.Context(), token.Token{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, body, tok.Expires.Sub(tok.Issued), want)
	}
}

func TestSierraSilenceIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		via := &script{steps: []http.RoundTripper{says(200, ""), cut{io.EOF}, cut{syscall.ECONNRESET}, says(200, sierraToken)}}
		tok, err := token.Sierra{URL: sierraURL, Via: via}.Fetch(t.Context(), token.Token{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "value", string(tok.Value), "Bearer abc")
		var at []time.Duration
		for _, a := range via.asked {
			at = append(at, a.Sub(begin))
		}
		equal(t, "instants", at, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second})
	})
}

func TestSierraSilenceForGoodIsAnErrorAndNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		via := &script{steps: []http.RoundTripper{says(200, "")}}
		_, err := token.Sierra{URL: sierraURL, Via: via}.Fetch(t.Context(), token.Token{})
		e, ok := errors.AsType[*token.Error](err)
		if !ok || e.Refused || !strings.Contains(e.Error(), "empty answer") {
			t.Errorf("got %v", err)
		}
		equal(t, "requests", len(via.asked), 4)
	})
}

func TestSierraRefusalIsNotTriedAgain(t *testing.T) {
	via := &script{steps: []http.RoundTripper{says(401, `{"code":113,"httpStatus":401,"name":"Unauthorized"}`)}}
	_, err := token.Sierra{URL: sierraURL, Via: via}.Fetch(t.Context(), token.Token{})
	e, ok := errors.AsType[*token.Error](err)
	if !ok || !e.Refused {
		t.Errorf("got %v", err)
	}
	equal(t, "requests", len(via.asked), 1)
}

func TestSierraErrorInA200IsNoToken(t *testing.T) {
	via := &script{steps: []http.RoundTripper{says(200, `{"code":109,"httpStatus":500}`)}}
	if _, err := (token.Sierra{URL: sierraURL, Via: via}).Fetch(t.Context(), token.Token{}); err == nil {
		t.Error("no error")
	}
	equal(t, "requests", len(via.asked), 1)
}

func TestCloseEndsSierrasWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &token.Source{Fetcher: token.Sierra{URL: sierraURL, Via: says(200, "")}}
		go func() { _, _ = s.Current(t.Context()) }()
		synctest.Wait()
		before := time.Now()
		s.Close()
		equal(t, "waited", time.Since(before), 0)
	})
}
