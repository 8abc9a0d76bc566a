package admit

import (
	"math"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
)

// limiter is how a server of the laboratory limits. Instants are counted from
// the beginning of the trial.
type limiter interface {
	take(now time.Duration) bool
	// opens is the first instant, not before now, at which it takes a request
	// if none comes in between.
	opens(now time.Duration) time.Duration
	// since is the instant from which on it would have taken one.
	since() time.Duration
	// left is what quota headers tell.
	left(now time.Duration) (remaining, limit int64, reset time.Duration)
	scale(now time.Duration, f float64) // the limit is f times as much from now on
}

// tank is a token bucket; with a burst of 1 it is a leaky bucket (GCRA).
type tank struct {
	rate, burst, level float64
	at                 time.Duration
}

func newTank(rate, burst float64) *tank { return &tank{rate: rate, burst: burst, level: burst} }

func (b *tank) fill(now time.Duration) {
	b.level = min(b.burst, b.level+b.rate*(now-b.at).Seconds())
	b.at = now
}

func (b *tank) take(now time.Duration) bool {
	if b.fill(now); b.level < 1-1e-6 { // instants are whole nanoseconds
		return false
	}
	b.level--
	return true
}

func (b *tank) since() time.Duration { return b.at + seconds(max(1-b.level, 0)/b.rate) }

func (b *tank) opens(now time.Duration) time.Duration { return max(now, b.since()) }

func (b *tank) left(now time.Duration) (int64, int64, time.Duration) {
	b.fill(now)
	return int64(b.level), int64(b.burst), seconds((b.burst - b.level) / b.rate)
}

func (b *tank) scale(now time.Duration, f float64) {
	b.fill(now)
	b.rate *= f
	b.burst = max(1, b.burst*f)
}

// calendar is a fixed window that begins at a phase of its own.
type calendar struct {
	limit         int
	length, phase time.Duration
	window        time.Duration // number of the one that used belongs to
	used          int
	last          time.Duration
}

func (w *calendar) number(now time.Duration) time.Duration { return (now + w.phase) / w.length }

func (w *calendar) take(now time.Duration) bool {
	if n := w.number(now); n != w.window {
		w.window, w.used = n, 0
	}
	w.last = now
	if w.used >= w.limit {
		return false
	}
	w.used++
	return true
}

func (w *calendar) since() time.Duration {
	if w.used < w.limit {
		return 0
	}
	return (w.window+1)*w.length - w.phase
}

func (w *calendar) opens(now time.Duration) time.Duration { return max(now, w.since()) }

func (w *calendar) left(now time.Duration) (int64, int64, time.Duration) {
	n, used := w.number(now), w.used
	if n != w.window {
		used = 0
	}
	return int64(max(w.limit-used, 0)), int64(w.limit), (n+1)*w.length - w.phase - now
}

func (w *calendar) scale(_ time.Duration, f float64) { w.limit = max(1, int(float64(w.limit)*f)) }

// sliding counts what it took in the last while.
type sliding struct {
	limit  int
	length time.Duration
	taken  []time.Duration
}

func (w *sliding) drop(now time.Duration) {
	n := 0
	for n < len(w.taken) && now-w.taken[n] >= w.length {
		n++
	}
	w.taken = w.taken[n:]
}

func (w *sliding) take(now time.Duration) bool {
	if w.drop(now); len(w.taken) >= w.limit {
		return false
	}
	w.taken = append(w.taken, now)
	return true
}

func (w *sliding) since() time.Duration {
	if len(w.taken) < w.limit {
		return 0
	}
	return w.taken[len(w.taken)-w.limit] + w.length
}

func (w *sliding) opens(now time.Duration) time.Duration { return max(now, w.since()) }

func (w *sliding) left(now time.Duration) (int64, int64, time.Duration) {
	w.drop(now)
	reset := w.length
	if len(w.taken) > 0 {
		reset = w.taken[0] + w.length - now
	}
	return int64(max(w.limit-len(w.taken), 0)), int64(w.limit), reset
}

func (w *sliding) scale(_ time.Duration, f float64) { w.limit = max(1, int(float64(w.limit)*f)) }

// seats is a cap on requests at one time.
type seats struct {
	limit, taken int
	free         time.Duration // since when one is
}

func (s *seats) take(time.Duration) bool {
	if s.taken >= s.limit {
		return false
	}
	s.taken++
	return true
}

func (s *seats) leave(now time.Duration) {
	if s.taken == s.limit {
		s.free = now
	}
	s.taken--
}

func (s *seats) since() time.Duration {
	if s.taken >= s.limit {
		return math.MaxInt64
	}
	return s.free
}

func (s *seats) opens(now time.Duration) time.Duration {
	if s.taken >= s.limit {
		return now + time.Second // or when one leaves
	}
	return now
}

func (s *seats) left(time.Duration) (int64, int64, time.Duration) {
	return int64(s.limit - s.taken), int64(s.limit), 0
}

func (s *seats) scale(_ time.Duration, f float64) { s.limit = max(1, int(float64(s.limit)*f)) }

// span is a time in which a server is down, with the Retry-After of its 503s.
type span struct{ from, to, wait time.Duration }

// provider is a server of the laboratory: a limiter and its manners.
type provider struct {
	limiter
	wait    func(exact time.Duration) hint.Hint                         // of a 429
	headers func(remaining, limit int64, reset time.Duration) hint.Hint // of every answer
	penalty time.Duration                                               // by which each knock while it is closed prolongs
	shut    time.Duration                                               // until then, by penalty
	outages []span
	share   span    // in which another client sends too
	other   float64 // requests per second of it
	change  []step
}

// step is a change of the limit.
type step struct {
	at time.Duration
	by float64
}

func (p *provider) arrive(now time.Duration) (classify.Verdict, hint.Hint) {
	if o, is := p.down(now); is {
		if o.wait > 0 {
			return overload, after(o.wait)
		}
		return failed, hint.Hint{}
	}
	v := ok
	var h hint.Hint
	if now < p.shut || !p.limiter.take(now) {
		v = throttle
		until := max(p.limiter.opens(now), p.shut)
		if p.penalty > 0 {
			p.shut = until + p.penalty
			until = p.shut
		}
		if p.wait != nil {
			h = p.wait(until - now)
		}
	}
	if p.headers != nil {
		q := p.headers(p.limiter.left(now))
		q.Wait, q.HasWait = h.Wait, h.HasWait
		h = q
	}
	return v, h
}

// well is since when it would have taken a request, while it is not down.
func (p *provider) well(now time.Duration) time.Duration {
	since := max(p.limiter.since(), p.shut)
	for _, o := range p.outages {
		if o.to <= now {
			since = max(since, o.to)
		}
	}
	return since
}

// down is the outage that it has.
func (p *provider) down(now time.Duration) (o span, is bool) {
	for _, o := range p.outages {
		if now >= o.from && now < o.to {
			return o, true
		}
	}
	return span{}, false
}

// What a 429 says.
func roundedUp(d time.Duration) hint.Hint {
	return after((d + time.Second - 1).Truncate(time.Second))
}

// What every answer says.
func honest(remaining, limit int64, reset time.Duration) hint.Hint {
	return quotaSaid(remaining, limit, (reset + time.Second - 1).Truncate(time.Second))
}
func withoutReset(remaining, limit int64, _ time.Duration) hint.Hint {
	return quotaSaid(remaining, limit, 0)
}
