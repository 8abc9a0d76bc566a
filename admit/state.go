package admit

import "time"

// Snapshot is the state of a Gate, for people.
type Snapshot struct {
	Breaker     State
	OpenUntil   time.Time // zero: closed
	ClosedUntil time.Time // zero: not closed by a hint
	Rate        float64   // requests per second; 0: unpaced
	RateFrom    string    // configured, quota, learned, exploring, ramping or none
	InFlight    int
	Remaining   int64 // valid with HasQuota
	HasQuota    bool
	RetryTokens int
}

// Snapshot tells the state at now.
func (g *Gate) Snapshot(now time.Time) Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Snapshot{
		Breaker: g.breaker.state, Rate: g.pace.rate, RateFrom: g.pace.mode.String(),
		InFlight: g.inFlight, Remaining: g.quota.remaining, HasQuota: g.quota.known, RetryTokens: g.budget,
	}
	if s.Breaker != Closed {
		s.OpenUntil = g.breaker.until
		if !now.Before(g.breaker.until) {
			s.Breaker = HalfOpen // the next one who asks is the probe
		}
	}
	if g.hold.until.After(now) {
		s.ClosedUntil = g.hold.until
	}
	if g.byQuota() {
		s.Rate, s.RateFrom = g.quota.slope, "quota"
	}
	return s
}
