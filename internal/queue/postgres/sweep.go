package postgres

import (
	"context"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Sweep implements queue.Keeper. Several gateways may sweep at once: what one
// is at the others skip.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (queue.Swept, error) {
	var swept queue.Swept
	err := s.attempt(ctx, "sweep "+s.name, func(t *tx) error {
		t.lane = s.claimLane()
		swept = queue.Swept{}
		late, err := s.load(t, expired+" LIMIT $2 FOR UPDATE SKIP LOCKED", nanos(now), limit)
		if err != nil {
			return err
		}
		ended, err := s.load(t, "c.state > 1 AND c.kept_until <= $1 ORDER BY c.kept_until LIMIT $2 FOR UPDATE SKIP LOCKED", nanos(now), limit)
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
	seqs := make([]int64, len(rows))
	for i, r := range rows {
		seqs[i] = r.seq
		t.move(r.gate, r.State, r.Reason, -1)
	}
	for _, table := range append([]string{"calls"}, sealedTables...) {
		t.queue("DELETE FROM "+table+" WHERE seq = ANY($1)", seqs)
	}
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
		rows, err := s.load(t, "c.id = ANY($1) AND c.state > 1 ORDER BY c.seq FOR UPDATE", known)
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

// sealedTables hold what Keys sealed.
var sealedTables = []string{"requests", "answers", "revisions"}

// resealBatch is how many records are looked at in one transaction.
const resealBatch = 64

// record is one sealed record.
type record struct {
	seq      int64
	revision int // of revisions; else 0
	id       string
	endpoint string
	sealed   []byte
}

// Reseal implements queue.Vault.
func (s *Store) Reseal(ctx context.Context) (int, error) {
	var total int
	for _, table := range sealedTables {
		// What is sealed from now on is under the active key, so that the
		// last record of now is where it ends.
		for after := (record{seq: -1}); ; {
			n, last, err := s.resealFrom(ctx, table, after)
			if err != nil {
				return total, err
			}
			if total += n; last == nil {
				break
			}
			after = *last
		}
	}
	return total, nil
}

// resealFrom seals one batch again and returns the last record it looked at;
// nil: there was none.
func (s *Store) resealFrom(ctx context.Context, table string, after record) (n int, last *record, err error) {
	revision := "0"
	if table == "revisions" {
		revision = "t.revision"
	}
	err = s.attempt(ctx, "seal the records of "+s.name+" again", func(t *tx) error {
		n, last = 0, nil
		var all []record
		t.queue(`SELECT t.seq, `+revision+`, c.id, g.endpoint, t.sealed FROM `+table+` t JOIN calls c USING (seq) JOIN gates g USING (gate)
			WHERE (t.seq, `+revision+`) > ($1, $2) ORDER BY 1, 2 LIMIT $3 FOR UPDATE OF t`, after.seq, after.revision, resealBatch).
			Query(func(rows pgx.Rows) (err error) {
				all, err = pgx.CollectRows(rows, func(c pgx.CollectableRow) (r record, err error) {
					err = c.Scan(&r.seq, &r.revision, &r.id, &r.endpoint, &r.sealed)
					return r, err
				})
				return err
			})
		if err := t.flush(); err != nil {
			return err
		}
		for i := range all {
			last = &all[i]
			by, err := queue.SealedBy(last.sealed)
			if err != nil || by == s.keys.Active() {
				continue // a damaged record is found, and told, when it is opened
			}
			sealed, err := s.keys.Again(&queue.Facts{ID: last.id, Endpoint: last.endpoint}, table == "answers", last.sealed)
			if err != nil {
				return err
			}
			t.queue("UPDATE "+table+" t SET sealed = $3 WHERE (t.seq, "+revision+") = ($1, $2)", last.seq, last.revision, sealed)
			n++
		}
		return t.commit()
	})
	return n, last, err
}

// KeyUse implements queue.Vault.
func (s *Store) KeyUse(ctx context.Context) (map[string]int, error) {
	use := map[string]int{}
	for _, table := range sealedTables {
		// The version and the id of the key are the first bytes.
		err := s.rows(ctx, "SELECT substr(sealed, 1, 9), count(*) FROM "+table+" GROUP BY 1", nil,
			func(rows pgx.Rows) error {
				var head []byte
				var n int
				if err := rows.Scan(&head, &n); err != nil {
					return failed(err)
				}
				by, err := queue.SealedBy(append(head, make([]byte, 64)...))
				use[by] += n
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	err := s.rows(ctx, "SELECT key, count(*) FROM taken GROUP BY key", nil, func(rows pgx.Rows) error {
		var by string
		var n int
		err := rows.Scan(&by, &n)
		use[by] += n
		return failed(err)
	})
	return use, err
}
