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
		if err := b.rekey(now, r, original, said); err != nil {
			return err
		}
		b.exec(b.q.revise, r.seq, r.Revision, original)
		b.exec(b.q.replace, sealed, r.seq)
		if said.PathTemplate != "" {
			b.exec(b.q.rename, said.PathTemplate, r.seq)
		}
		r.Revision++
		b.save(r, r.State, r.Reason)
		return nil
	})
}

// rekey takes the key that an edit gives a call. That which it had stays taken
// for its window: the call may have been sent under it.
func (b *book) rekey(now time.Time, r *row, original []byte, said queue.Request) error {
	was, err := b.s.keys.OpenRequest(&r.Facts, original)
	if said.Key == "" || err == nil && was.Key == said.Key {
		return nil
	}
	return b.hold("edit", now, r, said)
}

// again takes the key of a call that is sent anew, where it is free: it was
// cancelled, or the window has ended. Whoever has taken it since has the same
// call made, which must not happen twice.
func (b *book) again(now time.Time, r *row) error {
	var sealed []byte
	if !b.row(b.q.request, []any{&sealed}, r.seq) {
		return nil
	}
	said, err := b.s.keys.OpenRequest(&r.Facts, sealed)
	if err != nil || said.Key == "" {
		return nil // what cannot be read is not sent either
	}
	return b.hold("replay", now, r, said)
}

// hold makes sure that a call has its key.
func (b *book) hold(word string, now time.Time, r *row, said queue.Request) error {
	all := prints(b.s.keys, &queue.Call{Facts: r.Facts, Request: said})
	held, taken := b.before(now, all, true)
	if taken && held.ID != r.ID {
		return fmt.Errorf("%s call %s: its idempotency key is that of call %s: give it another (heed calls edit): %w",
			word, r.ID, held.ID, queue.ErrState)
	}
	if !taken {
		b.exec(b.q.take, all[0].key, all[0].body, all[0].by, r.ID, nanos(now.Add(queue.DefaultKeyWindow)))
	}
	return nil
}

// Replay implements queue.Operator.
func (s *Store) Replay(ctx context.Context, now time.Time, again queue.Replay) error {
	return s.do(ctx, func(b *book) error {
		r, err := b.find(again.ID)
		if err != nil {
			return err
		}
		if err := again.Admits(&r.Facts); err != nil {
			return err
		}
		if err := b.again(now, r); err != nil {
			return err
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

// release frees the idempotency keys of a call that was not carried out, those
// that it had before it was edited too.
func (b *book) release(r *row) {
	var all [][]byte
	b.rows(b.q.versions, func(scan func(...any) error) error {
		var sealed []byte
		err := scan(&sealed)
		all = append(all, sealed)
		return err
	}, r.seq, r.seq)
	for _, sealed := range all {
		said, err := b.s.keys.OpenRequest(&r.Facts, sealed)
		if err != nil {
			continue // its key stays taken for its window
		}
		for _, d := range prints(b.s.keys, &queue.Call{Facts: r.Facts, Request: said}) {
			b.free(d.key, r)
		}
	}
}
