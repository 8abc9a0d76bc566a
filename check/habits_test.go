package check_test

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/check"
)

// habits are the parts of a client that behaves. A wrong client is these with
// one part replaced.
type habits struct {
	// Claims it makes.
	Claims []check.Claim
	// Pause is its own backoff before retry n, counted from 0.
	Pause func(n int, rng *rand.Rand) time.Duration
	// Hint is how long an answer asks to stay away, on top of which Extra comes.
	Hint  func(*http.Response) (time.Duration, bool)
	Extra func(hint time.Duration, rng *rand.Rand) time.Duration
	// Quota is how long quota headers ask everybody to stay away.
	Quota func(*http.Response) (time.Duration, bool)
	// Dialect is the same in the words of one provider.
	Dialect func(*http.Response) (time.Duration, bool)
	// Keeps a good answer for as long as the quota asks to stay away.
	Keeps bool
	// Repeats tells whether an attempt that got this may be made again.
	Repeats func(t check.Task, g got) bool
	// Good tells which status it takes for success; Whole, that only a whole
	// answer is one.
	// Boasts: it reports success whatever it got.
	Good          func(t check.Task, status int) bool
	Whole, Boasts bool
	// Believes says what is wrong with an answer of 2xx; nil: nothing.
	Believes func(*http.Response, []byte) error
	// Key is the idempotency key of attempt n, counted from 0.
	Key func(t check.Task, n int) string
	// Body is what attempt n carries; Carries tells which header fields it does.
	Body    func(t check.Task, n int) string
	Carries func(name string, n int) bool
	// Heeds the deadline that it is told: it ends by it. Dozes: it sees so only
	// when it wakes.
	Heeds, Dozes bool
	// Attempts bounds an operation. 0: only time does.
	Attempts int
	// Attempt bounds one attempt. 0: nothing does.
	Attempt time.Duration
	// Shares tells whether a hint holds all operations of the session.
	Shares bool
	// Open is how many requests may be open. 0: any number.
	Open int
	// Fair takes turns among tenants.
	Fair bool
	// Trip is how many failures in a row open the breaker, 0: none has it;
	// Probes how many requests try whether it may close, and Closes, that it does.
	// Leaks lets through who comes beside another one while it is open.
	Trip, Probes  int
	Closes, Leaks bool
	// Tokens is how many retries may be made before some succeed. 0: any number.
	Tokens int
	// Renewals of the bearer token go one at a time, and an operation repeats
	// after Refusals of them. EachRenews: every operation gets a token of its own.
	OneRenewal, EachRenews bool
	Refusals               int
	// Look is how long a poll rests where the answer says so.
	Look func(*http.Response) time.Duration
	// Verify refuses webhooks that are badly signed, or too old; Once counts each once.
	// Doubled is what it answers to one that came before.
	Verify, Fresh, Once bool
	Doubled             int
	// Follow is what it does with a redirect.
	Follow func(r *http.Request, via []*http.Request) error
	// Complains is the error that it reports.
	Complains func(t check.Task, g got) string
	// Log writes of an attempt.
	Log func(log func(string), r *http.Request, status int, err error)
}

// behaved are the habits of a client that breaks no rule.
func behaved() habits {
	return habits{
		Claims: []check.Claim{check.Retries, check.Writes, check.Headers, check.Deadlines, check.Keyed, check.Keys,
			check.Validates, check.Envelopes, check.Counts, check.Fresh, check.Paces, check.Remembers, check.Parallel,
			check.Budgets, check.Breaks, "concurrency=4", "cap=1600ms", "timeout=1s", check.Tenants, check.Tokens,
			check.Polls, check.Webhooks, check.InFlight, check.GraphQL, check.Dialects},
		Pause: fullJitter,
		Hint:  readHint,
		Extra: func(hint time.Duration, rng *rand.Rand) time.Duration {
			return time.Duration(rng.Float64() * 0.1 * float64(min(hint, 10*time.Second)))
		},
		Quota:      readQuota,
		Dialect:    readDialects("none"),
		Repeats:    repeatable,
		Good:       func(_ check.Task, status int) bool { return status/100 == 2 },
		Whole:      true,
		Believes:   believes(""),
		Key:        func(t check.Task, _ int) string { return keyOf(t) },
		Body:       func(t check.Task, _ int) string { return t.Body },
		Carries:    func(string, int) bool { return true },
		Heeds:      true,
		Attempt:    time.Second,
		Shares:     true,
		Open:       4,
		Fair:       true,
		Trip:       10,
		Probes:     1,
		Closes:     true,
		Tokens:     20,
		OneRenewal: true,
		Refusals:   1,
		Look:       lookAgain,
		Verify:     true,
		Fresh:      true,
		Once:       true,
		Doubled:    http.StatusNoContent,
		Follow:     func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Complains:  func(_ check.Task, g got) string { return complaint(g) },
		Log: func(log func(string), r *http.Request, status int, _ error) {
			log(r.Method + " answered " + strconv.Itoa(status))
		},
	}
}

