package check

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Claim is a word for what a client says it does; it may have a value:
// concurrency=4.
type Claim string

// The claims. Those of a client that says nothing are Ordinary; Words says what
// each means.
const (
	Retries     Claim = "retry"
	Writes      Claim = "write"
	Headers     Claim = "header"
	Deadlines   Claim = "deadline"
	Keyed       Claim = "keyed"
	Keys        Claim = "key"
	Validates   Claim = "validate"
	Envelopes   Claim = "envelope"
	Counts      Claim = "count"
	Fresh       Claim = "stale"
	Paces       Claim = "pace"
	Remembers   Claim = "session"
	Parallel    Claim = "parallel"
	Budgets     Claim = "budget"
	Breaks      Claim = "breaker"
	Concurrency Claim = "concurrency"
	Cap         Claim = "cap"
	Timeouts    Claim = "timeout"
	Tenants     Claim = "tenant"
	Tokens      Claim = "token"
	Polls       Claim = "poll"
	Webhooks    Claim = "webhook"
	InFlight    Claim = "in-flight"
	GraphQL     Claim = "graphql"
	Dialects    Claim = "dialect"
)

// Word is a claim and what it says.
type Word struct {
	Claim Claim
	Means string
}

// Words are all claims.
var Words = []Word{
	{Retries, "it repeats what may be repeated"},
	{Writes, "it can send other methods than GET, and bodies"},
	{Headers, "it sends the header fields that it is given"},
	{Deadlines, "it gives up when it is told to"},
	{Keyed, "it repeats writes that carry an idempotency key"},
	{Keys, "it makes such keys by itself"},
	{Validates, "it looks into a 200: JSON, emptiness"},
	{Envelopes, "it knows an error envelope in a 200"},
	{Counts, "it counts what it gets against what the answer says"},
	{Fresh, "it refuses answers that are too old"},
	{Paces, "it heeds quota headers before the next request"},
	{Remembers, "what one operation learns the next one knows"},
	{Parallel, "it can do several operations at a time"},
	{Budgets, "it bounds its retries by a share of all calls"},
	{Breaks, "it has a circuit breaker"},
	{Concurrency, "it bounds what is open at a time; needs a value, such as concurrency=4"},
	{Cap, "its backoff is never longer; needs a value, such as cap=30s"},
	{Timeouts, "it ends an attempt that takes too long; needs a value, such as timeout=1s"},
	{Tenants, "it is fair among tenants"},
	{Tokens, "it gets and renews bearer tokens"},
	{Polls, "it waits for a job and looks at the interval that it is told"},
	{Webhooks, "it listens for webhooks, checks their signature and counts each once"},
	{InFlight, "it waits where 409 says that a request with its key is still in progress"},
	{GraphQL, "it knows an error in the body of a GraphQL answer"},
	{Dialects, "it knows how a provider tells of its limits, such as dialect=github; as often as there are such; without a value: all"},
}

// Ordinary are the claims of a client that says nothing.
func Ordinary() []Claim { return []Claim{Retries} }

// value returns what follows the = of a claim, and whether it is made.
func value(claims []Claim, c Claim) (string, bool) {
	for _, have := range claims {
		if name, v := cut(string(have), "="); name == string(c) {
			return v, true
		}
	}
	return "", false
}

// lacks returns the first claim that the case needs and the client lacks.
func (c Case) lacks(claims []Claim) (Claim, bool) {
	i := slices.IndexFunc(c.Needs, func(n Claim) bool { return !slices.ContainsFunc(claims, n.met) })
	if i < 0 {
		return "", false
	}
	return c.Needs[i], true
}

// met tells whether a claim is the one that is needed: by its name, and where a
// value is needed by that, or by none, which stands for all.
func (c Claim) met(by Claim) bool {
	name, need := cut(string(c), "=")
	claimed, v := cut(string(by), "=")
	return name == claimed && (need == "" || v == "" || need == v)
}

// unknown returns an error for the first claim that is no word, or a dialect of
// which no case knows.
func unknown(claims []Claim, cases []Case) error {
	for _, c := range claims {
		name, v := cut(string(c), "=")
		known := slices.ContainsFunc(Words, func(w Word) bool { return w.Claim == Claim(name) })
		if Claim(name) == Dialects && v != "" {
			known = slices.ContainsFunc(slices.Concat(cases, All()), func(one Case) bool { return one.needs(c) })
		}
		if !known {
			return fmt.Errorf("check: nothing is known of the claim %q; heed check list names what there is", plainly(string(c), 80))
		}
	}
	return nil
}

// unvalued returns an error for the first claim whose value is none.
func unvalued(claims []Claim) error {
	for _, c := range claims {
		switch name, v := cut(string(c), "="); Claim(name) {
		case Concurrency:
			if n, err := strconv.Atoi(v); err != nil || n < 1 {
				return fmt.Errorf("check: the claim %q needs a number above 0, such as concurrency=4", c)
			}
		case Cap, Timeouts:
			if d, err := time.ParseDuration(v); err != nil || d <= 0 {
				return fmt.Errorf("check: the claim %q needs a time above 0, such as %s=30s", c, name)
			}
		}
	}
	return nil
}
