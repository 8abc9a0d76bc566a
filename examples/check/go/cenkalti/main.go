// Command cenkalti is cenkalti/backoff around http.Client as heed check meets it.
//
//	heed check --lines -- ./cenkalti best
package main

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/heedproject/heed/examples/check/lines"
)

func main() {
	c := lines.Client{Name: "cenkalti/backoff", Version: lines.Version("github.com/cenkalti/backoff/v5"), Claims: []string{"retry", "keyed"}}
	client, options := &http.Client{}, []backoff.RetryOption(nil)
	if lines.Best() {
		client.Timeout = 3 * time.Second
		b := &backoff.ExponentialBackOff{InitialInterval: 300 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 2 * time.Second}
		options = append(options, backoff.WithBackOff(b), backoff.WithMaxElapsedTime(time.Minute))
		c.Claims = append(c.Claims, "timeout=3s", "cap=3s") // the interval and half of it
	}
	c.Do = func(r *http.Request) (*http.Response, error) {
		return backoff.Retry(r.Context(), func() (*http.Response, error) {
			resp, err := lines.Try(client, r)
			if err == nil || lines.Best() && !lines.Repeatable(r) {
				return resp, backoff.Permanent(err)
			}
			no, answered := errors.AsType[*lines.StatusError](err)
			switch {
			case !answered:
				return nil, err
			case !lines.Passing(no.Code):
				return nil, backoff.Permanent(err)
			case lines.Best() && lines.RetryAfter(no.Header) > 0:
				return nil, &backoff.RetryAfterError{Duration: lines.RetryAfter(no.Header)}
			}
			if seconds, e := strconv.Atoi(no.Header.Get("Retry-After")); e == nil && !lines.Best() {
				return nil, backoff.RetryAfter(seconds) // as the example of the package has it
			}
			return nil, err
		}, options...)
	}
	lines.Serve(c)
}
