package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/heedproject/heed/internal/queue"
)

// maxGroup bounds a group commit: one transaction, and one fsync of the server,
// for the steps that came together.
const maxGroup = 512

// maxGroupBytes bounds what a group of several steps carries: it is to be
// written well within patience, however much waits.
const maxGroupBytes = 8 << 20

// step is what one caller waits for.
type step[T any] struct {
	in   T
	err  error
	done chan struct{}
}

// desk takes the steps of one kind from many callers and hands them on in
// groups. Its clerks are goroutines, each with a stripe of its own. With several the server
// is at one group while the callers of another come back: a clerk who is free
// waits until as many steps have come as are under way, or these are over, so
// that the groups are alike and none is small.
type desk[T any] struct {
	closed <-chan struct{}
	// carry carries a group out in one transaction: all of it or nothing.
	carry func(ctx context.Context, stripe int, group []*step[T]) error
	// weigh tells how many bytes a step carries. Nil: so few that it does not matter.
	weigh func(T) int
	ring  chan struct{} // enough steps wait for a group

	mu      sync.Mutex
	waiting []*step[T]
	under   int  // steps under way
	shut    bool // no clerk serves any more
}

func newDesk[T any](closed <-chan struct{}, carry func(context.Context, int, []*step[T]) error) *desk[T] {
	return &desk[T]{closed: closed, carry: carry, ring: make(chan struct{}, 1)}
}

// do hands a step over and waits until it is on the disk. Once a clerk has taken
// it, it is carried out, whatever becomes of ctx.
func (d *desk[T]) do(ctx context.Context, in T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st := &step[T]{in: in, done: make(chan struct{})}
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		return errShut
	}
	d.waiting = append(d.waiting, st)
	enough := d.enough()
	d.mu.Unlock()
	if enough {
		d.call()
	}
	select {
	case <-st.done:
	case <-ctx.Done():
		if d.withdraw(st) {
			return ctx.Err()
		}
		<-st.done
	}
	return st.err
}

// errShut is for what came too late.
var errShut = fmt.Errorf("write: %w", queue.ErrClosed)

// enough tells whether a clerk who is free may begin. It is called with the
// lock.
func (d *desk[T]) enough() bool { return len(d.waiting) > 0 && len(d.waiting) >= d.under }

func (d *desk[T]) call() {
	select {
	case d.ring <- struct{}{}:
	default: // somebody has
	}
}

// withdraw takes a step back that no clerk has taken.
func (d *desk[T]) withdraw(st *step[T]) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, w := range d.waiting {
		if w == st {
			d.waiting = append(d.waiting[:i], d.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// serve starts a clerk for each stripe.
func (d *desk[T]) serve(wg *sync.WaitGroup, stripes ...int) {
	for _, stripe := range stripes {
		wg.Go(func() {
			defer d.leave()
			for last := 0; ; {
				group := d.take(last)
				if group == nil {
					return
				}
				d.commit(stripe, group)
				last = len(group)
				d.mu.Lock()
				d.under -= last
				d.mu.Unlock()
			}
		})
	}
}

// leave refuses what waits.
func (d *desk[T]) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	for _, st := range d.waiting {
		st.err = errShut
		close(st.done)
	}
	d.waiting = nil
}

// take waits for a group; nil: the store is closed. last is how many steps the
// clerk has just carried out.
func (d *desk[T]) take(last int) []*step[T] {
	for {
		select {
		case <-d.closed:
			return nil
		default:
		}
		d.giveWay(last)
		if group := d.next(); group != nil {
			return group
		}
		select {
		case <-d.ring:
		case <-d.closed:
			return nil
		}
	}
}

// next takes the group that waits, if it may depart.
func (d *desk[T]) next() []*step[T] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.enough() {
		return nil
	}
	n := d.load()
	group := d.waiting[:n:n]
	if d.waiting = d.waiting[len(group):]; len(d.waiting) == 0 {
		d.waiting = make([]*step[T], 0, len(group))
	}
	if d.under += len(group); d.enough() {
		d.call()
	}
	return group
}

// load tells how many of those that wait make a group.
func (d *desk[T]) load() int {
	most := min(len(d.waiting), maxGroup)
	if d.weigh == nil {
		return most
	}
	bytes := 0
	for i, st := range d.waiting[:most] {
		if bytes += d.weigh(st.in); bytes > maxGroupBytes && i > 0 {
			return i
		}
	}
	return most
}

// giveWay lets those run who were answered just now and are about to come back,
// where no other group is under way. No clock is waited for.
func (d *desk[T]) giveWay(last int) {
	for before := -1; ; {
		d.mu.Lock()
		n, alone := len(d.waiting), d.under == 0
		d.mu.Unlock()
		if !alone || n >= last || n == before {
			return
		}
		before = n
		runtime.Gosched()
	}
}

// commit carries a group out. If it is refused each step is tried alone, so
// that one cannot spoil the others.
func (d *desk[T]) commit(stripe int, group []*step[T]) {
	err := d.carry(context.Background(), stripe, group)
	if err != nil && len(group) > 1 && !storage(err) {
		for _, st := range group {
			d.commit(stripe, []*step[T]{st})
		}
		return
	}
	for _, st := range group {
		if err != nil {
			st.err = err
		}
		close(st.done)
	}
}

// storage tells that trying again at once will not help.
func storage(err error) bool {
	return errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrStorage) || errors.Is(err, queue.ErrCorrupt) ||
		errors.Is(err, queue.ErrClosed)
}
