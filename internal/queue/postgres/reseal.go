package postgres

import (
	"context"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// sealedTables hold what Keys sealed.
var sealedTables = []string{"requests", "answers", "revisions"}

// One transaction looks at no more than this many records, and this many bytes
// and one record: others write in between, and it has to fit into memory.
const (
	resealBatch = 256
	resealBytes = 4 << 20
)

// record is one sealed record.
type record struct {
	seq      int64
	revision int // of revisions; else 0
	id       string
	endpoint string
	sealed   []byte
}

// Reseal implements queue.Vault.
func (s *Store) Reseal(ctx context.Context, at func(done int)) (int, error) {
	var total int
	for _, table := range sealedTables {
		// What is sealed from now on is under the active key, so that the
		// last record of now is where it ends.
		for after := (record{seq: -1}); ; {
			n, last, err := s.resealFrom(ctx, table, after)
			if err != nil {
				return total, err
			}
			if total += n; n > 0 && at != nil {
				at(total)
			}
			if last == nil {
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
				all, err = records(rows)
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

// records reads a batch; what is over its bytes is left for the next one.
func records(rows pgx.Rows) (all []record, err error) {
	for size := 0; rows.Next(); {
		if size >= resealBytes {
			continue // what the server has sent has to be read
		}
		var r record
		if err := rows.Scan(&r.seq, &r.revision, &r.id, &r.endpoint, &r.sealed); err != nil {
			return nil, err
		}
		all = append(all, r)
		size += len(r.sealed)
	}
	return all, rows.Err()
}

// KeyUse implements queue.Vault.
func (s *Store) KeyUse(ctx context.Context) (map[string]queue.Use, error) {
	use := map[string]queue.Use{}
	for _, table := range sealedTables {
		// The version and the id of the key are the first bytes.
		err := s.rows(ctx, "SELECT substr(sealed, 1, 9), count(*) FROM "+table+" GROUP BY 1", nil,
			func(rows pgx.Rows) error {
				var head []byte
				var n int
				if err := rows.Scan(&head, &n); err != nil {
					return failed(err)
				}
				if by, err := queue.SealedBy(append(head, make([]byte, 64)...)); err == nil { // else it is damaged, and under none
					u := use[by]
					u.Records += n
					use[by] = u
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	err := s.rows(ctx, "SELECT key, count(*) FROM taken GROUP BY key", nil, func(rows pgx.Rows) error {
		var by string
		var n int
		err := rows.Scan(&by, &n)
		u := use[by]
		u.Keys += n
		use[by] = u
		return failed(err)
	})
	return use, err
}
