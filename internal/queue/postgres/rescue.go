package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// maxRescue bounds how many lost leases, and expired calls, one Claim deals with.
const maxRescue = 256

// rescue takes back the leases that have run out, and ends the calls that have
// expired. Rows that another gateway is at are left to it.
func (s *Store) rescue(ctx context.Context, now time.Time) error {
	return s.attempt(ctx, "take leases back in "+s.name, func(t *tx) error {
		t.stripe = s.claimStripe()
		err := s.endAll(t, now, rescued, ranOut)
		if err == nil {
			err = s.endAll(t, now, expire, expired)
		}
		if err != nil {
			return err
		}
		return t.commit()
	})
}

const (
	ranOut  = fromRunning + " WHERE l.until <= $1 ORDER BY l.until LIMIT $2 FOR UPDATE OF l SKIP LOCKED"
	expired = fromWaiting + " WHERE d.expires > 0 AND d.expires <= $1 ORDER BY d.expires LIMIT $2 FOR UPDATE OF d SKIP LOCKED"
)

// rescued says what becomes of a call whose lease has run out.
func rescued(r *row) queue.Outcome {
	if r.begun == 0 && !r.damaged {
		return queue.Unbegun(&r.Facts)
	}
	return queue.Rescue(&r.Facts)
}

func expire(*row) queue.Outcome {
	return queue.Outcome{State: queue.Dead, Reason: queue.ReasonExpired}
}

// endAll moves calls on that a condition selects.
func (s *Store) endAll(t *tx, now time.Time, o func(*row) queue.Outcome, from string) error {
	rows, err := s.load(t, from, nanos(now), maxRescue)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.move(t, now, rows, o)
}

// move applies an outcome to calls whose rows in due or leases are locked.
// Nobody holds them after it.
func (s *Store) move(t *tx, now time.Time, rows []*row, o func(*row) queue.Outcome) error {
	changes := make([]change, len(rows))
	for i, r := range rows {
		changes[i] = r.change()
		out := o(r)
		r.Apply(now, &out, s.keep)
		r.token = 0
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	if err := t.save(changes, func(_, _ int64) {}); err != nil {
		return err
	}
	t.follow(changes)
	return nil
}

// handBack queues again what claims took whose commit was not acknowledged:
// nobody got these calls, so that none was sent.
func (s *Store) handBack(ctx context.Context) error {
	tokens := s.leases.suspects()
	if len(tokens) == 0 {
		return nil
	}
	err := s.attempt(ctx, "hand calls back in "+s.name, func(t *tx) error {
		t.stripe = s.claimStripe()
		rows, err := s.load(t, fromRunning+" WHERE l.token = ANY($1) FOR UPDATE OF l", tokens)
		if err != nil {
			return err
		}
		err = s.move(t, time.Time{}, rows, func(*row) queue.Outcome {
			return queue.Outcome{State: queue.Queued, Reason: queue.ReasonHandedBack}
		})
		if err != nil {
			return err
		}
		return t.commit()
	})
	if err == nil {
		s.leases.cleared(tokens)
	}
	return err
}
