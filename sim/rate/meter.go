package rate

import (
	"math"
	"time"
)

// Meter is the state of one Limit for those who share it. The zero value is
// unused: full buckets, empty windows.
type Meter struct {
	used   float64   // in the bucket, the window, or at the same time
	before float64   // in the window before, of a SlidingWindow
	at     time.Time // of used; the begin of the window

	began  time.Time // of the block
	until  time.Time // end of the block
	block  time.Duration
	early  int  // requests inside the block
	banned bool // the block is a ban

	late Told // what Tell: Late tells next
}

// Told is what headers tell of a limit.
type Told struct {
	Limit     *Limit
	Capacity  float64
	Used      float64
	Remaining float64
	// Reset is how long until all of it is left: until a bucket is full, a window
	// ends, a sliding window remembers nothing. Who waits for it is never early.
	Reset time.Duration
}

// End is the instant of the reset, in whole seconds, rounded up, for headers
// that tell instants.
func (t Told) End(now time.Time) time.Time {
	return now.Add(t.Reset + time.Second - 1).Truncate(time.Second)
}

// Ask tells how long a request of this cost must wait, 0 if it may go now.
// A request that never fits waits for ever, math.MaxInt64. Of a
// Concurrency limit nobody knows how long: it says 1 ns.
func (m *Meter) Ask(l *Limit, now time.Time, cost float64) time.Duration {
	if now.Before(m.until) {
		return m.until.Sub(now)
	}
	m.turn(l, now)
	if m.fits(l, now, cost) {
		return 0
	}
	switch {
	case l.Kind == Concurrency:
		return 1
	case cost > l.Capacity:
		return math.MaxInt64
	}
	switch l.Kind {
	case TokenBucket, LeakyBucket:
		return max(seconds((m.used+cost-l.Capacity)/l.Refill), 1)
	case SlidingWindow:
		return max(m.slide(l, now, cost), 1)
	}
	return m.at.Add(l.span()).Sub(now)
}

// Blocked tells whether a penalty, not the count, closes the meter, and
// whether that is a ban.
func (m *Meter) Blocked(now time.Time) (blocked, banned bool) {
	blocked = now.Before(m.until)
	return blocked, blocked && m.banned
}

// Spend takes cost; Ask has said 0. A cost below 0 is given back.
func (m *Meter) Spend(l *Limit, now time.Time, cost float64) {
	m.turn(l, now)
	m.used = max(m.used+cost, 0)
	m.block, m.early, m.banned = 0, 0, false
}

// Refuse notes that a request was turned away which would have had to wait,
// and returns how long its caller is told to stay away.
func (m *Meter) Refuse(l *Limit, now time.Time, wait time.Duration) time.Duration {
	p := l.Penalty
	if p.First <= 0 {
		return wait
	}
	most := p.Max
	if most == 0 {
		most = 4 * p.First
	}
	switch {
	case !now.Before(m.until):
		m.block = max(m.block, p.First)
		m.began, m.until = now, now.Add(m.block)
	case now.Sub(m.began) < p.Grace || m.banned:
	default:
		m.early++
		m.block = min(2*m.block, most)
		if m.banned = p.BanAfter > 0 && m.early >= p.BanAfter; m.banned {
			if m.block = p.BanFor; m.block == 0 {
				m.block = time.Hour
			}
		}
		m.began, m.until = now, now.Add(m.block)
	}
	return m.until.Sub(now)
}

// Release ends a request that was counted while it ran.
func (m *Meter) Release(l *Limit, cost float64) {
	if l.Kind == Concurrency {
		m.used = max(m.used-cost, 0)
	}
}

// Told returns what the headers say now, true or not; ok is false when they
// say nothing.
func (m *Meter) Told(l *Limit, now time.Time) (t Told, ok bool) {
	m.turn(l, now)
	used := m.used
	if l.Kind == SlidingWindow {
		used += m.before * m.share(l, now)
	}
	t = Told{Limit: l, Capacity: l.Capacity, Used: used, Remaining: max(l.Capacity-used, 0), Reset: m.reset(l, now)}
	if now.Before(m.until) { // a penalty closes it, whatever the count says
		t.Used, t.Remaining, t.Reset = l.Capacity, 0, max(t.Reset, m.until.Sub(now))
	}
	switch l.Tell {
	case Missing:
		return Told{}, false
	case Late:
		m.late, t = t, m.late
		return t, t.Limit != nil
	case Lying:
		t.Used, t.Remaining, t.Reset = 0, l.Capacity, 0
	}
	return t, true
}

// turn brings the meter to now: buckets leak, windows begin.
func (m *Meter) turn(l *Limit, now time.Time) {
	switch l.Kind {
	case TokenBucket, LeakyBucket:
		if gone := now.Sub(m.at); gone > 0 {
			m.used = max(m.used-gone.Seconds()*l.Refill, 0)
			m.at = now
		}
	case FixedWindow, SlidingWindow, Daily:
		begin := l.begin(now)
		if !begin.After(m.at) {
			return
		}
		if begin.Sub(m.at) == l.span() {
			m.before = m.used
		} else {
			m.before = 0
		}
		m.used, m.at = 0, begin
	}
}

func (m *Meter) fits(l *Limit, now time.Time, cost float64) bool {
	used := m.used
	if l.Kind == SlidingWindow {
		used += m.before * m.share(l, now)
	}
	// Leaking by parts of a second adds up to a little less than a whole.
	const rounding = 1e-10
	return used+cost <= l.Capacity+rounding
}

// share is how much of the window before still lies in a window that ends now.
func (m *Meter) share(l *Limit, now time.Time) float64 {
	return 1 - float64(now.Sub(m.at))/float64(l.span())
}

// slide is how long until the window before weighs little enough.
func (m *Meter) slide(l *Limit, now time.Time, cost float64) time.Duration {
	gone, w := now.Sub(m.at), float64(l.span())
	switch room := l.Capacity - cost; {
	case room < 0:
		return math.MaxInt64
	case m.used <= room:
		return time.Duration(math.Ceil(w*(1-(room-m.used)/m.before))) - gone
	default: // the present window will be the one before
		return time.Duration(math.Ceil(w+w*(1-room/m.used))) - gone
	}
}

func (m *Meter) reset(l *Limit, now time.Time) time.Duration {
	switch l.Kind {
	case TokenBucket, LeakyBucket:
		return seconds(m.used / l.Refill)
	case Concurrency:
		return 0
	case SlidingWindow:
		if m.used > 0 { // it weighs, less and less, until the next window ends
			return m.at.Add(2 * l.span()).Sub(now)
		}
	}
	return m.at.Add(l.span()).Sub(now)
}

// seconds bounds what a tiny rate would make overflow.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(min(s, 1e9) * float64(time.Second)))
}
