// Command failsafe is failsafe-go as heed check meets it.
//
//	heed check --lines -- ./failsafe best
package main

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/timeout"

	"github.com/heedproject/heed/examples/check/lines"
)

func main() {
	c := lines.Client{Name: "failsafe-go", Version: lines.Version("github.com/failsafe-go/failsafe-go"), Claims: []string{"retry", "keyed"}}
	once, again := http.DefaultTransport, failsafehttp.NewRoundTripper(nil, failsafehttp.NewRetryPolicyBuilder().Build())
	if lines.Best() {
		retry := failsafehttp.NewRetryPolicyBuilder().HandleIf(func(r *http.Response, err error) bool {
			return err == nil && lines.Passing(r.StatusCode)
		}).WithRandomDelay(100*time.Millisecond, 2*time.Second).
			WithMaxRetries(5).WithBudget(budget.NewBuilder().WithMaxRate(0.2).Build()).Build()
		breaker := circuitbreaker.NewBuilder[*http.Response]().HandleIf(func(r *http.Response, err error) bool {
			return err != nil || r.StatusCode >= 500
		}).WithFailureThreshold(5).WithSuccessThreshold(1).WithDelay(time.Second).Build()
		eight := bulkhead.NewBuilder[*http.Response](8).WithMaxWaitTime(10 * time.Second).Build()
		three := timeout.New[*http.Response](3 * time.Second)
		once = failsafehttp.NewRoundTripper(nil, breaker, eight, three)
		again = failsafehttp.NewRoundTripper(nil, retry, breaker, eight, three)
		c.Claims = append(c.Claims, "timeout=3s", "breaker", "budget", "concurrency=8")
	}
	c.Do = func(r *http.Request) (*http.Response, error) {
		client := http.Client{Transport: again}
		if lines.Best() && !lines.Repeatable(r) {
			client.Transport = once
		}
		resp, err := client.Do(r)
		return resp, lines.Cause(err)
	}
	lines.Serve(c)
}