const (
	pauseBase = 200 * time.Millisecond
	pauseCap  = 1600 * time.Millisecond
)

// grown is the backoff before jitter.
func grown(n int) time.Duration { return min(pauseCap, pauseBase<<min(n, 20)) }

func fullJitter(n int, rng *rand.Rand) time.Duration {
	return time.Duration(rng.Float64() * float64(grown(n)))
}

func keyOf(t check.Task) string {
	return "key-" + strconv.FormatUint(uint64(len(t.URL)), 10) + "-" + t.ID[:min(len(t.ID), 40)]
}

// repeatable says what may be made again.
func repeatable(t check.Task, g got) bool {
	safe := t.Method != http.MethodPost || t.Keyed
	switch g.status() {
	case 408, 425, 429:
		return true
	case 0, 500, 502, 503, 504:
		return safe || errors.Is(g.err, errThrottled)
	case 403:
		return g.resp.Header.Get("X-RateLimit-Remaining") == "0"
	case 409:
		return t.Keyed && keyInUse(body(g.resp))
	}
	return false
}

// keyInUse tells whether a 409 is one of a key whose request is at work.
func keyInUse(text []byte) bool {
	return bytes.Contains(text, []byte("outstanding for this Idempotency-Key")) || bytes.Contains(text, []byte("idempotency_key_in_use"))
}

// readHint reads Retry-After in all its forms; of several the longest.
func readHint(resp *http.Response) (time.Duration, bool) {
	longest, found := time.Duration(0), false
	for _, v := range resp.Header.Values("Retry-After") {
		if d, ok := oneHint(strings.TrimSpace(v), resp); ok {
			longest, found = max(longest, d), true
		}
	}
	return longest, found
}

const forever = 100 * 365 * 24 * time.Hour

func oneHint(v string, resp *http.Response) (time.Duration, bool) {
	if v != "" && strings.Trim(v, "0123456789") == "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n > int64(forever/time.Second) {
			return forever, true
		}
		if n > 1e8 { // an instant: nobody means three years
			return max(0, time.Until(time.Unix(n, 0))), true
		}
		return time.Duration(n) * time.Second, true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	now := time.Now()
	if d, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		now = d
	}
	return min(forever, max(0, at.Sub(now))), true
}

// readQuota reads the forms of RateLimit and X-RateLimit.
func readQuota(resp *http.Response) (time.Duration, bool) {
	h := resp.Header
	left := cmp.Or(h.Get("X-RateLimit-Remaining"), h.Get("RateLimit-Remaining"), h.Get("X-Rate-Limit-Remaining"))
	reset := cmp.Or(h.Get("X-RateLimit-Reset"), h.Get("RateLimit-Reset"), h.Get("X-Rate-Limit-Reset"))
	if f := h.Get("RateLimit"); f != "" {
		left, reset = "", ""
		for part := range strings.FieldsFuncSeq(f, func(r rune) bool { return r == ';' || r == ',' }) {
			name, v, _ := strings.Cut(strings.TrimLeft(part, " "), "=")
			switch name {
			case "r", "remaining":
				left = v
			case "t", "reset":
				reset = v
			}
		}
		if strings.Contains(f, " ;") {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(reset, 10, 64)
	if left != "0" || err != nil {
		return 0, false
	}
	switch {
	case n > 1e11:
		return max(0, time.Until(time.UnixMilli(n))), true
	case n > 1e8:
		return max(0, time.Until(time.Unix(n, 0))), true
	}
	return time.Duration(n) * time.Second, true
}

var (
	errLie       = errors.New("the answer is not what it claims to be")
	errThrottled = errors.New("the answer is that it was throttled")
)

func lookAgain(resp *http.Response) time.Duration {
	if d, ok := readHint(resp); ok {
		return d
	}
	return time.Second
}
