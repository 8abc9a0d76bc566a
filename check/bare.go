package check

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// Bare sends every operation once: the program behind a gateway that is
// checked. It claims nothing; say with Options.Claims what the gateway does.
func Bare(claims ...Claim) Program {
	return Program{
		Says: Hello{Name: "gateway", Claims: append([]Claim{Writes, Headers, Deadlines, Parallel}, claims...)},
		Begin: func(Setting, func(string)) func(context.Context, Task) Outcome {
			c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}, CheckRedirect: plain.CheckRedirect}
			return func(ctx context.Context, t Task) Outcome { return once(ctx, c, t) }
		},
	}
}

// once sends a task as it is and believes what comes.
func once(ctx context.Context, c *http.Client, t Task) Outcome {
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
		o.Error = err.Error()
		return o
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err != nil {
		o.Error = err.Error()
	}
	o.Status = resp.StatusCode
	o.OK = err == nil && resp.StatusCode/100 == 2
	return o
}
