package check_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

var errOpen = errors.New("the breaker is open")

// gate is what the operations of a session share: what is open, what was told,
// the breaker, the budget, the turns of tenants.
type gate struct {
	habits habits

	mu     sync.Mutex
	open   int
	until  time.Time     // closed for all
	every  time.Duration // between two requests, once throttled
	next   time.Time
	queue  []*waiter
	served map[string]int
	timer  *time.Timer

	failures int
	tripped  time.Time    // zero: the breaker is closed
	asked    atomic.Int64 // operations that are at work
	probes   int
	tokens   int
}

type waiter struct {
	tenant string
	let    chan struct{}
}

func (g *gate) init(h habits) {
	g.habits, g.tokens, g.served = h, h.Tokens, map[string]int{}
}

// enter waits for the turn of the tenant.
func (g *gate) enter(ctx context.Context, tenant string) error {
	g.mu.Lock()
	if !g.breakerLets() {
		g.mu.Unlock()
		return errOpen
	}
	w := &waiter{tenant, make(chan struct{})}
	g.queue = append(g.queue, w)
	g.dispatch()
	g.mu.Unlock()
	select {
	case <-w.let:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, q := range g.queue {
		if q == w {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			return ctx.Err()
		}
	}
	return nil // it was let in meanwhile
}

// breakerLets tells whether the breaker lets a request through, and counts probes.
func (g *gate) breakerLets() bool {
	if g.habits.Trip == 0 || g.tripped.IsZero() {
		return true
	}
	if time.Since(g.tripped) < time.Second || g.probes >= g.habits.Probes {
		return g.habits.Leaks && g.probes == 0 && g.beside()
	}
	g.probes++
	return true
}

// beside tells whether an operation is not alone. It is called with the lock.
func (g *gate) beside() bool {
	g.mu.Unlock()
	time.Sleep(time.Millisecond) // of the bubble, so that all are here
	g.mu.Lock()
	return g.asked.Load() > 1
}

// dispatch lets in whom it may.
func (g *gate) dispatch() {
	for len(g.queue) > 0 && (g.habits.Open == 0 || g.open < g.habits.Open) {
		now := time.Now()
		at := g.until
		if g.next.After(at) {
			at = g.next
		}
		if at.After(now) {
			if g.timer != nil {
				g.timer.Stop()
			}
			g.timer = time.AfterFunc(at.Sub(now), func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.dispatch()
			})
			return
		}
		i := g.turn()
		w := g.queue[i]
		g.queue = append(g.queue[:i], g.queue[i+1:]...)
		g.served[w.tenant]++
		g.open++
		g.next = now.Add(g.every)
		close(w.let)
	}
}

// turn is the place in the queue of who comes next.
func (g *gate) turn() int {
	best := 0
	for i, w := range g.queue {
		if g.habits.Fair && g.served[w.tenant] < g.served[g.queue[best].tenant] {
			best = i
		}
	}
	return best
}

// close holds everybody; after a throttle they leave one by one, and slower.
func (g *gate) close(d time.Duration, throttled bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := time.Until(g.until)
	if at := time.Now().Add(d); at.After(g.until) {
		g.until = at
	}
	if throttled && was <= 0 { // those that were on their way count as one
		g.every = max(130*time.Millisecond, g.every*8/5)
	}
}

// leave ends a request and tells the breaker what it brought.
func (g *gate) leave(what got) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	status := what.status()
	switch {
	case status == 0 || status >= 500:
		g.failures++
		if g.habits.Trip > 0 && g.failures >= g.habits.Trip {
			g.tripped, g.probes = time.Now(), 0
		}
	case status/100 == 2:
		if g.failures = 0; g.habits.Closes {
			g.tripped, g.probes = time.Time{}, 0
		}
		if g.habits.Tokens > 0 {
			g.tokens = min(g.tokens+1, g.habits.Tokens)
		}
	}
	g.dispatch()
}

// retry takes a token of the budget.
func (g *gate) retry() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.habits.Tokens == 0 {
		return true
	}
	if g.tokens == 0 {
		return false
	}
	g.tokens--
	return true
}
