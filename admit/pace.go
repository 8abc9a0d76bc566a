package admit

import (
	"math"
	"time"

	"github.com/heedproject/heed/policy"
)

// How fast a rate grows for those who wait, relative to itself and per second.
// docs/decisions/learned-rate.md has the measurements behind all constants.
const (
	exploreGrowth = 1.3   // while nothing was throttled
	rampGrowth    = 3.0   // after an outage, of a key that had no pace before it
	probeGrowth   = 0.003 // of a learned rate: a throttle that it provokes costs up to a second
	regrowth      = 0.02  // of a configured rate that was lowered: it was published, so it may be right

	probeTime  = 10 * time.Second // without a throttle, in which the last two double
	maxGrowth  = 0.25             // to which they speed up
	maxDamping = 16.0             // how many times slower they become; at 64 a limit raised tenfold was not found
	maxRaise   = 2.0              // by which one request may raise a rate: slots may be an hour apart
)

// Where a rate settles.
const (
	keepBelow = 0.985 // of the rate that was measured leaves
	// keepApart widens the space between requests at a configured rate: at the
	// very rate the last one of each window comes too early as often as not.
	keepApart = 1.005
	stepDown  = 0.95 // of a configured rate is what a throttle leaves
	maxBelow  = 20.0 // times lower than configured it is made at most
	minRate   = 1.0 / 3600

	minSample = 10                     // requests that got through, to measure a rate by
	burstTime = 100 * time.Millisecond // of requests at the server's rate: the burst that is assumed of it
	catchUp   = 25 * time.Millisecond  // of lateness that is made good while no throttle has told the rate
)

// pace spaces requests evenly at a rate, configured or learned, as GCRA does: next
// is its theoretical arrival time, lag its burst tolerance. A rate of 0 lets
// everything through.
//
// The rate grows while somebody waits for it, see grow, and is set anew by each
// throttle, see cut, which measures it in the history of what left.
type pace struct {
	configured float64 // by the policy; 0: none
	tempo
	next   time.Time     // the next free slot
	step   time.Duration // between two slots
	stepOf float64       // the rate that step was reckoned for

	grown  time.Time // when the rate last grew
	wanted time.Time // since when somebody has waited for the next slot; zero: nobody has
	goal   float64   // ramping: beyond it the key is not paced any more

	history history
	busy    time.Duration // in which requests left, since the last throttle
	left    time.Time     // when the last one did
	event   event         // the last throttle, by which tempo was set
}

// tempo is what a throttle changes.
type tempo struct {
	rate    float64 // in force; 0: none
	mode    mode
	lag     time.Duration // how far the schedule may fall behind and catch up
	probed  time.Duration // for how long the rate has grown since the last throttle
	damping float64       // how many times slower it does, since throttles confirmed what was known
	// estimate is the limit as the last throttle told it: the configured rate
	// that was too high, or the learned one that is not.
	estimate  float64
	throttled bool   // a throttle has taught something
	accepted  uint64 // requests that got through until the last that did
}

// event is what TCP and QUIC call a congestion event (RFC 9002 §7.3.2): a throttle
// with all others of requests that left before the key was closed.
type event struct {
	at       time.Time     // when the last of the throttled requests left
	from     int64         // the first slot of the history that counts
	accepted uint64        // requests that got through until at
	busy     time.Duration // in which requests left, since the throttle before
	was      tempo         // before it
	rate     float64       // at which requests left before it
}

// mode is how a pace came by its rate.
type mode uint8

const (
	unpaced    mode = iota
	configured      // by the policy
	exploring       // from Learn.Start upward, nothing throttled yet
	ramping         // after an outage, up to what it was
	measured        // by throttles, or told by a quota
	ignorant        // none: learning is switched off
)

func (m mode) String() string {
	return [...]string{"none", "configured", "exploring", "ramping", "learned", "none"}[m]
}

// growth is how fast a rate grows that was found so.
func (m mode) growth() float64 {
	return [...]float64{configured: regrowth, exploring: exploreGrowth, ramping: rampGrowth, measured: probeGrowth, ignorant: 0}[m]
}

