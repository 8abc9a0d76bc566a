package sim

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Clock says how the time of a case passes. The zero value: as on the wall.
type Clock struct {
	// Scale makes time pass so many times as fast. 0 means 1.
	Scale float64
	// Stepped time stands still until Case.Advance, or POST /_sim/clock, moves it.
	Stepped bool
	// Start is what the clock shows when the case begins. Zero: the wall's time.
	Start time.Time
}

// clock is the one clock of a case: buckets, windows, tokens, transitions,
// waits and the dates in headers are measured on it.
type clock struct {
	scale float64 // 0: stepped
	// plain clocks show the wall's time, which needs no lock.
	plain atomic.Bool

	mu     sync.Mutex
	shown  time.Time // what the clock showed
	wall   time.Time // at this instant of the wall
	timers timers
	order  int
	wake   *time.Timer
	ended  bool
	over   chan struct{} // closed when it ended
}

// latest is the last instant that a clock shows; the journal keeps instants in
// nanoseconds, which end in 2262.
var latest = time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC)

func (k *clock) start(c Clock) {
	k.wall, k.over = time.Now(), make(chan struct{})
	k.shown = c.Start
	if k.scale = c.Scale; k.scale == 0 {
		k.scale = 1
	}
	if c.Start.IsZero() {
		k.shown = k.wall
	}
	if c.Stepped {
		k.scale, k.shown = 0, k.shown.Round(0)
	}
	k.plain.Store(c.Start.IsZero() && k.scale == 1)
}

func (k *clock) now() time.Time {
	if k.plain.Load() {
		return time.Now()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.show()
}

// stands tells whether only advance moves it.
func (k *clock) stands() bool { return k.scale == 0 }

func (k *clock) show() time.Time {
	if k.scale == 0 {
		return k.shown
	}
	gone := float64(time.Since(k.wall)) * k.scale
	if gone >= float64(latest.Sub(k.shown)) {
		return latest
	}
	return k.shown.Add(time.Duration(gone))
}

// timer is something to do at an instant.
type timer struct {
	at    time.Time
	order int // of two at the same instant
	do    func()
	index int // in the heap; -1: not in it
}

// after runs do when d has passed; stop takes it back.
func (k *clock) after(d time.Duration, do func()) (stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := &timer{at: k.show().Add(d), order: k.order, do: do}
	if k.ended {
		return func() {}
	}
	k.order++
	heap.Push(&k.timers, t)
	k.arm()
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.index >= 0 && !k.ended {
			heap.Remove(&k.timers, t.index)
		}
	}
}

// arm sets the wall's timer to the first of ours.
func (k *clock) arm() {
	if k.scale == 0 || k.ended || len(k.timers) == 0 {
		return
	}
	d := time.Duration(float64(k.timers[0].at.Sub(k.show())) / k.scale)
	if k.wake == nil {
		k.wake = time.AfterFunc(d, k.run)
		return
	}
	k.wake.Reset(d)
}

// run does what is due.
func (k *clock) run() {
	k.mu.Lock()
	for len(k.timers) > 0 && !k.ended && !k.timers[0].at.After(k.show()) {
		t := heap.Pop(&k.timers).(*timer)
		k.mu.Unlock()
		t.do()
		k.mu.Lock()
	}
	k.arm()
	k.mu.Unlock()
}

// advance moves the clock on by d and does, one after the other, what falls
// due on the way, each at its own instant.
func (k *clock) advance(d time.Duration) time.Time {
	k.mu.Lock()
	end := k.show().Add(d)
	if end.After(latest) {
		end = latest
	}
	for len(k.timers) > 0 && !k.ended && !k.timers[0].at.After(end) {
		t := heap.Pop(&k.timers).(*timer)
		if t.at.After(k.show()) {
			k.set(t.at)
		}
		k.mu.Unlock()
		t.do()
		k.mu.Lock()
	}
	if end.After(k.show()) {
		k.set(end)
	}
	k.arm()
	now := k.show()
	k.mu.Unlock()
	return now
}

func (k *clock) set(t time.Time) {
	k.shown, k.wall = t, time.Now()
	k.plain.Store(false)
}

// end forgets all timers, and whoever rests is woken.
func (k *clock) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		close(k.over)
	}
	k.ended, k.timers = true, nil
	if k.wake != nil {
		k.wake.Stop()
	}
}

// rest waits for d and tells whether the caller, and the case, are still there.
func (k *clock) rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	over := make(chan struct{})
	stop := k.after(d, func() { close(over) })
	select {
	case <-over:
		return true
	case <-k.over:
		return false
	case <-ctx.Done():
		stop()
		return false
	}
}

// timers is a heap, the earliest first.
type timers []*timer

func (t timers) Len() int { return len(t) }

func (t timers) Less(i, j int) bool {
	if t[i].at.Equal(t[j].at) {
		return t[i].order < t[j].order
	}
	return t[i].at.Before(t[j].at)
}

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

// Push implements heap.Interface.
func (t *timers) Push(v any) {
	one := v.(*timer)
	one.index = len(*t)
	*t = append(*t, one)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := len(*t) - 1
	one := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	one.index = -1
	return one
}
