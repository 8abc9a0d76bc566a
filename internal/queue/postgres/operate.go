package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// operate carries out what an operator wants of one call, whose row is locked
// the while.
func (s *Store) operate(ctx context.Context, word, id string, f func(*tx, *row) error) error {
	if !fits(id) {
		return fmt.Errorf("%s call %.64q: %w", word, id, queue.ErrNotFound)
	}
	return s.attempt(ctx, word+" a call in "+s.name, func(t *tx) error {
		t.lane = s.claimLane()
		rows, err := s.load(t, fromAll+" WHERE c.id = $1 FOR UPDATE OF c", id)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("%s call %s: %w", word, id, queue.ErrNotFound)
		}
		if err := f(t, rows[0]); err != nil {
			return err
		}
		return t.commit()
	})
}

// unfit says that the state of a call does not allow it.
func unfit(word string, r *row) error {
	return fmt.Errorf("%s call %s: it is %s: %w", word, r.ID, r.State, queue.ErrState)
}

// request reads the sealed request of a call; nil: it is not kept.
func (t *tx) request(r *row) (sealed []byte, err error) {
	t.queue("SELECT request FROM calls WHERE seq = $1", r.seq).
		QueryRow(func(row pgx.Row) error { return row.Scan(&sealed) })
	return sealed, t.flush()
}

// saveOne saves a call that nobody holds. If a worker has claimed it in this
// instant it is looked at again.
func (t *tx) saveOne(c change) error {
	c.token = 0
	was := errMet
	if err := t.save([]change{c}, func(_, _ int64) { was = nil }); err != nil {
		return err
	}
	if err := t.flush(); err != nil || was != nil {
		return cmp.Or(err, was)
	}
	t.follow([]change{c})
	return nil
}

// Edit implements queue.Operator.
func (s *Store) Edit(ctx context.Context, now time.Time, id string, said queue.Request) error {
	return s.operate(ctx, "edit", id, func(t *tx, r *row) error {
		if r.State == queue.Running || r.State == queue.Done {
			return unfit("edit", r)
		}
		original, err := t.request(r)
		if err != nil {
			return err
		}
		if original == nil {
			return fmt.Errorf("edit call %s: its request is %w", id, queue.ErrErased)
		}
		sealed, err := s.keys.SealRequest(&r.Facts, &said)
		if err != nil {
			return err
		}
		if err := s.rekey(t, now, r, original, said); err != nil {
			return err
		}
		t.queue("INSERT INTO revisions (seq, revision, sealed) VALUES ($1, $2, $3)", r.seq, r.Revision, original)
		t.queue("UPDATE calls SET request = $2, template = coalesce(nullif($3, ''), template) WHERE seq = $1", r.seq, sealed, fit(said.PathTemplate))
		c := r.change()
		r.Revision++
		return t.saveOne(c)
	})
}

// rekey takes the key that an edit gives a call. That which it had stays taken
// for its window: the call may have been sent under it.
func (s *Store) rekey(t *tx, now time.Time, r *row, original []byte, said queue.Request) error {
	was, err := s.keys.OpenRequest(&r.Facts, original)
	if said.Key == "" || err == nil && was.Key == said.Key {
		return nil
	}
	return s.hold("edit", t, now, r, said)
}

// again takes the key of a call that is sent anew, where it is free: it was
// cancelled, or the window has ended. Whoever has taken it since has the same
// call made, which must not happen twice.
func (s *Store) again(t *tx, now time.Time, r *row) error {
	sealed, err := t.request(r)
	if err != nil || sealed == nil {
		return err
	}
	said, err := s.keys.OpenRequest(&r.Facts, sealed)
	if err != nil || said.Key == "" {
		return nil // what cannot be read is not sent either
	}
	return s.hold("replay", t, now, r, said)
}

// hold makes sure that a call has its key.
func (s *Store) hold(word string, t *tx, now time.Time, r *row, said queue.Request) error {
	c := &queue.Call{Facts: r.Facts, Request: said}
	p := &parcel{Call: c, id: r.ID, prints: s.keys.Prints(c), now: now}
	k := &known{keys: map[string]*holder{}, states: map[string]queue.State{}, overdue: map[string]int64{}}
	prints := make([][]byte, len(p.prints))
	for i, d := range p.prints {
		prints[i] = d.Key
	}
	t.queue(lookKeys, prints).Query(k.readKeys)
	if err := t.flush(); err != nil {
		return err
	}
	held, taken := k.taken(p)
	if taken && held.ID != r.ID {
		return fmt.Errorf("%s call %s: its idempotency key is that of call %s: give it another (heed calls edit): %w", word, r.ID, held.ID, queue.ErrState)
	}
	if !taken {
		d := &p.prints[0]
		k.drop(t)
		t.queue("INSERT INTO taken (print, body, key, id, until) VALUES ($1, $2, $3, $4, $5)", d.Key, d.Body, d.By, p.id,
			nanos(now.Add(p.window())))
	}
	return nil
}

// Replay implements queue.Operator.
func (s *Store) Replay(ctx context.Context, now time.Time, again queue.Replay) error {
	return s.operate(ctx, "replay", again.ID, func(t *tx, r *row) error {
		if !r.State.Broken() && r.State != queue.Cancelled {
			return unfit("replay", r)
		}
		if err := s.again(t, now, r); err != nil {
			return err
		}
		c := r.change()
		r.Restart(now, again)
		t.queue("UPDATE calls SET answer = NULL WHERE seq = $1", r.seq)
		return t.saveOne(c)
	})
}

// Cancel implements queue.Operator.
func (s *Store) Cancel(ctx context.Context, now time.Time, id string) error {
	return s.operate(ctx, "cancel", id, func(t *tx, r *row) error {
		if r.State != queue.Queued {
			return unfit("cancel", r)
		}
		if err := s.release(t, r); err != nil {
			return err
		}
		c := r.change()
		r.Apply(now, &queue.Outcome{State: queue.Cancelled, Reason: queue.ReasonCancelled}, s.keep)
		return t.saveOne(c)
	})
}

// release frees the idempotency keys of a call that was not carried out, those
// that it had before it was edited too. If a request cannot be unsealed its key
// stays taken for its window.
func (s *Store) release(t *tx, r *row) error {
	var all [][]byte
	t.queue("SELECT request FROM calls WHERE seq = $1 AND request IS NOT NULL UNION ALL SELECT sealed FROM revisions WHERE seq = $1", r.seq).
		Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
			return err
		})
	if err := t.flush(); err != nil {
		return err
	}
	for _, sealed := range all {
		said, err := s.keys.OpenRequest(&r.Facts, sealed)
		if err != nil {
			continue
		}
		for _, d := range s.keys.Prints(&queue.Call{Facts: r.Facts, Request: said}) {
			t.queue("DELETE FROM taken WHERE print = $1 AND id = $2", d.Key, r.ID)
		}
	}
	return nil
}