func (p *pace) init(l *policy.Limits) {
	switch {
	case l.Rate > 0:
		p.configured, p.rate, p.mode = l.Rate, l.Rate, configured
		// The server counts arrivals, not departures: keep back what the
		// network and the scheduler may squeeze together within 25 ms.
		burst := float64(l.Burst)
		burst -= min(burst/2, math.Ceil(min(burst/4, l.Rate/40)))
		p.lag = seconds((max(burst, 1) - 1) / l.Rate)
	case l.Learn.Off:
		p.mode = ignorant
	case l.Learn.Start > 0:
		p.rate, p.mode, p.lag = l.Learn.Start, exploring, catchUp
	}
	p.damping = 1
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1e9) * float64(time.Second))
}

// late is for how long the next slot has been free, as far as the schedule may
// fall behind; negative: it will be so much later, and somebody waits for it.
func (p *pace) late(now time.Time) time.Duration {
	if p.rate == 0 {
		return 0
	}
	if p.wanted.IsZero() && now.Before(p.next) {
		p.wanted = now
	}
	return min(now.Sub(p.next), p.lag)
}

// take takes the slot that has been free for late.
func (p *pace) take(late time.Duration, now time.Time, demand bool) {
	if p.rate == 0 {
		return
	}
	p.grow(now, demand)
	if p.rate == 0 { // it has outgrown its goal
		return
	}
	if p.rate != p.stepOf {
		p.step, p.stepOf = p.space(), p.rate
	}
	p.next = now.Add(p.step - late)
}

// space is the time between two requests.
func (p *pace) space() time.Duration {
	if p.mode == configured {
		return seconds(keepApart / p.rate)
	}
	return seconds(1 / p.rate)
}

// grow raises a rate with the time for which it was the limit. Time in which
// nobody waited proves nothing about a higher one.
func (p *pace) grow(now time.Time, demand bool) {
	dt := p.sought(now, demand)
	if p.mode == configured && p.rate == p.configured || dt == 0 {
		return
	}
	g := p.mode.growth()
	if p.mode == measured || p.mode == configured { // by probing: the longer without a throttle, the bolder
		p.probed += dt
		t := float64(p.probed) / float64(probeTime) / p.damping
		g = min(g/p.damping*(1+t*t), maxGrowth)
	}
	p.rate *= min(1+g*dt.Seconds(), maxRaise)
	if p.rate > 1.1*p.estimate { // it bears more than it did
		p.damping = 1
	}
	switch {
	case p.mode == configured:
		p.rate = min(p.rate, p.configured)
	case p.mode == ramping && p.rate > p.goal:
		p.rate, p.mode = 0, unpaced
	}
}

// sought is for how long, since the rate last grew, it has been the limit.
func (p *pace) sought(now time.Time, demand bool) time.Duration {
	from, wanted := p.grown, p.wanted
	p.grown, p.wanted = now, time.Time{}
	if from.IsZero() {
		return 0
	}
	dt := time.Duration(0)
	if demand { // how long they have waited is not known
		dt = min(now.Sub(from), time.Second)
	}
	if !wanted.IsZero() {
		if wanted.After(from) {
			from = wanted
		}
		dt = max(dt, now.Sub(from))
	}
	return max(dt, 0)
}

// follow takes over the rate at which a quota comes back.
func (p *pace) follow(rate float64) {
	p.rate, p.mode, p.lag, p.probed, p.estimate = rate, measured, catchUp, 0, rate
}

// note counts a request that leaves now. A pause counts for no longer than it
// takes to save up the burst that measure assumes: beyond that the server had
// nothing to add, whatever its rate.
func (p *pace) note(now time.Time) {
	if p.mode == ignorant {
		return
	}
	p.history.add(now)
	if !p.left.IsZero() {
		p.busy += min(max(now.Sub(p.left), 0), max(burstTime, 2*p.step))
	}
	p.left = now
}

// cut learns from a throttle of the request that left at t, which closes the
// key.
func (p *pace) cut(t time.Time) {
	p.history.drop(t)
	p.event = event{at: t, from: p.history.start, accepted: p.history.until(t),
		busy: p.busy, was: p.tempo, rate: p.current()}
	if p.teaches() {
		p.lower()
		p.history.restart()
		p.busy = 0
	}
}

