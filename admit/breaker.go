package admit

import (
	"math/rand/v2"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// breaker is the breaker of a gate. Every change of state is a new generation;
// results of an older one are ignored.
type breaker struct {
	state  State
	gen    uint32
	until  time.Time     // open: no probe before; half open: the lease of the probe
	open   time.Duration // the next open time
	failed int           // in a row
	first  time.Time     // when the first of them was sent
	spared int           // failures in a row before the last success,
	by     uint64        // which was the answer to this attempt
	window window
}

// meaning is what a result says about the dependency.
type meaning uint8

const (
	neutral meaning = iota
	alive
	failing
)

// meaningOf tells failures of the dependency from what the caller or a quota
// did. A throttle is the pace's business and says nothing here.
func meaningOf(r *Result) meaning {
	switch r.Failure {
	case classify.Canceled, classify.BadRequest, classify.Unread, classify.Blocked:
		return neutral
	}
	switch r.Verdict.Class {
	case classify.OK:
		return alive
	case classify.Overloaded, classify.Transient, classify.Truncated:
		return failing
	case classify.Permanent:
		if r.Failure != classify.NoFailure {
			return failing
		}
	}
	return neutral
}

// probe asks whether now is the time to find out; at is when it will be.
func (b *breaker) probe(now time.Time, lease time.Duration) (at time.Time, ok bool) {
	if now.Before(b.until) {
		return b.until, false
	}
	b.state = HalfOpen
	b.gen++
	b.until = now.Add(lease)
	return now, true
}

func (b *breaker) observe(now time.Time, p *policy.Breaker, r *Result, rng *rand.Rand) {
	if r.Pass.Gen != b.gen {
		return
	}
	m := meaningOf(r)
	if r.Pass.Probe {
		b.probed(now, p, r, m, rng)
		return
	}
	switch m {
	case alive:
		if r.Pass.At.Before(b.first) {
			return // sent before things went wrong: it shows nothing about now
		}
		if b.failed > 0 {
			b.spared, b.by = b.failed, r.Pass.Seq
		}
		b.failed = 0
	case failing:
		if b.failed == 0 {
			b.first = r.Pass.At
		}
		b.failed++
		if r.Late && r.Pass.Seq == b.by { // no success after all: the row goes on
			b.failed += b.spared
			b.spared = 0
		}
	case neutral:
		return
	}
	if p.Ratio > 0 {
		b.window.add(now, p.Window, r.Late, m == failing)
	}
	if m == failing && b.tripped(now, p) {
		b.open = p.Open
		b.trip(now, p, r, rng)
	}
}

func (b *breaker) tripped(now time.Time, p *policy.Breaker) bool {
	if p.Consecutive > 0 && b.failed >= p.Consecutive {
		return true
	}
	if p.Ratio <= 0 {
		return false
	}
	calls, failed := b.window.sum(now, p.Window)
	return calls >= p.MinCalls && float64(failed) >= p.Ratio*float64(calls)
}

// probed ends a probe. An answer that is neither failure nor throttle, a 404
// for example, shows that the dependency is back; a probe that the caller gave
// up, or that was throttled, shows nothing: the next one may leave.
func (b *breaker) probed(now time.Time, p *policy.Breaker, r *Result, m meaning, rng *rand.Rand) {
	answered := r.Status != 0 && r.Verdict.Class != classify.Throttled
	switch {
	case m == failing:
		b.open = min(time.Duration(min(float64(b.open)*p.Growth, float64(policy.Unlimited/2))), max(p.OpenMax, p.Open))
		b.trip(now, p, r, rng)
	case m == alive, answered:
		*b = breaker{gen: b.gen + 1}
	default:
		b.state, b.until = Open, now.Add(floor(r))
		b.gen++
	}
}

// trip opens for the current open time, or for as long as the server asked.
func (b *breaker) trip(now time.Time, p *policy.Breaker, r *Result, rng *rand.Rand) {
	open := min(b.open, policy.Unlimited/2)
	if p.Jitter > 0 {
		open += time.Duration(rng.Float64() * p.Jitter * float64(open))
	}
	b.state = Open
	b.gen++
	b.failed, b.first, b.spared = 0, time.Time{}, 0
	b.window = window{}
	b.until = now.Add(max(open, floor(r)))
}

// window counts calls and failures over a sliding time in ten slots.
type window struct {
	slot   [10]struct{ calls, failed int }
	latest int64 // number of the newest slot
}

func (w *window) move(now time.Time, span time.Duration) *struct{ calls, failed int } {
	n := now.UnixNano() / max(int64(span)/int64(len(w.slot)), 1)
	for i := max(w.latest+1, n-int64(len(w.slot))+1); i <= n; i++ {
		w.slot[i%int64(len(w.slot))] = struct{ calls, failed int }{}
	}
	w.latest = max(n, w.latest)
	return &w.slot[w.latest%int64(len(w.slot))]
}

// add counts an answer; late tells that its call was counted before.
func (w *window) add(now time.Time, span time.Duration, late, failed bool) {
	s := w.move(now, span)
	if !late {
		s.calls++
	}
	if failed {
		s.failed++
	}
}

func (w *window) sum(now time.Time, span time.Duration) (calls, failed int) {
	w.move(now, span)
	for _, s := range w.slot {
		calls += s.calls
		failed += s.failed
	}
	return calls, failed
}
