package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Problem is one thing that is wrong with a policy. Path names the field in
// the words of heed.yaml (retry.budget); Remedy says what to write instead.
type Problem struct {
	Path, Message, Remedy string
}

// String tells it in one line: path: message; remedy.
func (p Problem) String() string {
	if p.Remedy == "" {
		return p.Path + ": " + p.Message
	}
	return p.Path + ": " + p.Message + "; " + p.Remedy
}

type problems []Problem

func (ps *problems) add(path, remedy, format string, args ...any) {
	*ps = append(*ps, Problem{path, fmt.Sprintf(format, args...), remedy})
}

func (ps *problems) duration(path string, d time.Duration) {
	if d < 0 {
		ps.add(path, "give a duration of zero or more", "%v is negative", d)
	}
}

func (ps *problems) count(path string, n int) {
	if n < 0 {
		ps.add(path, "give a number of zero or more", "%d is negative", n)
	}
}

func oneOf[T ~string](ps *problems, path string, v T, known ...T) {
	if v == "" || slices.Contains(known, v) {
		return
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	ps.add(path, "use one of "+strings.Join(names, ", "), "%q is not known", string(v))
}

// Validate lists everything that is wrong with p, the same before and after
// WithDefaults. An empty list means that p can be used.
func (p Policy) Validate() []Problem {
	var ps problems
	p = p.WithDefaults()
	p.Retry.validate(&ps)
	p.Limits.validate(&ps)
	p.Breaker.validate(&ps)
	p.Key.validate(&ps)
	if !(p.Hints.JitterRatio <= 10) {
		ps.add("hints.jitter_ratio", "give a part of the wait, such as 0.1", "%v is not a ratio", p.Hints.JitterRatio)
	}
	oneOf(&ps, "backoff.formula", p.Backoff.Formula, Full, Exponential, Equal, Decorrelated, Additive)
	ps.duration("backoff.base", p.Backoff.Base)
	ps.duration("backoff.cap", p.Backoff.Cap)
	ps.duration("timeouts.connect", p.Timeouts.Connect)
	ps.duration("timeouts.header", p.Timeouts.Header)
	ps.duration("timeouts.idle", p.Timeouts.Idle)
	ps.duration("timeouts.attempt", p.Timeouts.Attempt)
	oneOf(&ps, "verify.mode", p.Verify.Mode, VerifyHead, VerifyFull, VerifyOff)
	ps.duration("verify.max_age", p.Verify.MaxAge)
	ps.duration("verify.max_unmodified", p.Verify.MaxUnmodified)
	if p.Verify.SpoolLimit < 0 {
		ps.add("verify.spool_limit", "give a size of zero or more", "%d is negative", p.Verify.SpoolLimit)
	}
	return ps
}

func (r Retry) validate(ps *problems) {
	ps.duration("retry.budget", r.Budget)
	ps.count("retry.attempts", r.Attempts)
	ps.duration("retry.min_attempt", r.MinAttempt)
	ps.duration("retry.min_pause", r.MinPause)
	ps.duration("retry.ceiling", r.Ceiling)
	oneOf(ps, "retry.over_ceiling", r.OverCeiling, Fail, Defer, Clamp)
	ps.count("retry.tokens.capacity", r.Tokens.Capacity)
	ps.count("retry.tokens.throttled", r.Tokens.Throttled)
	ps.count("retry.tokens.transient", r.Tokens.Transient)
	if r.Budget > 0 && r.MinAttempt >= r.Budget {
		ps.add("retry.min_attempt", "make it shorter than retry.budget",
			"%v leaves no room for an attempt within the budget of %v", r.MinAttempt, r.Budget)
	}
}

func (l Limits) validate(ps *problems) {
	if !(l.Rate >= 0 && l.Rate <= 1e9) {
		ps.add("limits.rate", "give requests per second, such as 25/s", "%v is not a rate", l.Rate)
	}
	ps.count("limits.burst", l.Burst)
	ps.count("limits.concurrency", l.Concurrency)
	ps.duration("limits.stagger", l.Stagger)
	if !(l.Learn.Start >= 0 && l.Learn.Start <= 1e9) {
		ps.add("limits.learn.start", "give requests per second", "%v is not a rate", l.Learn.Start)
	}
	if !(l.TenantShare >= 0 && l.TenantShare <= 1) {
		ps.add("limits.tenant_share", "give a part between 0 and 1", "%v is not a share", l.TenantShare)
	}
	for i, g := range l.Groups {
		at := fmt.Sprintf("limits.groups[%d]", i)
		if g.Name == "" {
			ps.add(at+".name", "give the group a name", "the group has no name")
		}
		if len(g.Paths) == 0 {
			ps.add(at+".paths", "list path globs, such as /v6/bibs/**", "the group has no paths")
		}
		ps.count(at+".concurrency", g.Concurrency)
	}
}

func (b Breaker) validate(ps *problems) {
	if !(b.Ratio >= 0 && b.Ratio <= 1) {
		ps.add("breaker.ratio", "give a part between 0 and 1", "%v is not a ratio", b.Ratio)
	}
	ps.duration("breaker.window", b.Window)
	ps.count("breaker.min_calls", b.MinCalls)
	ps.duration("breaker.open", b.Open)
	ps.duration("breaker.open_max", b.OpenMax)
	ps.duration("breaker.lease", b.Lease)
	if b.Growth != 0 && !(b.Growth >= 1 && b.Growth <= 100) {
		ps.add("breaker.growth", "give a factor of 1 or more", "%v does not grow", b.Growth)
	}
	if !(b.Jitter <= 1) {
		ps.add("breaker.jitter", "give a part between 0 and 1", "%v is not a part of the open time", b.Jitter)
	}
	oneOf(ps, "breaker.on_open", b.OnOpen, OnOpenWait, OnOpenFail)
	if b.Health.Path != "" && !strings.HasPrefix(b.Health.Path, "/") {
		ps.add("breaker.health.path", "begin it with /", "%q is not a path", b.Health.Path)
	}
}

// leastKey is the shortest made key, in bytes of hexadecimal: with 64 random
// bits, a billion keys collide with a chance of a few per cent.
const leastKey = 16

func (k Key) validate(ps *problems) {
	oneOf(ps, "idempotency.from", k.From, KeyGiven, KeyRandom, KeyHash)
	ps.count("idempotency.max_len", k.MaxLen)
	if k.From != KeyRandom && k.From != KeyHash {
		return
	}
	if k.Header == "" {
		ps.add("idempotency.header", "name the header the provider honours, such as Idempotency-Key",
			"a key is made but no header carries it")
	}
	if k.MaxLen > 0 && k.MaxLen < leastKey {
		ps.add("idempotency.max_len", "give 16 or more, or let the caller give the keys",
			"keys of %d bytes that are made would meet", k.MaxLen)
	}
}
