package admit

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// Gate is the Keeper of a quota key within one process. Make it with NewGate.
type Gate struct {
	mu  sync.Mutex
	p   *policy.Policy
	rng *rand.Rand
	// calm tells that a success like all others would teach nothing, so that
	// it need not be waited for by those who ask.
	calm atomic.Bool

	sent     uint64 // attempts let through
	refused  uint64 // of them throttled
	inFlight int
	groups   []int
	latest   time.Time // anybody has told
	breaker  breaker
	hold     hold
	pace     pace
	quota    quota
	budget   int // retry tokens left
}

// NewGate returns the gate of a key under p, which has its defaults filled in
// and is not changed any more. rng seeds every jitter of the gate.
func NewGate(p *policy.Policy, rng *rand.Rand) *Gate {
	g := &Gate{p: p, rng: rng, groups: make([]int, len(p.Limits.Groups)), budget: p.Retry.Tokens.Capacity}
	g.pace.init(&p.Limits)
	return g
}

// Admit implements Keeper. The order of the questions is the order in which
// an answer concerns most callers.
func (g *Gate) Admit(now time.Time, a Ask) (out Answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now = g.instant(now)
	if g.breaker.state != Closed && !g.p.Breaker.Off {
		return g.probe(now, a)
	}
	if now.Before(g.hold.until) {
		return Answer{At: g.hold.until, Source: g.hold.source, Everyone: true}
	}
	if wait, ok := g.full(a); !ok {
		return wait
	}
	if g.byQuota() {
		g.pace.follow(g.quota.pace(&g.p.Limits))
	}
	late := g.pace.late(now)
	if late < 0 {
		return Answer{At: g.pace.next, Source: policy.WaitPace}
	}
	if at := g.quota.take(now, &g.p.Limits); now.Before(at) {
		return Answer{At: at, Source: policy.WaitQuota}
	}
	g.pace.take(late, now, a.Waiting > 0)
	g.pass(&out, now, a, false)
	return out
}

// instant is the latest instant that anybody has told. Who read the clock and
// was then kept from asking, while others went before, asks at theirs: an
// instant that is past must not make it wait for a slot that is free.
func (g *Gate) instant(now time.Time) time.Time {
	if now.After(g.latest) {
		g.latest = now
	}
	return g.latest
}

// byQuota tells that the quota that comes back is the better pace than one
// that is learned.
func (g *Gate) byQuota() bool { return g.pace.mode != configured && g.quota.refills() }

// pass lets an attempt go. It fills in out where that lies: an Answer is large,
// and to copy it would be a part of what every call costs.
func (g *Gate) pass(out *Answer, now time.Time, a Ask, probe bool) {
	p := &out.Pass
	if !probe { // a probe must not need what may be exhausted
		g.inFlight++
		p.Crowded = crowded(g.inFlight, g.p.Limits.Concurrency)
		if a.Group >= 0 {
			g.groups[a.Group]++
			p.Crowded = p.Crowded || crowded(g.groups[a.Group], g.p.Limits.Groups[a.Group].Concurrency)
		}
	}
	g.pace.note(now)
	if g.hold.first == 0 {
		g.hold.first = g.sent + 1
	}
	out.Kind, out.Breaker = Go, g.breaker.state
	p.At, p.Seq, p.Gen, p.Group, p.Probe = now, g.sent, g.breaker.gen, a.Group, probe
	g.sent++
}

// crowded tells that more than half of the slots are taken. Without a cap there
// are none.
func crowded(taken, slots int) bool { return slots > 0 && 2*taken > slots }

// probe answers while the breaker is not closed.
func (g *Gate) probe(now time.Time, a Ask) Answer {
	kind := Wait
	if g.p.Breaker.OnOpen == policy.OnOpenFail {
		kind = No
	}
	closed := Answer{Kind: kind, At: g.hold.until, Source: g.hold.source, Everyone: true, Breaker: g.breaker.state}
	if now.Before(g.hold.until) && g.hold.until.After(g.breaker.until) {
		return closed // what the server said binds a probe too
	}
	if at, ok := g.breaker.probe(now, g.p.Breaker.Lease); !ok {
		closed.At, closed.Source = at, policy.WaitBreaker
		return closed
	}
	var out Answer
	g.pass(&out, now, a, true)
	return out
}

