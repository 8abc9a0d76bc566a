package observe

import "time"

// span is how many seconds a ring remembers: the five minutes and one that
// the alerts compare, and some for events that come late.
const span = 384

// sums is what happened in a stretch of time.
type sums struct {
	attempts uint32
	sent     uint32 // requests on the wire
	failed   uint32 // attempts that speak of an outage
	retries  uint32
	calls    uint32
	served   uint32 // calls that got what they were sent for
	lost     uint32 // calls that did not, the cancelled ones aside
}

func (s *sums) add(t sums) {
	s.attempts += t.attempts
	s.sent += t.sent
	s.failed += t.failed
	s.retries += t.retries
	s.calls += t.calls
	s.served += t.served
	s.lost += t.lost
}

// share is part of whole, 0 of nothing.
func share(part, whole uint32) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// ring holds the sums of the last seconds. The zero value is empty.
type ring struct {
	cells [span]struct {
		sec int64
		sums
	}
}

// at returns the sums of the second of t, or nil if that is forgotten.
func (r *ring) at(t time.Time) *sums {
	sec := t.Unix()
	c := &r.cells[uint64(sec)%span]
	if c.sec > sec {
		return nil
	}
	if c.sec < sec {
		c.sec, c.sums = sec, sums{}
	}
	return &c.sums
}

// between adds up the whole seconds from the one of from, up to and without
// the one of to.
func (r *ring) between(from, to time.Time) sums {
	var total sums
	for sec := from.Unix(); sec < to.Unix(); sec++ {
		if c := &r.cells[uint64(sec)%span]; c.sec == sec {
			total.add(c.sums)
		}
	}
	return total
}
