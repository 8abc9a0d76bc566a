package admit

import (
	"math"
	"time"

	"github.com/heedproject/heed/policy"
)

// The constants of learning. They say how a rate that nobody told is found;
// docs/decisions/learned-rate.md has the reasoning and the measurements.
const (
	exploreGrowth = 1.3   // relative growth per second while nothing was throttled
	rampGrowth    = 3.0   // the same after an outage of a key that is not paced
	keepBelow     = 0.985 // of a rate that was measured
	keepApart     = 1.005 // of the space between requests at a rate that was told
	probeGrowth   = 0.003
	regrowth      = 0.02             // of a rate that was configured and is in doubt
	most          = 2.0              // by which one request may raise a rate
	calmest       = 16.0             // times slower than probeGrowth or regrowth
	probeTime     = 10 * time.Second // after which probing upward speeds up
	burstTime     = 100 * time.Millisecond
	catchUp       = 25 * time.Millisecond // of lateness that a learned pace makes good
	slowest       = 1.0 / 3600            // requests per second
	enough        = 10                    // requests that got through, to measure a rate by
)

// pace spaces requests evenly at a rate: configured, or learned. A rate of 0
// lets everything through.
type pace struct {
	told float64 // configured; 0: none
	tempo
	next time.Time     // the next free slot
	step time.Duration // between two slots at rate by
	by   float64

	grown  time.Time // when the rate last grew
	wanted time.Time // since when somebody has waited for the next slot; zero: nobody has
	goal   float64   // ramping: beyond it the key is not paced any more

	history history
	busy    time.Duration // in which requests left, since the last throttle
	left    time.Time     // when the last one did
	event   event         // the throttle that tempo was last judged by
}

// tempo is what a throttle changes.
type tempo struct {
	rate    float64 // in force
	mode    mode
	lag     time.Duration // how far the schedule may fall behind and catch up: the burst
	growing time.Duration // how long a learned rate has grown since it was measured
	calm    float64       // how much slower probing upward has become
	tried   float64       // the rate in force at the last throttle
	last    cutAt         // the last throttle
}

// cutAt is what is remembered of a throttle.
type cutAt struct {
	seq  uint64 // accepted until then
	seen bool
}

// event is a throttle and those that belong to it, by which the tempo is judged.
type event struct {
	at       time.Time     // when the last of these requests left
	from     int64         // the first slot of the history that counts
	accepted uint64        // requests until at
	busy     time.Duration // in which requests left, since the throttle before
	was      tempo
	rate     float64 // requests per second that left before it
}

// mode is how a pace came by its rate.
type mode uint8

const (
	unpaced   mode = iota
	fixed          // configured
	exploring      // from Learn.Start upward, nothing throttled yet
	ramping        // after an outage, up to what it was
	measured       // by throttles
	ignorant       // learning is switched off
)

func (m mode) String() string {
	return [...]string{"none", "configured", "exploring", "ramping", "learned", "none"}[m]
}

// growth is the relative growth per second of a rate that is not known to be
// the limit.
func (m mode) growth() float64 {
	return [...]float64{fixed: regrowth, exploring: exploreGrowth, ramping: rampGrowth, measured: probeGrowth, ignorant: 0}[m]
}

func (p *pace) init(l *policy.Limits) {
	switch {
	case l.Rate > 0:
		p.told, p.rate, p.mode = l.Rate, l.Rate, fixed
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
	p.calm = 1
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1e9) * float64(time.Second))
}

// late is for how long the next slot has been free, as far as the schedule may
// fall behind; negative: it will be so much later.
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
	if p.rate != p.by && p.rate > 0 {
		p.step, p.by = p.space(), p.rate
	}
	if p.rate > 0 {
		p.next = now.Add(p.step - late)
	}
}

// space is the time between two requests.
func (p *pace) space() time.Duration {
	if p.mode == fixed {
		return seconds(keepApart / p.rate)
	}
	return seconds(1 / p.rate)
}

