package heed_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// limited knows a 403 that is a throttle, and tells it by its body.
func limited(t *testing.T) *classify.Classifier {
	t.Helper()
	c, bad := classify.New([]classify.Rule{{
		ID:   "limited",
		When: classify.Match{Statuses: []classify.StatusRange{{From: 403, To: 403}}, Text: regexp.MustCompile("REQUEST_LIMIT_EXCEEDED")},
		Then: classify.Verdict{Class: classify.Throttled, Executed: classify.No, Retry: classify.Any, Scope: classify.ScopeKey, Wait: time.Second},
	}})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return c
}

// headed knows rules that look at nothing but status and header.
func headed(t *testing.T) *classify.Classifier {
	t.Helper()
	c, bad := classify.New([]classify.Rule{{
		ID:   "headed",
		When: classify.Match{Statuses: []classify.StatusRange{{From: 403, To: 403}}},
		Then: classify.Verdict{Class: classify.Throttled, Executed: classify.No, Retry: classify.Any, Scope: classify.ScopeKey},
	}})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return c
}

func verify(mode policy.VerifyMode) policy.Policy {
	return policy.Policy{Verify: policy.Verify{Mode: mode}}
}

func TestAnAttemptAsksOnlyForCodingsThatItCanDecodeWhereTheBodyIsLookedAt(t *testing.T) {
	const browser = "gzip, deflate, br, zstd"
	for _, row := range []struct {
		name, method, accept, want string
		tr                         *heed.Transport
		queued                     bool
	}{
		{"rules look into bodies", "GET", browser, "gzip, deflate", &heed.Transport{Classifier: limited(t)}, false},
		{"weights stay", "POST", "br;q=1, gzip;q=0.5", "gzip;q=0.5", &heed.Transport{Classifier: limited(t)}, false},
		{"nothing is left", "GET", "br", "identity", &heed.Transport{Classifier: limited(t)}, false},
		{"the whole answer is verified", "GET", browser, "gzip, deflate", &heed.Transport{Policy: verify(policy.VerifyFull)}, false},
		{"a queued call", "GET", browser, "gzip, deflate", &heed.Transport{}, true},
		{"no rule looks into bodies", "GET", browser, browser, &heed.Transport{Classifier: headed(t)}, false},
		{"no rules", "GET", browser, browser, &heed.Transport{}, false},
		{"nothing is verified", "GET", browser, browser, &heed.Transport{Classifier: limited(t), Policy: verify(policy.VerifyOff)}, false},
		{"there is no body", "HEAD", browser, browser, &heed.Transport{Classifier: limited(t)}, false},
		{"all is known", "GET", "gzip", "gzip", &heed.Transport{Classifier: limited(t)}, false},
		{"nothing is asked for", "GET", "", "", &heed.Transport{Classifier: limited(t)}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := plays(says(200, ""))
			req := request(t, row.method, "")
			if row.accept != "" {
				req.Header.Set("Accept-Encoding", row.accept)
			}
			req = req.WithContext(heed.WithCall(req.Context(), heed.Call{Queued: row.queued}))
			row.tr.Base = p
			resp, err := row.tr.RoundTrip(req)
			finish(t, resp, err)
			if got := p.tries[0].header.Get("Accept-Encoding"); got != row.want {
				t.Errorf("got %q sent, want %q", got, row.want)
			}
			if got := req.Header.Get("Accept-Encoding"); got != row.accept {
				t.Errorf("the caller's request now asks for %q, want %q", got, row.accept)
			}
		})
	}
}

// deflated is text as zlib writes it, or without its wrapping.
func deflated(t *testing.T, text string, raw bool) string {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser = zlib.NewWriter(&b)
	if raw {
		var err error
		if z, err = flate.NewWriter(&b, flate.DefaultCompression); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestARefusalInDeflateIsLookedInto(t *testing.T) {
	for name, raw := range map[string]bool{"zlib": false, "raw": true} {
		bubble(t, func(t *testing.T) {
			refusal := deflated(t, `[{"errorCode":"REQUEST_LIMIT_EXCEEDED"}]`, raw)
			p := plays(says(403, refusal, "Content-Type", "application/json", "Content-Encoding", "deflate"), says(200, "fine"))
			resp, err := (&heed.Transport{Base: p, Classifier: limited(t)}).RoundTrip(request(t, "GET", ""))
			status, _ := finish(t, resp, err)
			if diff := cmp.Diff([]int{status, p.count()}, []int{200, 2}); diff != "" {
				t.Errorf("%s: status and attempts (-got +want):\n%s", name, diff)
			}
		})
	}
}

func TestABodyThatWasLookedIntoIsHandedOverAsItCame(t *testing.T) {
	refusal := deflated(t, `[{"errorCode":"INSUFFICIENT_ACCESS"}]`, false)
	p := plays(says(403, refusal, "Content-Type", "application/json", "Content-Encoding", "deflate"))
	resp, err := (&heed.Transport{Base: p, Classifier: limited(t)}).RoundTrip(request(t, "GET", ""))
	if status, text := finish(t, resp, err); status != 403 || text != refusal {
		t.Errorf("got status %d and %q, want the bytes of the server", status, text)
	}
}

func TestAnAnswerInDeflateIsVerified(t *testing.T) {
	p := plays(says(200, deflated(t, `{"a":`, false), "Content-Type", "application/json", "Content-Encoding", "deflate"))
	resp, err := (&heed.Transport{Base: p, Policy: policy.Policy{Verify: policy.Verify{Mode: policy.VerifyFull}, Retry: policy.Retry{Attempts: 1}}}).
		RoundTrip(request(t, "GET", ""))
	if e := refused(t, resp, err); e.Class != classify.Truncated {
		t.Errorf("got %v, want the document that ends unclosed told", e)
	}
}

// Only what asks for a coding that is not known pays for the copy.
func TestNarrowingCostsNothingWhereThereIsNothingToNarrow(t *testing.T) {
	if raced {
		t.Skip("the race detector empties pools at random")
	}
	stub := inMemory{make([]byte, 1024)}
	count := func(c *classify.Classifier, accept string) float64 {
		tr := busy(stub)
		tr.Classifier = c
		req := request(t, "GET", "")
		if accept != "" {
			req.Header.Set("Accept-Encoding", accept)
		}
		return testing.AllocsPerRun(200, func() {
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	plain := count(nil, "")
	for name, got := range map[string]float64{
		"no header":           count(limited(t), ""),
		"gzip":                count(limited(t), "gzip"),
		"br without its rule": count(headed(t), "br"),
	} {
		if got > plain {
			t.Errorf("%s: got %v allocations a call, want at most %v", name, got, plain)
		}
	}
}
