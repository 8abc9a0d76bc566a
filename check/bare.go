package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Bare sends every operation once: the program behind a gateway that is
// checked. It claims nothing; say with Options.Claims what the gateway does.
// What a gateway answers in place of a provider, or adds to a failure, counts as
// its output.
func Bare(claims ...Claim) Program {
	return Program{
		Says: Hello{Name: "gateway", Claims: append([]Claim{Writes, Headers, Deadlines, Parallel}, claims...), Cannot: map[Claim]string{
			Polls:    "it is the program before a gateway that looks again; check that program",
			Webhooks: "webhooks come to the program, not through its gateway; check that program",
		}},
		Begin: func(_ Setting, log func(string)) func(context.Context, Task) Outcome {
			c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}, CheckRedirect: plain.CheckRedirect}
			return func(ctx context.Context, t Task) Outcome { return once(ctx, c, t, log) }
		},
	}
}

// once sends a task as it is and believes what comes.
func once(ctx context.Context, c *http.Client, t Task, log func(string)) Outcome {
	o := Outcome{ID: t.ID}
	r, err := http.NewRequestWithContext(ctx, t.Method, t.URL, strings.NewReader(t.Body))
	if err != nil {
		return Outcome{Broken: err.Error()}
	}
	for name, v := range t.Header {
		r.Header.Set(name, v)
	}
	if t.DeadlineMS > 0 {
		r.Header.Set("Heed-Budget", t.Deadline().String())
	}
	if t.Tenant != "" {
		r.Header.Set("Heed-Tenant", t.Tenant)
	}
	resp, err := c.Do(r)
	if err != nil {
		o.Error = withoutURL(err)
		return o
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, keptOutput)) // what there is counts
		log(fmt.Sprint(resp.StatusCode, resp.Header, string(text)))
	}
	if _, err = io.Copy(io.Discard, resp.Body); err != nil {
		o.Error = withoutURL(err)
	}
	o.Status = resp.StatusCode
	o.OK = err == nil && resp.StatusCode/100 == 2
	return o
}

// withoutURL is what an error of net/http says, without the URL before it: that
// is ours, not the gateway's.
func withoutURL(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}