// full tells which concurrency cap is reached.
func (g *Gate) full(a Ask) (Answer, bool) {
	if c := g.p.Limits.Concurrency; c > 0 && g.inFlight >= c {
		return Answer{Source: policy.WaitConcurrency, Everyone: true}, false
	}
	if a.Group >= 0 {
		if c := g.p.Limits.Groups[a.Group].Concurrency; c > 0 && g.groups[a.Group] >= c {
			return Answer{Source: policy.WaitConcurrency}, false
		}
	}
	return Answer{}, true
}

// Release implements Keeper.
func (g *Gate) Release(_ time.Time, p Pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.Probe {
		return
	}
	g.inFlight--
	if p.Group >= 0 {
		g.groups[p.Group]--
	}
}

// Observe implements Keeper.
func (g *Gate) Observe(now time.Time, r Result) Told {
	if g.Calm() && !r.Retry && Plain(&r.Verdict, r.Failure, &r.Hint) {
		return Told{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.breaker.state
	g.clamp(&r)
	g.settle(now, &r)
	g.learn(now, &r)
	t := Told{Breaker: g.breaker.state, Changed: g.breaker.state != before}
	if g.breaker.state != Closed {
		t.Until, t.Source = g.breaker.until, policy.WaitBreaker
	}
	if now.Before(g.hold.until) && g.hold.until.After(t.Until) {
		t.Until, t.Source = g.hold.until, g.hold.source
	}
	if r.Retry {
		t.Cost, t.Retry = g.spend(&r)
	}
	g.calm.Store(t.Until.IsZero() && g.breaker.failed == 0 && g.hold.misses == 0 &&
		g.budget == g.p.Retry.Tokens.Capacity && g.p.Breaker.Ratio <= 0)
	return t
}

// Calm tells that a Plain result teaches nothing, so that it need not be told.
func (g *Gate) Calm() bool { return g.calm.Load() }

// Plain tells a success of which there is nothing more to say.
func Plain(v *classify.Verdict, f classify.Failure, h *hint.Hint) bool {
	return v.Class == classify.OK && f == classify.NoFailure && !h.HasRemaining
}

// settle lets the breaker see the result.
func (g *Gate) settle(now time.Time, r *Result) {
	if g.p.Breaker.Off {
		return
	}
	was := g.breaker.state
	g.breaker.observe(now, &g.p.Breaker, r, g.rng)
	if was != Closed && g.breaker.state == Closed {
		g.pace.resume(now, policy.Unlimited)
	}
}

// learn lets hold, quota and pace see the result.
func (g *Gate) learn(now time.Time, r *Result) {
	if r.Verdict.Class == classify.Throttled {
		g.refused++
	}
	if r.Hint.HasRemaining {
		g.quota.observe(now, r, g.sent, g.refused, g.rng)
	}
	switch r.Verdict.Class {
	case classify.Throttled:
		g.throttled(now, r)
	case classify.Overloaded:
		g.overloaded(now, floor(r))
	case classify.OK:
		g.hold.through(r.Pass)
		g.repay(max(r.Paid, 1))
	}
	if r.Failure == classify.Canceled {
		g.repay(r.Paid) // the retry was not to blame
	}
}

// repay gives tokens back to the retry budget.
func (g *Gate) repay(tokens int) {
	g.budget = min(g.budget+tokens, g.p.Retry.Tokens.Capacity)
}

// overloaded closes the key for as long as a server asked that is up and
// cannot take more.
func (g *Gate) overloaded(now time.Time, wait time.Duration) {
	switch {
	case wait == 0:
	case g.breaker.state != Closed: // only one probe will leave then: no jitter
		g.hold.extend(now.Add(wait), policy.WaitRetryAfter)
	default:
		g.hold.extend(now.Add(wait+g.p.Hints.Jitter(wait, g.rng)), policy.WaitRetryAfter)
		g.pace.resume(g.hold.until, wait)
	}
}

// throttled closes the key. A throttle of an attempt that left before the key
// closed tells nothing new but a longer hint.
func (g *Gate) throttled(now time.Time, r *Result) {
	if r.Verdict.Scope == classify.ScopeCall {
		return
	}
	fresh := r.Pass.At.After(g.hold.cut)
	wait, source, saved := floor(r), policy.WaitRetryAfter, time.Duration(0)
	if wait == 0 && r.Hint.HasReset && r.Hint.HasRemaining && r.Hint.Remaining == 0 && !g.quota.refills() {
		wait, source = r.Hint.Reset, policy.WaitQuota
	}
	if wait > 0 {
		wait += g.p.Hints.Jitter(wait, g.rng)
		saved = wait
	}
	var blind time.Duration
	if fresh {
		g.pace.cut(r.Pass.At)
		blind = g.hold.miss(now, r.Pass.Seq, g.p.Backoff.Cap)
	} else {
		g.pace.correct(r.Pass.At)
		blind = g.hold.confirm(r.Pass.Seq, g.p.Backoff.Cap)
	}
	if saved == 0 && blind > 0 {
		wait, source = g.hold.cut.Add(blind).Sub(now), policy.WaitPace
	}
	g.hold.extend(now.Add(wait), source)
	g.pace.resume(g.hold.until, saved)
}

// longest is for how long one answer may close a key. The call that got it
// ends with the instant it was told; the others ask again after a day, so that
// one absurd value does not shut a key for years.
const longest = 24 * time.Hour

// clamp bounds how long the hints of r close the key: a policy that clamps for
// a call also clamps for the others.
func (g *Gate) clamp(r *Result) {
	top := longest
	if g.p.Retry.OverCeiling == policy.Clamp {
		top = min(top, g.p.Retry.Ceiling)
	}
	r.Hint.Wait = min(r.Hint.Wait, top)
	r.Hint.Reset = min(r.Hint.Reset, top)
	r.Verdict.Wait = min(r.Verdict.Wait, top)
}

func floor(r *Result) time.Duration {
	if r.Hint.HasWait {
		return max(r.Hint.Wait, r.Verdict.Wait)
	}
	return r.Verdict.Wait
}

// spend takes the retry tokens of one retry. A retry that will wait for the
// breaker costs nothing: the breaker bounds that load already.
func (g *Gate) spend(r *Result) (cost int, ok bool) {
	t := &g.p.Retry.Tokens
	if t.Off || g.breaker.state != Closed || r.Pass.Probe {
		return 0, true
	}
	cost = t.Cost(r.Verdict.Class == classify.Throttled)
	if g.budget < cost {
		return 0, false
	}
	g.budget -= cost
	return cost, true
}

// Inherit takes over what the server has said to from, the gate of the same key
// under an earlier policy: until when the key is closed, and what is left of its
// quota. What was learned under that policy is not taken over.
func (g *Gate) Inherit(from *Gate) {
	from.mu.Lock()
	told, quota, sent, refused := from.hold, from.quota, from.sent, from.refused
	from.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if told.until.After(g.hold.until) {
		g.hold = told
		g.pace.resume(told.until, 0)
		g.calm.Store(false)
	}
	if g.sent == 0 && quota.known {
		g.quota, g.sent, g.refused = quota, sent, refused // its samples count what was sent
	}
}

// hold is the time for which the key is closed by what the server said.
type hold struct {
	until  time.Time
	source policy.WaitSource
	cut    time.Time // when the last throttle was learned of
	misses int       // throttles in a row without a success in between
	first  uint64    // the attempt that left first since then, counted from 1; 0: none has
	doubt  uint64    // the same of the time before, if it was not what was throttled
}

func (h *hold) extend(t time.Time, source policy.WaitSource) {
	if t.After(h.until) {
		h.until, h.source = t, source
	}
}

// blindHold is how long a key stays closed after the first throttle that says
// nothing; it doubles while no attempt succeeds.
const blindHold = 25 * time.Millisecond

func (h *hold) blind(top time.Duration) time.Duration {
	return min(blindHold<<min(max(h.misses-1, 0), 20), max(top, blindHold))
}

// miss notes a throttle of attempt seq, which left since the last one, and tells
// how long to close if the server says nothing. If attempts that left before
// seq are still on their way, the key may have been open: their answers tell.
func (h *hold) miss(now time.Time, seq uint64, top time.Duration) time.Duration {
	if h.misses == 0 || seq+1 == h.first {
		h.misses++
		h.doubt = 0
	} else {
		h.doubt = h.first
	}
	h.cut, h.first = now, 0
	return h.blind(top)
}

// confirm notes a throttle of attempt seq, which left before the last one. Was
// it the first since the one before, the key has not been open in between.
func (h *hold) confirm(seq uint64, top time.Duration) time.Duration {
	if h.doubt == 0 || seq+1 != h.doubt {
		return 0
	}
	h.misses++
	h.doubt = 0
	return h.blind(top)
}

// through notes a success.
func (h *hold) through(p Pass) {
	switch {
	case p.At.After(h.cut):
		h.misses, h.doubt = 0, 0
	case h.doubt > 0 && p.Seq+1 >= h.doubt: // it left before the last throttle, and after the one before
		h.misses, h.doubt = 1, 0
	}
}
