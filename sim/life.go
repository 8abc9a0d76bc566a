package sim

import (
	"net/http"
	"net/url"
	"time"
)

// Life is the states through which a resource goes by itself, by being asked
// for, and by what is done to it:
//
//	var printed = sim.Life{
//		{From: "pending", To: "complete", After: 2 * time.Second, Polls: 3},
//		{From: "pending", To: "canceled", On: "cancel"},
//		{From: "complete", To: "expired", After: time.Hour},
//	}
//
// It is data without state: a Stage is where one resource stands.
type Life []Move

// Move is one way from a state to another. After and Polls may be given both:
// whichever comes first moves.
type Move struct {
	From, To string
	// After is how long after the resource came to From.
	After time.Duration
	// Polls is at how many looks since then: with 3 the third look moves it, and
	// sees it moved.
	Polls int
	// On is the event that moves it, such as "cancel".
	On string
}

// Stage is where a resource is in its Life. Keep it in the resource, and the
// resource in its table by pointer.
type Stage struct {
	State string
	// Since is when it came there, on the clock of the case.
	Since time.Time
	polls int
	turn  int // counts moves, so that a plan of an earlier state is void
	told  func(from string)
}

// Begin puts the stage in its first state and plans what time does to it. told,
// if not nil, is called after every move with the state before it: the place
// to emit an event.
func (l Life) Begin(x *Exchange, s *Stage, first string, told func(from string)) {
	*s = Stage{turn: s.turn, told: told}
	l.enter(x, s, first, x.Now())
}

// Poll is a look at the resource; it may move it.
func (l Life) Poll(x *Exchange, s *Stage) {
	if x.past > 0 {
		return // a stale answer comes from a cache, which does not ask
	}
	s.polls++
	for _, m := range l {
		if m.From == s.State && m.Polls > 0 && s.polls >= m.Polls {
			l.move(x, s, m.To, x.Now())
			return
		}
	}
}

// Fire moves the resource by an event, and tells whether its state allows it;
// if not, it is too late, or too early, and the answer is a Conflict.
func (l Life) Fire(x *Exchange, s *Stage, event string) bool {
	for _, m := range l {
		if m.From == s.State && m.On == event && event != "" {
			l.move(x, s, m.To, x.Now())
			return true
		}
	}
	return false
}

func (l Life) move(x *Exchange, s *Stage, to string, now time.Time) {
	from := s.State
	l.enter(x, s, to, now)
	if s.told != nil {
		s.told(from)
	}
}

func (l Life) enter(x *Exchange, s *Stage, state string, now time.Time) {
	s.State, s.Since, s.polls = state, now, 0
	s.turn++
	turn := s.turn
	for _, m := range l {
		if m.From == state && m.After > 0 {
			x.After(m.After, func(now time.Time) {
				if s.turn == turn {
					l.move(x, s, m.To, now)
				}
			})
		}
	}
}

// After runs do when d has passed on the clock of the case, alone in it as an
// operation is. A case that was reset runs it no more.
func (x *Exchange) After(d time.Duration, do func(now time.Time)) {
	c, era := x.own, x.own.era
	x.planning = true
	c.clock.after(d, func() {
		now := c.clock.now()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.era == era {
			c.turn++
			do(now)
		}
	})
}

// slim lets go of what only the answer needed: what After has planned may hold
// x for as long as a resource lives.
func (x *Exchange) slim() {
	r := x.Request
	x.Request = &http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path}, Header: http.Header{}, Host: r.Host, TLS: r.TLS}
	x.w, x.Body, x.form, x.quota = nil, nil, nil, nil
}
