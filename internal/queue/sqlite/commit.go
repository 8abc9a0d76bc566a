package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// Group commit: what waits is written in one transaction, and what was
// committed while the disk was busy is synced together. The writer does not
// wait for the disk: it carries out what comes meanwhile, in a transaction that
// it commits when the disk is free.
const (
	maxBatch = 512
	linger   = 2 * time.Millisecond
)

// op is one atomic step that waits for the writer. do may run twice, and
// writes nothing before it has checked everything.
type op struct {
	do func(*book) error
	// loose tells, when it was done, that it need not be on the disk before it
	// is answered: a crash that takes it back does no harm. Nil: it must be.
	loose func() bool
	// look tells that it changes nothing, so that nobody needs to know what came
	// of it once ctx has ended.
	look bool
	err  error
	done chan struct{}
}

// answered tells that nobody has to wait for the disk.
func (o *op) answered() bool { return o.err != nil || o.loose != nil && o.loose() }

// do has the writer carry a step out and waits until it is on the disk.
func (s *Store) do(ctx context.Context, f func(*book) error) error { return s.hand(ctx, &op{do: f}) }

// hand hands a step to the writer. Once handed over it is carried out, whatever
// becomes of ctx, and waited for unless it is a look.
func (s *Store) hand(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.done = make(chan struct{})
	select {
	case s.ops <- o:
	case <-s.closed:
		return s.over()
	case <-ctx.Done():
		return ctx.Err()
	}
	var left <-chan struct{}
	if o.look {
		left = ctx.Done()
	}
	select {
	case <-o.done:
		return o.err
	case <-left:
		return ctx.Err()
	case <-s.ended:
	}
	select {
	case <-o.done: // before it ended
		return o.err
	default:
		return s.over()
	}
}

// over says why nothing is written.
func (s *Store) over() error { return fmt.Errorf("write %s: %w", s.path, queue.ErrClosed) }

// disk syncs the write-ahead log beside the writer. SQLite would do so inside
// each commit, while nothing else is written.
type disk struct {
	work chan []*op
	done chan error // one answer for each order
	busy bool       // there is an order
}

// disk opens the log, and syncs it until work is closed.
func (s *Store) disk() (*disk, error) {
	d := &disk{work: make(chan []*op, 1), done: make(chan error, 1)}
	if s.sync == nil {
		f, err := os.OpenFile(s.path+"-wal", os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("open the log of %s: %w: %w", s.path, queue.ErrStorage, err)
		}
		s.wal, s.sync = f, func() error { return syncData(f) }
	}
	s.writer.Go(func() {
		for ops := range d.work {
			err := s.sync()
			if err != nil {
				err = s.lost(err)
			}
			answer(ops, err)
			d.done <- err
		}
	})
	return d, nil
}

// lost says that the disk did not take what was written.
func (s *Store) lost(err error) error {
	return fmt.Errorf("write %s: its disk did not take what was written: %w: check the disk, then start heed again: %w",
		s.path, queue.ErrStorage, err)
}

func answer(ops []*op, err error) {
	for _, o := range ops {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}

// run writes until closed. What is in ops then was not taken.
func (b *book) run(ops <-chan *op, closed <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case o := <-ops:
			b.round(o, ops, timer)
			b.order()
		case err := <-b.d.done:
			b.synced(err)
		case err := <-b.m.done:
			b.moved(err)
		case <-closed:
			b.end()
			return
		}
	}
}

// end waits for those who work beside the writer.
func (b *book) end() {
	for b.d.busy {
		b.synced(<-b.d.done)
	}
	close(b.d.work)
	if b.moving {
		b.shifted(<-b.m.done)
	}
	close(b.m.work)
}

