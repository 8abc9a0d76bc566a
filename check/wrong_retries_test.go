package check_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/heedproject/heed/check"
)

// repeats makes a client repeat, or not, where odd says so.
func repeats(answer bool, odd func(check.Task, got) bool) func(*habits) {
	return func(h *habits) {
		h.Repeats = func(t check.Task, g got) bool {
			if odd(t, g) {
				return answer
			}
			return repeatable(t, g)
		}
	}
}

// status tells whether an attempt was answered with one of these.
func status(all ...int) func(check.Task, got) bool {
	return func(_ check.Task, g got) bool { return slices.Contains(all, g.status()) }
}

// kinds are the cases of a mishap: of those requests that may be repeated.
func kinds(mishaps ...string) (all []string) {
	for _, m := range mishaps {
		all = append(all, "transient/get-"+m, "transient/keyed-"+m, "transient/conditional-"+m)
	}
	return all
}

// wrongRetries repeat what they must not, and do not repeat what they may.
func wrongRetries() []wrong {
	post := func(t check.Task, _ got) bool { return t.Method == http.MethodPost }
	all := []wrong{
		{"repeats nothing", repeats(false, func(check.Task, got) bool { return true }), append(kinds("*"), "timeout/*")},
		{"gives up when the connection is lost", repeats(false, func(_ check.Task, g got) bool {
			return g.resp == nil && !errors.Is(g.err, context.DeadlineExceeded)
		}), kinds("reset-*")},
		{"gives up at 503", repeats(false, status(503)), kinds("503-503", "reset-503")},
		{"gives up at 502 and 504", repeats(false, status(502, 504)), kinds("502-504")},
		{"gives up at 408", repeats(false, status(408)), kinds("408")},
		{"gives up at 425", repeats(false, status(425)), kinds("425")},
		{"repeats no write with a key", repeats(false, post), []string{"transient/keyed-*"}},
		{"repeats writes without a key", func(h *habits) {
			h.Repeats = func(t check.Task, g got) bool { t.Keyed = true; return repeatable(t, g) }
		}, []string{"transient/unkeyed-503-503", "transient/unkeyed-502-504", "transient/unkeyed-reset-*", "keys/unkeyed-*"}},
		{"sends a write without a key again that was done", func(h *habits) {
			repeats(true, func(t check.Task, g got) bool { return g.status() == 201 && !t.Keyed && t.Kind == check.Call })(h)
			h.Good = func(t check.Task, s int) bool { return s == 200 || s == 201 && t.Keyed }
			h.Attempts = 4
		}, []string{"transient/unkeyed-408", "transient/unkeyed-425"}},
		{"loses the precondition when it repeats", func(h *habits) {
			h.Carries = func(name string, n int) bool { return n == 0 || name != "If-Match" }
		}, []string{"transient/conditional-*"}},
		{"gives up when its key is in use", repeats(false, status(409)), []string{"keys/in-flight*"}},
		{"knows a key in use only as Stripe has it", repeats(false, func(_ check.Task, g got) bool {
			return g.status() == 409 && g.resp.Header.Get("Content-Type") != "application/json"
		}), []string{"keys/in-flight"}},
		{"knows a key in use only as the draft has it", repeats(false, func(_ check.Task, g got) bool {
			return g.status() == 409 && g.resp.Header.Get("Content-Type") == "application/json"
		}), []string{"keys/in-flight-stripe"}},
		{"repeats a cancel that came too late", repeats(true, func(t check.Task, g got) bool {
			return g.status() == 409 && t.Method == http.MethodDelete
		}), []string{"jobs/late-cancel"}},
		{"repeats a write that was in conflict", repeats(true, func(t check.Task, g got) bool {
			return g.status() == 409 && t.Method == http.MethodPost
		}), []string{"final/write-409"}},
	}
	for s, more := range map[int][]string{400: {"final/429-400"}, 401: {"tokens/refused"}, 403: {}, 404: {"final/503-404"},
		409: {"final/write-409", "jobs/late-cancel"}, 422: {}} {
		all = append(all, wrong{"repeats " + strconv.Itoa(s), repeats(true, status(s)), append([]string{"final/" + strconv.Itoa(s)}, more...)})
	}
	return all
}

// endless takes away what would end an outage early, and the claims to it.
func endless(h *habits) {
	h.Trip, h.Tokens = 0, 0
	h.drop(check.Breaks, check.Budgets)
}

// wrongPauses wait in the wrong way.
func wrongPauses() []wrong {
	pause := func(f func(n int, rng *rand.Rand) time.Duration) func(*habits) {
		return func(h *habits) { endless(h); h.Pause = f }
	}
	return []wrong{
		{"hardly pauses", pause(func(int, *rand.Rand) time.Duration { return 15 * time.Millisecond }), []string{"retry-after/none", "fleet/backoff", "outage/one"}},
		{"has pauses that do not grow", pause(func(_ int, rng *rand.Rand) time.Duration {
			return time.Duration(rng.Float64() * float64(pauseBase))
		}), []string{"outage/one"}},
		{"has a fixed pause", pause(func(int, *rand.Rand) time.Duration { return time.Second }), []string{"fleet/backoff"}},
		{"has no jitter", pause(func(n int, _ *rand.Rand) time.Duration { return grown(n) }), []string{"fleet/backoff"}},
		{"draws the same chance in all workers", pause(func(n int, _ *rand.Rand) time.Duration {
			return fullJitter(n, rand.New(rand.NewPCG(1, uint64(n))))
		}), []string{"fleet/backoff"}},
		{"draws most pauses short", pause(func(n int, rng *rand.Rand) time.Duration {
			u := rng.Float64()
			return time.Duration(u * u * u * u * float64(grown(n)))
		}), []string{"fleet/even"}},
		{"wakes with all others when the hint ends", func(h *habits) {
			h.Extra = func(time.Duration, *rand.Rand) time.Duration { return 0 }
		}, []string{"fleet/retry-after"}},
		{"adds jitter after the cap", pause(func(n int, rng *rand.Rand) time.Duration {
			return grown(n) + time.Duration(rng.Float64()*float64(grown(n)))
		}), []string{"outage/cap"}},
	}
}
