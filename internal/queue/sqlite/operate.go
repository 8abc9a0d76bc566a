package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// find reads a call that an operator named.
func (b *book) find(id string) (*row, error) {
	if r := b.load(id); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("call %s: %w", id, queue.ErrNotFound)
}

// Edit implements queue.Operator.
func (s *Store) Edit(ctx context.Context, now time.Time, id string, said queue.Request) error {
	return s.do(ctx, func(b *book) error {
		r, err := b.find(id)
		if err != nil {
			return err
		}
		if r.State == queue.Running || r.State == queue.Done {
			return fmt.Errorf("edit call %s: it is %s: %w", id, r.State, queue.ErrState)
		}
		var original []byte
		if !b.row(b.q.request, []any{&original}, r.seq) {
			return fmt.Errorf("edit call %s: its request is %w", id, queue.ErrErased)
		}
		sealed, err := s.keys.SealRequest(&r.Facts, &said)
		if err != nil {
			return err
		}
		b.exec(b.q.revise, r.seq, r.Revision, original)
		b.exec(b.q.replace, sealed, r.seq)
		r.Revision++
		b.save(r, r.State, r.Reason)
		return nil
	})
}

// Replay implements queue.Operator.
func (s *Store) Replay(ctx context.Context, now time.Time, again queue.Replay) error {
	return s.do(ctx, func(b *book) error {
		r, err := b.find(again.ID)
		if err != nil {
			return err
		}
		if !r.State.Broken() && r.State != queue.Cancelled {
			return fmt.Errorf("replay call %s: it is %s: %w", again.ID, r.State, queue.ErrState)
		}
		was, reason := r.State, r.Reason
		r.Restart(now, again)
		b.save(r, was, reason)
		b.exec(b.q.dropAnswer, r.seq)
		return nil
	})
}

// Cancel implements queue.Operator.
func (s *Store) Cancel(ctx context.Context, now time.Time, id string) error {
	return s.do(ctx, func(b *book) error {
		r, err := b.find(id)
		if err != nil {
			return err
		}
		if r.State != queue.Queued {
			return fmt.Errorf("cancel call %s: it is %s: %w", id, r.State, queue.ErrState)
		}
		b.release(r)
		b.settle(now, r, &queue.Outcome{State: queue.Cancelled, Reason: queue.ReasonCancelled})
		return nil
	})
}

// release frees the idempotency key of a call that was not carried out.
func (b *book) release(r *row) {
	var sealed []byte
	if !b.row(b.q.request, []any{&sealed}, r.seq) {
		return
	}
	said, err := b.s.keys.OpenRequest(&r.Facts, sealed)
	if err != nil {
		return // the key stays taken for its window
	}
	for _, d := range prints(b.s.keys, &queue.Call{Facts: r.Facts, Request: said}) {
		b.exec(b.q.free, d.key, r.ID)
	}
}