// round carries out what waits, and has it synced. If an operation breaks the
// transaction, each is tried alone, so that one cannot spoil the others. So it is
// on a full disk once the log has given room back.
func (b *book) round(first *op, ops <-chan *op, timer *time.Timer) {
	timer.Reset(linger)
	batch, err := b.transact(first, func(batch []*op) *op { return b.next(batch, ops, timer) })
	again := len(batch) > 1 && !storage(err) || errors.Is(err, queue.ErrFull) && b.roomy()
	if err == nil || !again {
		b.committed(batch, err)
		return
	}
	for _, o := range batch {
		alone, err := b.transact(o, func([]*op) *op { return nil })
		b.committed(alone, err)
	}
}

// next returns another operation for a batch; nil: it is to be committed. That
// is when the disk is free; but when those before were larger it lingers, since
// those who were answered are about to come back, and as many as came together
// lately should do so again. More are not waited for: where all producers share
// each turn of the disk there are none. Who need not wait for the disk is not
// kept waiting.
func (b *book) next(batch []*op, ops <-chan *op, timer *time.Timer) *op {
	for len(batch) < maxBatch && b.dead == nil {
		select {
		case o := <-ops:
			return o
		default:
		}
		enough := len(batch) >= (b.sizes[0]+b.sizes[1])/2
		if b.rush || !b.d.busy && enough {
			return nil
		}
		select {
		case o := <-ops:
			return o
		case err := <-b.d.done:
			b.synced(err)
			timer.Reset(linger) // it counts from when the disk is free
		case <-timer.C:
			if !b.d.busy {
				return nil
			}
		}
	}
	return nil
}

// committed answers those who need not wait and has the others synced.
func (b *book) committed(batch []*op, err error) {
	b.sizes = [2]int{len(batch), b.sizes[0]}
	for _, o := range batch {
		if err != nil {
			o.err = err
		}
		if o.answered() {
			close(o.done)
		} else {
			b.pending = append(b.pending, o)
		}
	}
	b.sync()
}

// sync has the disk take what is committed, once it is free.
func (b *book) sync() {
	if len(b.pending) > 0 && !b.d.busy {
		b.d.work <- b.pending
		b.d.busy, b.pending = true, nil
	}
}

// synced notes that the disk is free.
func (b *book) synced(err error) {
	b.d.busy = false
	if err != nil {
		b.die(err)
	}
	b.sync()
}

// die ends all writing: the disk failed, and nobody knows what is on it and what
// of the memory will get there.
func (b *book) die(err error) {
	b.dead, b.s.failed = err, true
	b.fail(err)
	answer(b.pending, err)
	b.pending = nil
}

// storage tells that trying again at once will not help.
func storage(err error) bool {
	return errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrStorage)
}

// transact carries operations out in one transaction, as long as there is a
// next one.
func (b *book) transact(first *op, next func([]*op) *op) (batch []*op, err error) {
	b.reset()
	if b.dead != nil {
		return []*op{first}, b.dead
	}
	if _, err := b.c.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
		return []*op{first}, wrap("write "+b.s.path, err)
	}
	batch = make([]*op, 0, max(8, b.sizes[0]))
	for o := first; o != nil; o = next(batch) {
		batch = append(batch, o)
		if o.err = o.do(b); b.broken != nil {
			break
		}
		b.rush = b.rush || o.loose != nil && o.loose()
	}
	if b.broken == nil {
		b.flush()
	}
	if b.broken != nil {
		return batch, b.rollback(b.broken)
	}
	if _, err := b.c.ExecContext(context.Background(), "COMMIT"); err != nil {
		return batch, b.rollback(wrap("write "+b.s.path, err))
	}
	if b.erased {
		b.truncate()
	}
	return batch, nil
}

func (b *book) reset() {
	b.broken, b.undo, b.erase, b.erased, b.arrived, b.rush = nil, b.undo[:0], b.erase[:0], false, 0, false
	clear(b.delta)
	clear(b.served)
}

// rollback takes everything back. It fails only where SQLite has done so by itself.
func (b *book) rollback(err error) error {
	b.c.ExecContext(context.Background(), "ROLLBACK")
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
	b.reset()
	return err
}
