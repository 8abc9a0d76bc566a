package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// order is what an operator wants of one call. While it is carried out the call
// is there too, and its row is locked.
type order struct {
	word string // what is to be done
	id   string
	now  time.Time

	s *Store
	t *tx
	*row
}

func (s *Store) operate(ctx context.Context, o order, do func(*order) error) error {
	word, id := o.word, o.id
	if !fits(id) {
		return fmt.Errorf("%s call %.64q: %w", word, id, queue.ErrNotFound)
	}
	return s.attempt(ctx, word+" a call in "+s.name, func(t *tx) error {
		t.stripe = s.claimStripe()
		rows, err := s.load(t, fromAll+" WHERE c.id = $1 FOR UPDATE OF c", id)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("%s call %s: %w", word, id, queue.ErrNotFound)
		}
		o.s, o.t, o.row = s, t, rows[0]
		if err := do(&o); err != nil {
			return err
		}
		return t.commit()
	})
}

// unfit says that the state of a call does not allow it.
func (o *order) unfit() error {
	return fmt.Errorf("%s call %s: it is %s: %w", o.word, o.ID, o.State, queue.ErrState)
}

// request reads the sealed request of a call; nil: it is not kept.
func (o *order) request() (sealed []byte, err error) {
	o.t.queue("SELECT request FROM calls WHERE seq = $1", o.seq).
		QueryRow(func(row pgx.Row) error { return row.Scan(&sealed) })
	return sealed, o.t.flush()
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
	return s.operate(ctx, order{word: "edit", id: id, now: now}, func(o *order) error {
		t, r := o.t, o.row
		if r.State == queue.Running || r.State == queue.Done {
			return o.unfit()
		}
		original, err := o.request()
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
		if err := o.rekey(original, said); err != nil {
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
func (o *order) rekey(original []byte, said queue.Request) error {
	was, err := o.s.keys.OpenRequest(&o.Facts, original)
	if said.Key == "" || err == nil && was.Key == said.Key {
		return nil
	}
	return o.hold(said)
}

// again takes the key of a call that is sent anew, where it is free: it was
// cancelled, or the window has ended. Whoever has taken it since has the same
// call made, which must not happen twice.
func (o *order) again() error {
	sealed, err := o.request()
	if err != nil || sealed == nil {
		return err
	}
	said, err := o.s.keys.OpenRequest(&o.Facts, sealed)
	if err != nil || said.Key == "" {
		return nil // what cannot be read is not sent either
	}
	return o.hold(said)
}

// hold makes sure that a call has its key.
func (o *order) hold(said queue.Request) error {
	t, c := o.t, &queue.Call{Facts: o.Facts, Request: said}
	p := &parcel{Call: c, id: o.ID, prints: o.s.keys.Prints(c), now: o.now}
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
	if taken && held.ID != o.ID {
		return fmt.Errorf("%s call %s: its idempotency key is that of call %s: give it another (heed calls edit): %w", o.word, o.ID, held.ID, queue.ErrState)
	}
	if !taken {
		d := &p.prints[0]
		k.drop(t)
		t.queue("INSERT INTO taken (print, body, key, id, until) VALUES ($1, $2, $3, $4, $5)", d.Key, d.Body, d.By, p.id,
			nanos(o.now.Add(p.window())))
	}
	return nil
}

// Replay implements queue.Operator.
func (s *Store) Replay(ctx context.Context, now time.Time, again queue.Replay) error {
	return s.operate(ctx, order{word: "replay", id: again.ID, now: now}, func(o *order) error {
		t, r := o.t, o.row
		if err := again.Admits(&r.Facts); err != nil {
			return err
		}
		if err := o.again(); err != nil {
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
	return s.operate(ctx, order{word: "cancel", id: id, now: now}, func(o *order) error {
		t, r := o.t, o.row
		if r.State != queue.Queued {
			return o.unfit()
		}
		if err := o.release(); err != nil {
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
func (o *order) release() error {
	t, keys := o.t, o.s.keys
	var all [][]byte
	t.queue("SELECT request FROM calls WHERE seq = $1 AND request IS NOT NULL UNION ALL SELECT sealed FROM revisions WHERE seq = $1", o.seq).
		Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
			return err
		})
	if err := t.flush(); err != nil {
		return err
	}
	for _, sealed := range all {
		said, err := keys.OpenRequest(&o.Facts, sealed)
		if err != nil {
			continue
		}
		for _, d := range keys.Prints(&queue.Call{Facts: o.Facts, Request: said}) {
			t.queue("DELETE FROM taken WHERE print = $1 AND id = $2", d.Key, o.ID)
		}
	}
	return nil
}
