package postgres

import (
	"context"
	"maps"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Sweep implements queue.Keeper. Several gateways may sweep at once: what one
// is at the others skip. It forgets the counts of what there was, too.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (queue.Swept, error) {
	var swept queue.Swept
	err := s.attempt(ctx, "sweep "+s.name, func(t *tx) error {
		t.stripe = s.claimStripe()
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
	more, err := s.forgetCounts(ctx)
	if err != nil {
		return queue.Swept{}, err
	}
	swept.More = more || swept.Expired == limit || swept.Erased == limit || swept.Keys == limit
	return swept, nil
}

// maxForgotten bounds the counts that one Sweep forgets.
const maxForgotten = 4096

const idleTallies = `SELECT t.state, t.gate, t.reason, t.lane, t.n FROM tallies t JOIN (
		SELECT state, gate, reason FROM tallies GROUP BY state, gate, reason HAVING sum(n) = 0 LIMIT $1
	) q USING (state, gate, reason) FOR UPDATE OF t SKIP LOCKED`

// forgetCounts deletes the tallies of what there is nothing of any more: each
// claim would read them. They are rows that together count nothing, so that it
// does not matter what others add in between. It skips rows that others hold, in
// a transaction of its own, so that it can be in no circle of those who wait.
func (s *Store) forgetCounts(ctx context.Context) (more bool, err error) {
	err = s.attempt(ctx, "forget counts in "+s.name, func(t *tx) error {
		rows, sums := map[tally][]int16{}, map[tally]int64{}
		t.queue(idleTallies, maxForgotten).Query(func(r pgx.Rows) error {
			var k tally
			var state, stripe int16
			var n int64
			_, err := pgx.ForEachRow(r, []any{&state, &k.gate, &k.reason, &stripe, &n}, func() error {
				k.state = queue.State(state)
				rows[k], sums[k] = append(rows[k], stripe), sums[k]+n
				return nil
			})
			return err
		})
		if err := t.flush(); err != nil {
			return err
		}
		maps.DeleteFunc(rows, func(k tally, _ []int16) bool { return sums[k] != 0 }) // not all could be locked, or some were added to
		if more = len(rows) == maxForgotten; len(rows) == 0 {
			return nil
		}
		t.forget(rows)
		return t.commit()
	})
	return more, err
}

// forget deletes the tallies of some stripes.
func (t *tx) forget(rows map[tally][]int16) {
	var states, stripes []int16
	var gates []int64
	var reasons []string
	for k, of := range rows {
		for _, stripe := range of {
			states, gates, reasons, stripes = append(states, int16(k.state)), append(gates, k.gate), append(reasons, k.reason), append(stripes, stripe)
		}
	}
	t.queue(`DELETE FROM tallies t USING unnest($1::smallint[], $2::bigint[], $3::text[], $4::smallint[]) u(state, gate, reason, lane)
		WHERE t.state = u.state AND t.gate = u.gate AND t.reason = u.reason AND t.lane = u.lane`, states, gates, reasons, stripes)
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
		t.stripe = s.claimStripe()
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
