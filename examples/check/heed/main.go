// Command heed is the library as heed check meets it: an http.Client with a
// heed.Transport.
//
//	heed check --lines -- ./heed
package main

import (
	"net/http"
	"os"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/examples/check/lines"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/token"
)

// agreed is the policy: the defaults, but shorter waits, as a check is short.
var agreed = policy.Policy{
	Endpoint: "check",
	Backoff:  policy.Backoff{Base: 300 * time.Millisecond, Cap: 2 * time.Second},
	Breaker:  policy.Breaker{OnOpen: policy.OnOpenFail},
	Limits:   policy.Limits{Concurrency: 8, TenantShare: 0.75},
	Timeouts: policy.Timeouts{Attempt: 3 * time.Second},
	Verify:   policy.Verify{Mode: policy.VerifyFull, MaxAge: time.Minute},
	Key:      policy.Key{Header: "Idempotency-Key", From: policy.KeyRandom},
}

func main() {
	c := lines.Client{Name: "heed library", Version: "this repository", Claims: []string{"retry", "pace", "budget", "breaker"}}
	t := &heed.Transport{} // the defaults
	if lines.Best() {
		generic, _ := provider.Get("generic") // it is built in
		classifier, _ := classify.New(generic.Rules)
		t = &heed.Transport{Policy: agreed, Classifier: classifier}
		c.Claims = append(c.Claims, "keyed", "key", "validate", "envelope", "stale", "concurrency=8", "cap=2s", "timeout=3s", "tenant", "token")
	}
	if at := os.Getenv("HEED_CHECK_TOKEN_URL"); at != "" {
		t.Token = &token.Source{Fetcher: token.ClientCredentials{TokenURL: at, ID: "check", Secret: mask.Secret(os.Getenv("HEED_CHECK_API_KEY"))}}
	}
	client := &http.Client{Transport: t}
	c.Do = func(r *http.Request) (*http.Response, error) {
		resp, err := client.Do(r.WithContext(heed.WithCall(r.Context(), heed.Call{Tenant: lines.Tenant(r)})))
		return resp, lines.Cause(err)
	}
	lines.Serve(c)
}
