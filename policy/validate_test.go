package policy

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func paths(ps []Problem) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Path)
	}
	return out
}

func TestTheZeroPolicyIsValid(t *testing.T) {
	if got := (Policy{}).Validate(); len(got) != 0 {
		t.Errorf("got %v, want no problem", got)
	}
}

func TestEachProblemIsFound(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		path string
		p    Policy
	}{
		{"retry.budget", Policy{Retry: Retry{Budget: -1}}},
		{"retry.attempts", Policy{Retry: Retry{Attempts: -1}}},
		{"retry.min_attempt", Policy{Retry: Retry{MinAttempt: -1}}},
		{"retry.min_attempt", Policy{Retry: Retry{Budget: time.Second, MinAttempt: time.Second}}},
		{"retry.min_attempt", Policy{Retry: Retry{Budget: 30 * time.Millisecond}}},
		{"retry.min_attempt", Policy{Retry: Retry{MinAttempt: time.Hour}}},
		{"retry.min_pause", Policy{Retry: Retry{MinPause: -1}}},
		{"retry.ceiling", Policy{Retry: Retry{Ceiling: -1}}},
		{"retry.over_ceiling", Policy{Retry: Retry{OverCeiling: "wait"}}},
		{"retry.tokens.capacity", Policy{Retry: Retry{Tokens: Tokens{Capacity: -1}}}},
		{"retry.tokens.throttled", Policy{Retry: Retry{Tokens: Tokens{Throttled: -1}}}},
		{"retry.tokens.transient", Policy{Retry: Retry{Tokens: Tokens{Transient: -1}}}},
		{"backoff.formula", Policy{Backoff: Backoff{Formula: "linear"}}},
		{"backoff.base", Policy{Backoff: Backoff{Base: -1}}},
		{"backoff.cap", Policy{Backoff: Backoff{Cap: -1}}},
		{"hints.jitter_ratio", Policy{Hints: Hints{JitterRatio: nan}}},
		{"limits.rate", Policy{Limits: Limits{Rate: -1}}},
		{"limits.rate", Policy{Limits: Limits{Rate: nan}}},
		{"limits.rate", Policy{Limits: Limits{Rate: math.Inf(1)}}},
		{"limits.burst", Policy{Limits: Limits{Burst: -1}}},
		{"limits.concurrency", Policy{Limits: Limits{Concurrency: -1}}},
		{"limits.stagger", Policy{Limits: Limits{Stagger: -1}}},
		{"limits.learn.start", Policy{Limits: Limits{Learn: Learn{Start: nan}}}},
		{"limits.tenant_share", Policy{Limits: Limits{TenantShare: 1.5}}},
		{"limits.groups[0].name", Policy{Limits: Limits{Groups: []Group{{Paths: []string{"/a"}}}}}},
		{"limits.groups[0].paths", Policy{Limits: Limits{Groups: []Group{{Name: "a"}}}}},
		{"limits.groups[0].concurrency", Policy{Limits: Limits{Groups: []Group{{"a", []string{"/a"}, -1}}}}},
		{"breaker.ratio", Policy{Breaker: Breaker{Ratio: 2}}},
		{"breaker.ratio", Policy{Breaker: Breaker{Ratio: nan}}},
		{"breaker.window", Policy{Breaker: Breaker{Window: -1}}},
		{"breaker.min_calls", Policy{Breaker: Breaker{MinCalls: -1}}},
		{"breaker.open", Policy{Breaker: Breaker{Open: -1}}},
		{"breaker.open_max", Policy{Breaker: Breaker{OpenMax: -1}}},
		{"breaker.growth", Policy{Breaker: Breaker{Growth: 0.5}}},
		{"breaker.growth", Policy{Breaker: Breaker{Growth: nan}}},
		{"breaker.jitter", Policy{Breaker: Breaker{Jitter: 2}}},
		{"breaker.jitter", Policy{Breaker: Breaker{Jitter: nan}}},
		{"breaker.lease", Policy{Breaker: Breaker{Lease: -1}}},
		{"breaker.on_open", Policy{Breaker: Breaker{OnOpen: "panic"}}},
		{"breaker.health.path", Policy{Breaker: Breaker{Health: Health{Path: "health"}}}},
		{"timeouts.connect", Policy{Timeouts: Timeouts{Connect: -1}}},
		{"timeouts.header", Policy{Timeouts: Timeouts{Header: -1}}},
		{"timeouts.idle", Policy{Timeouts: Timeouts{Idle: -1}}},
		{"timeouts.attempt", Policy{Timeouts: Timeouts{Attempt: -1}}},
		{"verify.mode", Policy{Verify: Verify{Mode: "half"}}},
		{"verify.max_age", Policy{Verify: Verify{MaxAge: -1}}},
		{"verify.max_unmodified", Policy{Verify: Verify{MaxUnmodified: -1}}},
		{"verify.spool_limit", Policy{Verify: Verify{SpoolLimit: -1}}},
		{"idempotency.from", Policy{Key: Key{From: "clock"}}},
		{"idempotency.max_len", Policy{Key: Key{MaxLen: -1}}},
		{"idempotency.max_len", Policy{Key: Key{Header: "K", From: KeyHash, MaxLen: 8}}},
		{"idempotency.header", Policy{Key: Key{From: KeyRandom}}},
	} {
		if diff := cmp.Diff(paths(c.p.Validate()), []string{c.path}); diff != "" {
			t.Errorf("%s (-got +want):\n%s", c.path, diff)
		}
		if diff := cmp.Diff(c.p.WithDefaults().Validate(), c.p.Validate()); diff != "" {
			t.Errorf("%s: the defaults change what is wrong (-with +without):\n%s", c.path, diff)
		}
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	p := Policy{Backoff: Backoff{Base: -1, Cap: -1}, Limits: Limits{Rate: -1}}
	if diff := cmp.Diff(paths(p.Validate()), []string{"limits.rate", "backoff.base", "backoff.cap"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestAProblemSaysWhatToWrite(t *testing.T) {
	got := Policy{Backoff: Backoff{Formula: "linear"}}.Validate()[0].String()
	want := `backoff.formula: "linear" is not known; use one of full, exponential, equal, decorrelated, additive`
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, p := range (Policy{Retry: Retry{Budget: -1, Ceiling: -1}}).Validate() {
		if p.Remedy == "" || !strings.Contains(p.String(), p.Remedy) {
			t.Errorf("got %q without a remedy", p)
		}
	}
}

func TestAProblemWithoutARemedyIsToldInOneClause(t *testing.T) {
	if got := (Problem{Path: "a", Message: "b"}).String(); got != "a: b" {
		t.Errorf("got %q, want %q", got, "a: b")
	}
}
