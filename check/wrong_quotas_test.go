package check_test

import (
	"net/http"
	"strings"
	"time"
)

// misjudge replaces the reading of quota headers where odd says so; 0 is none.
func misjudge(odd func(h http.Header) bool, d time.Duration) func(*habits) {
	return func(h *habits) {
		h.Quota = func(resp *http.Response) (time.Duration, bool) {
			if odd(resp.Header) {
				return d, d > 0
			}
			return readQuota(resp)
		}
	}
}

// reset is the number that the headers without a vendor give.
func reset(h http.Header) float64 {
	return seconds(h.Get("X-RateLimit-Reset") + h.Get("RateLimit-Reset") + h.Get("X-Rate-Limit-Reset"))
}

// both are the cases of a form: with a refusal and with a good answer.
func both(forms ...string) (all []string) {
	for _, f := range forms {
		all = append(all, "quota/429-"+f, "quota/200-"+f)
	}
	return all
}

// neutral are the forms that no vendor owns.
var neutral = []string{"delta", "epoch", "epoch-ms", "hyphens", "draft-06", "draft-07", "draft-10"}

// ofGood are the cases of a good answer after which nothing is left.
var ofGood = []string{"quota/200-delta", "quota/200-epoch*", "quota/200-hyphens", "quota/200-draft-*"}

// wrongQuotas do not do what quota headers say.
func wrongQuotas() []wrong {
	all := []wrong{
		{"ignores quota headers", func(h *habits) {
			h.Quota = func(*http.Response) (time.Duration, bool) { return 0, false }
		}, both(neutral...)},
		{"looks at the quota of refusals only", func(h *habits) {
			h.Quota = func(resp *http.Response) (time.Duration, bool) {
				if resp.StatusCode == 200 {
					return 0, false
				}
				return readQuota(resp)
			}
		}, ofGood},
		{"waits in an epoch as if it were a delta", misjudge(func(h http.Header) bool { return isEpoch(reset(h)) }, forever),
			append(both("epoch", "hyphens"), "quota/past")},
		{"takes milliseconds for seconds", misjudge(func(h http.Header) bool { return isEpoch(reset(h) / 1000) }, forever), both("epoch-ms")},
		{"takes a delta for an instant that is past", misjudge(func(h http.Header) bool { return reset(h) >= 0 && reset(h) < 60 }, 0),
			both("delta", "draft-06")},
		{"knows no name with hyphens", misjudge(func(h http.Header) bool { return h.Get("X-Rate-Limit-Reset") != "" }, 0), both("hyphens")},
		{"knows RateLimit of draft 7 only", misjudge(func(h http.Header) bool { return strings.Contains(h.Get("RateLimit"), `"`) }, 0),
			both("draft-10")},
		{"knows RateLimit of draft 10 only", misjudge(func(h http.Header) bool { return strings.Contains(h.Get("RateLimit"), "limit=") }, 0),
			both("draft-07")},
		{"keeps a good answer until more is left", func(h *habits) { h.Keeps = true }, ofGood},
		{"lets the quota go before Retry-After", func(h *habits) {
			h.Hint = func(resp *http.Response) (time.Duration, bool) {
				if d, ok := readQuota(resp); ok {
					return d, ok
				}
				return readHint(resp)
			}
		}, []string{"quota/hint-wins"}},
		{"parses what does not parse", misjudge(func(h http.Header) bool { return strings.Contains(h.Get("RateLimit"), " ;") }, time.Minute),
			[]string{"quota/malformed"}},
		{"waits a minute where the reset is past", misjudge(func(h http.Header) bool {
			return isEpoch(reset(h)) && time.Until(time.Unix(int64(reset(h)), 0)) < 0
		}, time.Minute), []string{"quota/past"}},
	}
	all = append(all, wrong{"knows 403 for no throttle of GitHub, but repeats it", func(h *habits) {
		h.Dialect = readDialects("github")
		misjudge(func(hd http.Header) bool { return hd.Get("X-RateLimit-Resource") != "" }, 0)(h)
	}, []string{"quota/403-github"}})
	for name, id := range map[string]string{"shopify-full": "429-shopify-full", "shopify-float": "429-shopify-float",
		"hubspot": "429-hubspot", "jira": "429-jira", "openai": "429-openai", "openai-ms": "429-openai-ms", "anthropic": "429-anthropic",
		"discord": "429-discord", "google": "429-google", "shopify-graphql": "200-shopify-graphql"} {
		all = append(all, wrong{"does not know the words of " + name, func(h *habits) { h.Dialect = readDialects(name) }, []string{"quota/" + id}})
	}
	return all
}