// correct corrects the last cut by a throttle of another request that left, at t,
// before the key was closed. Requests of a burst do not arrive in the order in
// which they left: how many of them the server took shows when all its refusals
// have come.
func (p *pace) correct(t time.Time) {
	p.history.drop(t)
	e := &p.event
	if slotOf(t) < e.from || !p.history.holds(slotOf(e.at)) {
		return
	}
	if t.After(e.at) {
		e.at = t
	}
	e.accepted = p.history.until(e.at)
	p.tempo = e.was
	if p.teaches() {
		p.lower()
		return
	}
	p.history.start = max(e.from, p.history.oldest())
	p.busy += e.busy
	p.event = event{}
}

// teaches tells whether the event says anything of the rate.
func (p *pace) teaches() bool {
	switch {
	case p.throttled && p.event.accepted <= p.accepted:
		return false // nothing got through since the last: the key is still closed
	case p.mode == unpaced && p.few():
		return false // the hold is all that a key with so little traffic needs
	}
	return p.mode != ignorant
}

// few tells that too few requests got through since the last throttle to
// measure a rate by.
func (p *pace) few() bool { return p.event.accepted < p.accepted+minSample }

// lower sets the tempo by the event.
func (p *pace) lower() {
	if p.mode == configured {
		p.yield()
	} else {
		p.learn()
	}
	p.probed, p.throttled, p.accepted = 0, true, p.event.accepted
}

// yield lowers a configured rate: somebody else uses the key too, or the limit
// that was published is not the real one.
func (p *pace) yield() {
	if near(p.rate, p.estimate, 0.03) { // less than a step: a descent confirms nothing
		p.damp()
	}
	p.estimate = p.rate
	p.rate = max(p.rate*stepDown, p.configured/maxBelow)
}

// learn takes over the rate that the event measures. Few requests prove little:
// when the key opened, those that left together may have been what the server
// refused. So they lower a rate that was learned, or at which requests may catch
// up, by a fifth at most, and any other to a quarter.
func (p *pace) learn() {
	left := p.event.rate
	r, lag := max(min(p.measure(), left), minRate), burstTime/2
	switch {
	case p.few() && (p.mode == measured || p.lag > 0):
		r, lag = max(r, 0.8*left), 0
	case p.few():
		r = max(r, left/4)
	}
	if p.mode == measured {
		if near(r, p.rate, 0.1) {
			p.damp()
		} else {
			p.damping = 1
		}
	}
	p.rate, p.mode, p.lag = keepBelow*r, measured, lag
	p.estimate = p.rate
}

// near tells that a rate is within a part of what is known.
func near(rate, known, within float64) bool { return math.Abs(rate-known) < within*known }

// damp slows probing upward down: a throttle has confirmed what is known.
func (p *pace) damp() { p.damping = min(2*p.damping, maxDamping) }

// current is the rate at which requests leave.
func (p *pace) current() float64 {
	if p.rate > 0 {
		return p.rate
	}
	return p.history.mean()
}

// measure infers the rate of the server from a throttle. Whatever limiter it
// uses, between any earlier instant and this one it took no more than a burst
// plus rate times time; at the throttle that bound is reached for some instant.
// The burst is not known; a tenth of a second's worth, and two requests at
// least, is assumed, until a second throttle brackets the rate: at the first one
// nothing was left, so that between the two there is no burst to guess.
func (p *pace) measure() float64 {
	e := &p.event
	excess := func(r float64) float64 {
		x := p.history.excess(e.from, e.at, r) - max(2, r*burstTime.Seconds())
		if p.throttled {
			x = max(x, float64(e.accepted)-float64(p.accepted)-r*e.busy.Seconds())
		}
		return x
	}
	lo, hi := minRate, 1e6
	for range 60 { // of halving, on the scale of logarithms, as far as a float64 goes
		mid := math.Sqrt(lo * hi)
		if excess(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// resume goes on after the key was closed until t, for so long that credit
// worth of requests may have been saved up.
func (p *pace) resume(t time.Time, credit time.Duration) {
	p.grown = t
	if p.mode == unpaced {
		p.ramp()
	}
	if p.mode != configured && !p.next.After(t) {
		p.next = t.Add(-min(p.lag, credit))
	}
}

// ramp lets the backlog of a key without a pace out at a growing rate, from half
// of what left before to four times that, and not all of it at the instant the
// key opens.
func (p *pace) ramp() {
	was := max(p.history.mean(), 10)
	p.rate, p.goal, p.mode, p.lag = was/2, 4*was, ramping, 0
}
