// Command aws is the retryer of the AWS SDK for Go as heed check meets it, in an
// operation that is made as the SDK makes its own.
//
//	heed check --lines -- ./aws best
package main

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/heedproject/heed/examples/check/lines"
)

func main() {
	c := lines.Client{Name: "AWS SDK for Go v2, retryer", Version: lines.Version("github.com/aws/aws-sdk-go-v2"), Claims: []string{"retry", "keyed"}}
	client, again, once := awshttp.NewBuildableClient(), aws.Retryer(retry.NewStandard()), aws.Retryer(nil)
	if once = again; lines.Best() {
		client = client.WithTimeout(3 * time.Second)
		again, once = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = 6, 2*time.Second
			o.Retryables = append(o.Retryables, retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{408: {}, 425: {}}})
		}), aws.NopRetryer{}
		c.Claims = append(c.Claims, "timeout=3s", "cap=2s")
	}
	c.Do = func(r *http.Request) (*http.Response, error) {
		retryer := once
		if lines.Repeatable(r) {
			retryer = again
		}
		return operation(client, retryer, r)
	}
	lines.Serve(c)
}
