package check_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// body is what an answer of the model carries; it may be read again.
func body(resp *http.Response) []byte {
	text, _ := io.ReadAll(resp.Body) // of memory
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return text
}

// dialects read how long an answer asks to stay away, in the words of one
// provider.
var dialects = map[string]func(*http.Response) (time.Duration, bool){
	"github": func(resp *http.Response) (time.Duration, bool) {
		return epoch(resp.Header.Get("X-RateLimit-Reset")), resp.StatusCode == 403 && resp.Header.Get("X-RateLimit-Remaining") == "0"
	},
	"shopify-full": func(resp *http.Response) (time.Duration, bool) {
		used, of, ok := strings.Cut(resp.Header.Get("X-Shopify-Shop-Api-Call-Limit"), "/")
		return 500 * time.Millisecond, ok && used == of
	},
	"shopify-float": func(resp *http.Response) (time.Duration, bool) {
		s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64)
		return time.Duration(s * float64(time.Second)), err == nil && resp.Header.Get("X-Shopify-Shop-Api-Call-Limit") != ""
	},
	"shopify-graphql": func(resp *http.Response) (time.Duration, bool) {
		var told struct {
			Extensions struct {
				Cost struct {
					Requested float64 `json:"requestedQueryCost"`
					Throttle  struct {
						Left float64 `json:"currentlyAvailable"`
						Rate float64 `json:"restoreRate"`
					} `json:"throttleStatus"`
				}
			}
		}
		err := json.Unmarshal(body(resp), &told)
		c := told.Extensions.Cost
		return time.Duration((c.Requested - c.Throttle.Left) / c.Throttle.Rate * float64(time.Second)), err == nil && c.Throttle.Rate > 0
	},
	"hubspot": func(resp *http.Response) (time.Duration, bool) {
		return time.Second, bytes.Contains(body(resp), []byte(`"policyName":"SECONDLY"`))
	},
	"jira": func(resp *http.Response) (time.Duration, bool) { return stamp(resp.Header.Get("X-RateLimit-Reset")) },
	"anthropic": func(resp *http.Response) (time.Duration, bool) {
		return stamp(resp.Header.Get("Anthropic-RateLimit-Requests-Reset"))
	},
	"openai": func(resp *http.Response) (time.Duration, bool) {
		d, err := time.ParseDuration(resp.Header.Get("X-RateLimit-Reset-Requests"))
		return d, err == nil
	},
	"openai-ms": func(resp *http.Response) (time.Duration, bool) {
		n, err := strconv.Atoi(resp.Header.Get("Retry-After-Ms"))
		return time.Duration(n) * time.Millisecond, err == nil
	},
	"discord": func(resp *http.Response) (time.Duration, bool) {
		var told struct {
			Wait float64 `json:"retry_after"`
		}
		err := json.Unmarshal(body(resp), &told)
		return time.Duration(told.Wait * float64(time.Second)), err == nil && told.Wait > 0
	},
	"google": func(resp *http.Response) (time.Duration, bool) {
		var told struct {
			Error struct{ Details []struct{ RetryDelay string } }
		}
		if json.Unmarshal(body(resp), &told) != nil || len(told.Error.Details) == 0 {
			return 0, false
		}
		d, err := time.ParseDuration(told.Error.Details[0].RetryDelay)
		return d, err == nil
	},
}

func epoch(v string) time.Duration {
	n, _ := strconv.ParseInt(v, 10, 64)
	return max(0, time.Until(time.Unix(n, 0)))
}

func stamp(v string) (time.Duration, bool) {
	at, err := time.Parse(time.RFC3339, v)
	return max(0, time.Until(at)), err == nil
}

// readDialects hears all dialects but one; the longest wait counts.
func readDialects(but string) func(*http.Response) (time.Duration, bool) {
	return func(resp *http.Response) (longest time.Duration, told bool) {
		if s := resp.StatusCode; s != 429 && s != 403 && s != 200 {
			return 0, false
		}
		for name, read := range dialects {
			if d, ok := read(resp); ok && d > 0 && name != but && (resp.StatusCode != 200 || name == "shopify-graphql") {
				longest, told = max(longest, d), true
			}
		}
		return longest, told
	}
}
