package postgres

import (
	"slices"
	"sync"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// leases remembers the calls that this store has handed out: who has one knows
// what it is, since nobody else may change it, and need not read it again. What
// is forgotten is read from the database. The zero value is ready.
type leases struct {
	mu    sync.Mutex
	held  map[hold]*lease
	count map[slot]int
	// doubt are tokens of claims that may have been committed, though nobody
	// got the calls.
	doubt []int64
}

// hold is what a worker names a claim by.
type hold struct {
	id    string
	token int64
}

// slot is what one worker has of one gate.
type slot struct {
	worker string
	gate   int64
}

type lease struct {
	slot
	row   *row
	until time.Time
	// doubt tells that an earlier settlement may have been committed.
	doubt bool
}

func (l *leases) add(worker string, until time.Time, r *row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held, l.count = map[hold]*lease{}, map[slot]int{}
	}
	e := &lease{slot: slot{worker, r.gate}, row: r, until: until}
	l.held[hold{r.ID, r.token}] = e
	l.count[e.slot]++
}

// get returns a copy of what is remembered of a claim.
func (l *leases) get(h hold) (r *row, doubt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.held[h]
	if e == nil {
		return nil, false
	}
	c := *e.row
	c.Trail = append([]queue.Attempt(nil), c.Trail...)
	return &c, e.doubt
}

func (l *leases) drop(holds ...hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		l.forget(h)
	}
}

// forget is called with the lock.
func (l *leases) forget(h hold) {
	e := l.held[h]
	if e == nil {
		return
	}
	delete(l.held, h)
	if l.count[e.slot]--; l.count[e.slot] == 0 {
		delete(l.count, e.slot)
	}
}

func (l *leases) renew(h hold, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.held[h]; e != nil {
		e.until = until
	}
}

// doubtful marks claims whose settlement may have been committed.
func (l *leases) doubtful(holds []hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		if e := l.held[h]; e != nil {
			e.doubt = true
		}
	}
}

// running tells how many calls of each gate a worker has. Leases that have run
// out are forgotten: anybody may have the calls by now.
func (l *leases) running(worker string, now time.Time) map[int64]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h, e := range l.held {
		if !e.until.After(now) {
			l.forget(h)
		}
	}
	n := map[int64]int{}
	for s, c := range l.count {
		if s.worker == worker {
			n[s.gate] = c
		}
	}
	return n
}

// suspect remembers the token of a claim whose end is open; suspects returns them.
func (l *leases) suspect(token int64) {
	if token == 0 {
		return // it did not get so far
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubt = append(l.doubt, token)
}

func (l *leases) suspects() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int64(nil), l.doubt...)
}

// cleared forgets tokens whose calls were handed back. Two claims at once may
// have handed back the same ones.
func (l *leases) cleared(tokens []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubt = slices.DeleteFunc(l.doubt, func(t int64) bool { return slices.Contains(tokens, t) })
}