// grow raises a learned rate with the time for which it was the limit. Time
// in which nobody waited proves nothing about a higher rate.
func (p *pace) grow(now time.Time, demand bool) {
	dt := p.sought(now, demand)
	if p.mode == fixed && p.rate == p.told || dt == 0 {
		return
	}
	g := p.mode.growth()
	if p.mode == measured || p.mode == fixed {
		p.growing += dt
		t := float64(p.growing) / float64(probeTime) / p.calm
		g = min(g/p.calm*(1+t*t), 0.25)
	}
	p.rate *= min(1+g*dt.Seconds(), most)
	if p.rate > 1.1*p.tried { // it bears more than it did
		p.calm = 1
	}
	switch {
	case p.mode == fixed:
		p.rate = min(p.rate, p.told)
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

// follow takes over a rate that is known better.
func (p *pace) follow(rate float64) {
	p.rate, p.mode, p.lag, p.growing, p.tried = rate, measured, catchUp, 0, rate
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
	if p.judge() {
		p.history.restart()
		p.busy = 0
	}
}

// recut corrects the last cut by a throttle of another request that left, at t,
// before the key was closed. Requests of a burst do not arrive in the order in
// which they left: how many of them the server took shows when all its refusals
// have come.
func (p *pace) recut(t time.Time) {
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
	if !p.judge() {
		p.history.start = max(e.from, p.history.oldest())
		p.busy += e.busy
		p.event = event{}
	}
}

// judge sets the tempo by the event, and tells whether that teaches anything.
func (p *pace) judge() bool {
	e := &p.event
	little := e.accepted < p.last.seq+enough
	switch {
	case p.last.seen && e.accepted <= p.last.seq:
		return false // nothing got through since: the key is still closed, which tells nothing of its rate
	case p.mode == ignorant, p.mode == unpaced && little:
		return false // the hold is all that a key with so little traffic needs
	case p.mode == fixed: // somebody else uses the key too, or the published limit is not the real one
		p.settle(p.tried, p.rate, 0.03)
		p.tried = p.rate
		p.rate, p.growing = max(p.rate*0.95, p.told/20), 0
	default:
		p.learn(max(min(p.measure(), e.rate), slowest), little)
	}
	p.last = cutAt{seq: e.accepted, seen: true}
	return true
}

// learn takes over a rate that was measured. Too few requests to measure by
// prove little: when the key opened, those that left together may have been
// what the server refused.
func (p *pace) learn(r float64, little bool) {
	was, left := p.mode, p.event.rate
	lag := burstTime / 2
	switch {
	case little && (was == measured || p.lag > 0):
		r, lag = max(r, 0.8*left), 0
	case little:
		r = max(r, left/4)
	}
	if was == measured {
		p.settle(p.rate, r, 0.1)
	}
	p.rate, p.mode, p.growing, p.lag = keepBelow*r, measured, 0, lag
	p.tried = p.rate
}

// settle slows probing upward down where a throttle confirms what is known.
func (p *pace) settle(known, rate, within float64) {
	switch {
	case math.Abs(rate-known) < within*known:
		p.calm = min(2*p.calm, calmest)
	case p.mode == measured:
		p.calm = 1
	}
}

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
		if p.last.seen {
			x = max(x, float64(e.accepted)-float64(p.last.seq)-r*e.busy.Seconds())
		}
		return x
	}
	lo, hi := slowest, 1e6
	for range 60 {
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
	if p.mode != fixed && !p.next.After(t) {
		p.next = t.Add(-min(p.lag, credit))
	}
}

// ramp lets the backlog of a key without a pace out at a growing rate, and not
// all of it at the instant the key opens.
func (p *pace) ramp() {
	was := max(p.history.mean(), 10)
	p.rate, p.goal, p.mode, p.lag = was/2, 4*was, ramping, 0
}
