// Command retryablehttp is hashicorp/go-retryablehttp as heed check meets it.
//
//	heed check --lines -- ./retryablehttp best
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/heedproject/heed/examples/check/lines"
)

const module = "github.com/hashicorp/go-retryablehttp"

func main() {
	client := retryablehttp.NewClient()
	c := lines.Client{Name: "go-retryablehttp", Version: lines.Version(module), Claims: []string{"retry", "keyed"},
		Do: client.StandardClient().Do}
	if lines.Best() {
		client.Logger = nil
		client.RetryMax = 5
		client.RetryWaitMin, client.RetryWaitMax = 100*time.Millisecond, time.Second
		client.Backoff = retryablehttp.RateLimitLinearJitterBackoff
		client.HTTPClient.Timeout = 3 * time.Second
		client.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
			if err == nil && lines.Passing(resp.StatusCode) {
				return true, nil
			}
			return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
		}
		c.Claims = append(c.Claims, "timeout=3s")
		c.Do = func(r *http.Request) (*http.Response, error) {
			if !lines.Repeatable(r) {
				return client.HTTPClient.Do(r)
			}
			return client.StandardClient().Do(r)
		}
	}
	lines.Serve(c)
}
