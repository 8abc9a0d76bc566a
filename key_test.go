package heed_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
)

// keysOf makes calls of two attempts each and returns the keys that were sent.
func keysOf(t *testing.T, k policy.Key, change func(*http.Request)) [][2]string {
	t.Helper()
	var got [][2]string
	bubble(t, func(t *testing.T) {
		tr := &heed.Transport{Policy: policy.Policy{Key: k}}
		p := plays(func(r *http.Request) (*http.Response, error) {
			if len(tr.Base.(*provider).tries)%2 == 1 {
				return says(502, "")(r)
			}
			return says(201, "")(r)
		})
		tr.Base = p
		for range 3 {
			req := request(t, "POST", "order")
			if change != nil {
				change(req)
			}
			resp, err := tr.RoundTrip(req)
			finish(t, resp, err)
		}
		for i := 0; i+1 < len(p.tries); i += 2 {
			got = append(got, [2]string{p.tries[i].header.Get(k.Header), p.tries[i+1].header.Get(k.Header)})
		}
	})
	if len(got) != 3 {
		t.Fatalf("got %d calls with two attempts, want 3", len(got))
	}
	return got
}

func TestARandomKeyStaysForACallAndDiffersBetweenCalls(t *testing.T) {
	seen := map[string]bool{}
	for _, pair := range keysOf(t, policy.Key{Header: "Idempotency-Key", From: policy.KeyRandom}, nil) {
		if pair[0] == "" || pair[0] != pair[1] {
			t.Errorf("one call sent the keys %q and %q", pair[0], pair[1])
		}
		seen[pair[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("three calls sent %d different keys", len(seen))
	}
}

func TestAHashKeyIsTheSameForTheSameRequest(t *testing.T) {
	got := keysOf(t, policy.Key{Header: "X-Key", From: policy.KeyHash}, nil)
	if got[0][0] == "" || got[0] != got[1] || got[1] != got[2] || got[0][0] != got[0][1] {
		t.Errorf("got %q, want one key", got)
	}
}

func TestTheCallersKeyIsSentQuotedUnderTheProvidersName(t *testing.T) {
	k := policy.Key{Header: "X-Key", From: policy.KeyRandom, Quoted: true}
	got := keysOf(t, k, func(r *http.Request) { r.Header.Set("Idempotency-Key", "mine") })
	if got[0] != [2]string{`"mine"`, `"mine"`} {
		t.Errorf("got %q", got[0])
	}
}

func TestAKeyThatTheProviderDoesNotHonourRepeatsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(502, ""))
		req := request(t, "POST", "order")
		req.Header.Set("Idempotency-Key", "mine")
		resp, err := (&heed.Transport{Base: p}).RoundTrip(req)
		finish(t, resp, err)
		if p.count() != 1 {
			t.Errorf("got %d attempts, want 1", p.count())
		}
	})
}

// issuer gives out token-1, token-2 and so on.
type issuer struct{ n atomic.Int32 }

func (i *issuer) Fetch(context.Context, token.Token) (token.Token, error) {
	return token.Token{Value: mask.Secret("Bearer token-" + string(rune('0'+i.n.Add(1))))}, nil
}

func TestA401RenewsTheCredentialOnceAndReplaysTheBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &token.Source{Fetcher: &issuer{}}
		defer src.Close()
		p := plays(says(401, ""), says(200, "ok"))
		resp, err := (&heed.Transport{Base: p, Token: src}).RoundTrip(request(t, "POST", "order"))
		finish(t, resp, err)
		first, second := p.tries[0], p.tries[1]
		if first.header.Get("Authorization") != "Bearer token-1" || second.header.Get("Authorization") != "Bearer token-2" {
			t.Errorf("sent %q, then %q", first.header.Get("Authorization"), second.header.Get("Authorization"))
		}
		if second.body != "order" || second.at != 0 {
			t.Errorf("the second attempt left after %v with body %q", second.at, second.body)
		}
	})
}

func TestARenewalTakesNothingOfTheRetryBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &token.Source{Fetcher: &issuer{}}
		defer src.Close()
		pol := unpaced()
		pol.Breaker.Off = true
		pol.Retry.Tokens = policy.Tokens{Capacity: 20, Transient: 14}
		p := plays(says(500, "down"), says(500, "down"), says(401, ""), says(200, "ok"))
		tr := &heed.Transport{Base: p, Policy: pol, Token: src}
		for _, want := range []int{500, 200} { // the first call empties the budget
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			if status, _ := finish(t, resp, err); status != want {
				t.Errorf("got %d, want %d", status, want)
			}
		}
	})
}

func TestASecond401IsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &token.Source{Fetcher: &issuer{}}
		defer src.Close()
		p := plays(says(401, "no"))
		resp, err := (&heed.Transport{Base: p, Token: src}).RoundTrip(request(t, "GET", ""))
		if status, body := finish(t, resp, err); status != 401 || body != "no" || p.count() != 2 {
			t.Errorf("got %d %q after %d attempts, want the 401 after 2", status, body, p.count())
		}
	})
}

type strictIssuer struct{}

func (strictIssuer) Fetch(context.Context, token.Token) (token.Token, error) {
	return token.Token{}, token.Answered("login", 400, "invalid_client")
}

// hungIssuer never answers.
type hungIssuer struct{}

func (hungIssuer) Fetch(ctx context.Context, _ token.Token) (token.Token, error) {
	<-ctx.Done()
	return token.Token{}, ctx.Err()
}

func TestAnIssuerThatHangsEndsACallInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &token.Source{Fetcher: hungIssuer{}}
		defer src.Close()
		p := plays(says(200, ""))
		tr := &heed.Transport{Base: p, Token: src, Policy: policy.Policy{Retry: policy.Retry{Budget: 3 * time.Second}}}
		began := time.Now()
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		if e := refused(t, resp, err); e.Reason != heed.DeadlineExceeded || time.Since(began) != 3*time.Second || p.count() != 0 {
			t.Errorf("got %v after %v and %d attempts, want %s after 3 s and none", err, time.Since(began), p.count(), heed.DeadlineExceeded)
		}
	})
}

// lateIssuer hangs when it is asked once more.
type lateIssuer struct{ issuer }

func (i *lateIssuer) Fetch(ctx context.Context, old token.Token) (token.Token, error) {
	if old.Value == "" {
		return i.issuer.Fetch(ctx, old)
	}
	return hungIssuer{}.Fetch(ctx, old)
}

func TestARenewalThatHangsEndsACallInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &token.Source{Fetcher: &lateIssuer{}}
		defer src.Close()
		p := plays(says(401, "no"))
		tr := &heed.Transport{Base: p, Token: src, Policy: policy.Policy{Retry: policy.Retry{Budget: 3 * time.Second}}}
		began := time.Now()
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		if e := refused(t, resp, err); e.Reason != heed.DeadlineExceeded || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v, want %s after 3 s", err, time.Since(began), heed.DeadlineExceeded)
		}
	})
}

func TestWithoutACredentialNothingIsSentAndTheBodyIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &token.Source{Fetcher: strictIssuer{}}
		defer src.Close()
		p, body := plays(says(200, "")), &closes{Reader: strings.NewReader("x")}
		tr := &heed.Transport{Base: p, Token: src}
		req := request(t, "PUT", "")
		req.Body = body
		resp, err := tr.RoundTrip(req)
		if e := refused(t, resp, err); e.Reason != heed.TokenFailed || p.count() != 0 || body.n != 1 {
			t.Errorf("got %v, %d attempts, body closed %d times", err, p.count(), body.n)
		}
		if got := tr.Waiting(); len(got) != 0 {
			t.Errorf("still waiting: %v", got)
		}
	})
}

func TestAnErrorSaysWhichCredentialCouldNotBeHad(t *testing.T) {
	source := &token.Source{Fetcher: token.ClientCredentials{
		TokenURL: "http://issuer.example/token", ID: "id", Secret: "canary", Via: plays(says(403, "")),
	}}
	defer source.Close()
	_, err := (&heed.Transport{Base: plays(says(200, "")), Token: source}).RoundTrip(request(t, "GET", ""))
	want := "client credentials at issuer.example/token: status 403"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to say %q", err, want)
	}
}
