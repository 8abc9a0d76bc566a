package postgres

import (
	"context"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5/pgconn"
)

// Sweep implements queue.Keeper. Several gateways may sweep at once: what one
// is at the others skip.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (queue.Swept, error) {
	var swept queue.Swept
	err := s.attempt(ctx, "sweep "+s.name, func(t *tx) error {
		t.lane = s.claimLane()
		swept = queue.Swept{}
		late, err := s.load(t, expired, nanos(now), limit)
		if err != nil {
			return err
		}
		ended, err := s.load(t, fromEnded+" WHERE b.kept_until <= $1 ORDER BY b.kept_until LIMIT $2 FOR UPDATE OF b, c SKIP LOCKED", nanos(now), limit)
		if err != nil {
			return err
		}
		if len(late) > 0 {
			if err := s.move(t, now, late, expire); err != nil {
				return err
			}
		}
		t.erase(ended)
		t.queue(`DELETE FROM taken WHERE print = ANY(ARRAY(SELECT print FROM taken WHERE until <= $1 ORDER BY until LIMIT $2
			FOR UPDATE SKIP LOCKED))`, nanos(now), limit).Exec(func(said pgconn.CommandTag) error {
			swept.Keys = int(said.RowsAffected())
			return nil
		})
		swept.Expired, swept.Erased = len(late), len(ended)
		return t.commit()
	})
	if err != nil {
		return queue.Swept{}, err
	}
	swept.More = swept.Expired == limit || swept.Erased == limit || swept.Keys == limit
	return swept, nil
}

// erase deletes calls and all that belongs to them but their idempotency keys.
func (t *tx) erase(rows []*row) {
	if len(rows) == 0 {
		return
	}
	seqs, kept := make([]int64, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		seqs[i], kept[i] = r.seq, r.times[7]
		t.move(r, r.State, r.Reason, -1)
	}
	t.queue(`DELETE FROM ends e USING unnest($1::bigint[], $2::bigint[]) u(kept_until, seq)
		WHERE e.kept_until = u.kept_until AND e.seq = u.seq`, kept, seqs)
	t.queue("DELETE FROM revisions WHERE seq = ANY($1)", seqs)
	t.queue("DELETE FROM calls WHERE seq = ANY($1)", seqs)
}

// Purge implements queue.Keeper.
func (s *Store) Purge(ctx context.Context, ids []string) (int, error) {
	known := make([]string, 0, len(ids))
	for _, id := range ids {
		if fits(id) {
			known = append(known, id)
		}
	}
	var erased int
	err := s.attempt(ctx, "purge calls of "+s.name, func(t *tx) error {
		t.lane = s.claimLane()
		rows, err := s.load(t, fromAll+" WHERE c.id = ANY($1) AND c.state > 1 ORDER BY c.seq FOR UPDATE OF c", known)
		if err != nil {
			return err
		}
		erased = len(rows)
		t.erase(rows)
		return t.commit()
	})
	if err != nil {
		return 0, err
	}
	return erased, nil
}
