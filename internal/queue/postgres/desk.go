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

// step is what one caller waits for.
type step[T any] struct {
	in   T
	err  error
	done chan struct{}
}

// desk takes the steps of one kind from many callers and hands them on in
// groups. A goroutine serves each of its lanes; while it waits for the server's
// disk the next group fills by itself.
type desk[T any] struct {
	steps  chan *step[T]
	closed <-chan struct{}
	// carry carries a group out in one transaction: all of it or nothing.
	carry func(ctx context.Context, lane int, group []*step[T]) error
}

func newDesk[T any](closed <-chan struct{}, carry func(context.Context, int, []*step[T]) error) *desk[T] {
	return &desk[T]{steps: make(chan *step[T]), closed: closed, carry: carry}
}

// do hands a step over and waits until it is on the disk. Once handed over it
// is carried out, whatever becomes of ctx.
func (d *desk[T]) do(ctx context.Context, in T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st := &step[T]{in: in, done: make(chan struct{})}
	select {
	case d.steps <- st:
		<-st.done
		return st.err
	case <-d.closed:
		return fmt.Errorf("write: %w", queue.ErrClosed)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve starts goroutines for the lanes.
func (d *desk[T]) serve(wg *sync.WaitGroup, lanes ...int) {
	for _, lane := range lanes {
		wg.Go(func() {
			for {
				select {
				case first := <-d.steps: // without a buffer: what is in it was not taken
					d.commit(lane, d.gather(first))
				case <-d.closed:
					return
				}
			}
		})
	}
}

// gather takes what waits, and what comes while it gives way: those who were
// answered just now are about to come back. No clock is waited for: under load
// the group has filled while the lane waited for the server.
func (d *desk[T]) gather(first *step[T]) []*step[T] {
	group := []*step[T]{first}
	for gaveWay := 0; gaveWay < 3 && len(group) < maxGroup; {
		select {
		case st := <-d.steps:
			group = append(group, st)
			gaveWay = 0
		default:
			runtime.Gosched()
			gaveWay++
		}
	}
	return group
}

// commit carries a group out. If it is refused each step is tried alone, so
// that one cannot spoil the others.
func (d *desk[T]) commit(lane int, group []*step[T]) {
	err := d.carry(context.Background(), lane, group)
	if err != nil && len(group) > 1 && !storage(err) {
		for _, st := range group {
			d.commit(lane, []*step[T]{st})
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
