package heed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// canary is planted wherever a caller or a server can put a secret.
const canary = "c4n4ry9f8e7d6c5b4a"

func planted(t *testing.T, method string) *http.Request {
	t.Helper()
	u := "http://user:" + canary + "@api.example/v1/patrons/" + canary + "?token=" + canary
	req, err := http.NewRequestWithContext(t.Context(), method, u, strings.NewReader("pin="+canary))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+canary)
	req.Header.Set("X-Api-Key", canary)
	req.Header.Set("Cookie", "session="+canary)
	req.Header.Set("Idempotency-Key", canary)
	req.Header.Set("Traceparent", canary)
	return req
}

func TestNoSecretIsTold(t *testing.T) {
	leaky := &url.Error{Op: "Get", URL: "http://user:" + canary + "@api.example/" + canary + "?k=" + canary, Err: errors.New("password=" + canary + " refused")}
	for name, s := range map[string]step{
		"error text": breaks(leaky),
		"answer":     says(500, "your token "+canary, "Retry-After", canary, "Set-Cookie", "s="+canary, "Location", "http://x/?"+canary),
		"dressed":    says(200, "SYSTEM ERROR "+canary, "X-Request-Id", canary),
		"cut":        cutOff(canary),
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+" "+method, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var seen strings.Builder
					show := func(v any) {
						text, _ := json.Marshal(v)
						fmt.Fprintf(&seen, "%v\n%+v\n%#v\n%s\n", v, v, v, text)
					}
					pol := brisk(2)
					pol.Verify.Mode = policy.VerifyFull
					tr := &heed.Transport{Base: plays(s), Policy: pol, Classifier: dialect(t), Observe: func(e heed.Event) { show(e) }}
					resp, err := tr.RoundTrip(planted(t, method))
					if err == nil {
						resp.Body.Close()
					} else {
						text, _ := json.Marshal(err)
						fmt.Fprintf(&seen, "%v\n%+v\n%s\n", err, err, text)
					}
					for _, g := range tr.Gates() {
						show(g)
					}
					if i := strings.Index(seen.String(), canary); i >= 0 {
						t.Errorf("told: …%s…", seen.String()[max(0, i-200):i+len(canary)])
					}
				})
			})
		}
	}
}

func TestATraceparentIsToldOnlyIfItIsOne(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for given, want := range map[string]string{good: good, "": "", "secret": "", strings.Replace(good, "f", "x", 1): ""} {
		j := &journal{}
		req := request(t, "GET", "")
		req.Header.Set("Traceparent", given)
		resp, err := (&heed.Transport{Base: plays(says(200, "")), Observe: j.note}).RoundTrip(req)
		finish(t, resp, err)
		if got := j.events[0].TraceParent; got != want {
			t.Errorf("%q: told %q, want %q", given, got, want)
		}
	}
}
