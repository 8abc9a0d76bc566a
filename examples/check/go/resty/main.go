// Command resty is go-resty as heed check meets it.
//
//	heed check --lines -- ./resty best
package main

import (
	"io"
	"net/http"
	"time"

	"github.com/go-resty/resty/v2"

	"github.com/heedproject/heed/examples/check/lines"
)

func main() {
	client := resty.New()
	c := lines.Client{Name: "go-resty", Version: lines.Version("github.com/go-resty/resty/v2")}
	if lines.Best() {
		client.SetRetryCount(5).SetRetryWaitTime(300 * time.Millisecond).SetRetryMaxWaitTime(30 * time.Second).SetTimeout(3 * time.Second)
		client.AddRetryCondition(func(r *resty.Response, err error) bool {
			return (err != nil || lines.Passing(r.StatusCode())) && lines.Repeatable(r.Request.RawRequest)
		})
		client.SetRetryAfter(func(_ *resty.Client, r *resty.Response) (time.Duration, error) {
			return lines.RetryAfter(r.Header()), nil // 0 is resty's own backoff
		})
		c.Claims = []string{"retry", "keyed", "timeout=3s"}
	}
	c.Do = func(r *http.Request) (*http.Response, error) {
		q := client.R().SetContext(r.Context())
		q.Header = r.Header
		if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
			q.SetBody(body)
		}
		resp, err := q.Execute(r.Method, r.URL.String())
		return &http.Response{StatusCode: resp.StatusCode(), Body: http.NoBody}, err // resty has read it
	}
	lines.Serve(c)
}
