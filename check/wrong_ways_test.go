package check_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/check"
)

// wrongBeliefs take an answer for what it is not.
func wrongBeliefs() []wrong {
	lie := func(name string) func(*habits) { return func(h *habits) { h.Believes = believes(name) } }
	return []wrong{
		{"reports success whatever came", func(h *habits) { h.Boasts = true }, []string{"final/reported", "keys/reported"}},
		{"takes 404 for good", func(h *habits) {
			h.Good = func(_ check.Task, status int) bool { return status/100 == 2 || status == 404 }
		}, []string{"final/reported"}},
		{"accepts what was cut short", func(h *habits) { h.Whole = false },
			[]string{"lies/truncated", "lies/cut", "lies/chunked", "lies/always-truncated"}},
		{"accepts JSON that does not parse", lie("malformed"), []string{"lies/malformed", "lies/cut-json", "lies/always-malformed"}},
		{"accepts nothing for JSON", lie("empty"), []string{"lies/empty"}},
		{"accepts a page for JSON", lie("html"), []string{"lies/html"}},
		{"accepts the envelope", lie("envelope"), []string{"lies/envelope"}},
		{"accepts half of the entries", lie("count"), []string{"lies/fewer"}},
		{"accepts what is stale", lie("stale"), []string{"lies/stale"}},
		{"accepts errors of GraphQL", lie("graphql"), []string{"lies/graphql"}},
	}
}

// wrongWrites repeat a write otherwise than before.
func wrongWrites() []wrong {
	return []wrong{
		{"makes a new key for every attempt", func(h *habits) {
			h.Key = func(t check.Task, n int) string { return fmt.Sprintf("%s-%d", keyOf(t), n) }
		}, []string{"keys/keyed-*", "keys/in-flight*"}},
		{"loses the key when it repeats", func(h *habits) {
			h.Key = func(t check.Task, n int) string { return strings.Repeat(keyOf(t), 1-min(n, 1)) }
		}, []string{"keys/keyed-*", "keys/in-flight*"}},
		{"has one key for all operations", func(h *habits) {
			h.Key = func(check.Task, int) string { return "the-key" }
		}, []string{"keys/each"}},
		{"has no key", func(h *habits) {
			h.Key = func(check.Task, int) string { return "" }
		}, []string{"keys/keyed-*", "keys/in-flight*", "keys/each", "keys/length"}},
		{"makes keys that are too long", func(h *habits) {
			h.Key = func(t check.Task, _ int) string { return t.ID + strings.Repeat("-", max(0, len(t.ID)-100)) }
		}, []string{"keys/length"}},
		{"drops the body when it repeats", func(h *habits) {
			h.Body = func(t check.Task, n int) string { return strings.Repeat(t.Body, 1-min(n, 1)) }
		}, []string{"keys/body"}},
		{"writes the body otherwise when it repeats", func(h *habits) {
			h.Body = func(t check.Task, n int) string {
				return strings.Replace(t.Body, "rivers", []string{"rivers", "Rivers"}[min(n, 1)], 1)
			}
		}, []string{"keys/body"}},
	}
}

// wrongTimes do not know when it is enough.
func wrongTimes() []wrong {
	return []wrong{
		{"never gives up", func(h *habits) { endless(h); h.Heeds = false }, []string{"deadline/*"}},
		{"sleeps past the deadline", func(h *habits) { h.Dozes = true }, []string{"deadline/hint", "deadline/absurd-hint"}},
		{"does not end an attempt", func(h *habits) { h.Attempt = 0 }, []string{"timeout/*"}},
	}
}

// wrongShares forget that they are not alone.
func wrongShares() []wrong {
	return []wrong{
		{"has no budget for retries", func(h *habits) {
			endless(h)
			h.Claims = append(h.Claims, check.Budgets)
		}, []string{"outage/budget"}},
		{"has a breaker that never opens", func(h *habits) { h.Trip = 0 }, []string{"breaker/trips"}},
		{"hammers an open breaker", func(h *habits) { h.Leaks = true }, []string{"breaker/silent"}},
		{"sends two probes", func(h *habits) { h.Probes = 2 }, []string{"breaker/probe"}},
		{"has a breaker that never closes", func(h *habits) { h.Closes = false }, []string{"breaker/recovers"}},
		{"has no concurrency cap", func(h *habits) { h.Open = 0 }, []string{"limits/concurrency"}},
		{"starves a tenant", func(h *habits) { h.Fair = false }, []string{"limits/tenants"}},
	}
}

// wrongJobs are careless with tokens, jobs and webhooks.
func wrongJobs() []wrong {
	return []wrong{
		{"does not renew the token", func(h *habits) { h.Refusals = 0 }, []string{"tokens/expire"}},
		{"renews the token for every operation", func(h *habits) { h.EachRenews = true }, []string{"tokens/expire", "tokens/flight"}},
		{"renews the token many times at once", func(h *habits) { h.OneRenewal = false }, []string{"tokens/flight"}},
		{"renews the token again and again", func(h *habits) { h.Refusals = 50 }, []string{"tokens/refused"}},
		{"polls too often", func(h *habits) {
			h.Look = func(*http.Response) time.Duration { return 100 * time.Millisecond }
		}, []string{"jobs/poll"}},
		{"handles a webhook twice", func(h *habits) { h.Once = false }, []string{"jobs/webhook-twice"}},
		{"refuses a webhook that it has", func(h *habits) { h.Doubled = http.StatusConflict }, []string{"jobs/webhook-twice"}},
		{"checks no signature", func(h *habits) { h.Verify = false }, []string{"jobs/webhook-forged"}},
		{"takes old webhooks", func(h *habits) { h.Fresh = false }, []string{"jobs/webhook-old"}},
	}
}

// wrongTongues tell secrets.
func wrongTongues() []wrong {
	logs := func(what func(r *http.Request, err error) string) func(*habits) {
		return func(h *habits) {
			h.Log = func(log func(string), r *http.Request, _ int, err error) { log(what(r, err)) }
		}
	}
	return []wrong{
		{"leads the credential to another host", func(h *habits) {
			h.Follow = func(r *http.Request, via []*http.Request) error {
				r.Header = via[0].Header.Clone()
				return nil
			}
		}, []string{"secrets/redirect"}},
		{"logs the credential", logs(func(r *http.Request, _ error) string { return r.Header.Get("Authorization") }),
			[]string{"secrets/refused", "secrets/broken"}},
		{"logs the URL", logs(func(r *http.Request, _ error) string { return r.URL.String() }),
			[]string{"secrets/query", "secrets/query-broken"}},
		{"logs errors with the URL in them", logs(func(_ *http.Request, err error) string { return fmt.Sprint(err) }),
			[]string{"secrets/query-broken"}},
		{"tells the credential in its error", func(h *habits) {
			h.Complains = func(t check.Task, _ got) string { return "failed with " + t.Header["Authorization"] }
		}, []string{"secrets/refused", "secrets/broken"}},
	}
}
