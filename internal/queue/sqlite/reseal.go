package sqlite

import (
	"context"
	"math"

	"github.com/heedproject/heed/internal/queue"
)

// sealedTables hold what Keys sealed.
var sealedTables = []string{"requests", "answers", "revisions"}

// One step looks at no more than this many records, and this many bytes and
// one record: others write in between, and it has to fit into memory.
const (
	resealBatch = 512
	resealBytes = 4 << 20
)

// Reseal implements queue.Vault.
func (s *Store) Reseal(ctx context.Context, at func(done int)) (int, error) {
	var total int
	for _, table := range sealedTables {
		// What is sealed from now on is under the active key, so that the
		// last row of now is where it ends.
		for after := int64(math.MinInt64); ; {
			n, last, err := s.resealFrom(ctx, table, after)
			if err != nil {
				return total, err
			}
			if total += n; n > 0 && at != nil {
				at(total)
			}
			if last == after {
				break
			}
			after = last
		}
	}
	// What was replaced would live on in the log, also that of a run before
	// this one.
	return total, s.do(ctx, func(b *book) error {
		b.erased = true
		return nil
	})
}

// record is one sealed record.
type record struct {
	rowid    int64
	id       string
	endpoint string
	sealed   []byte
}

// resealFrom seals one batch again and returns the last row it looked at.
func (s *Store) resealFrom(ctx context.Context, table string, after int64) (n int, last int64, err error) {
	err = s.do(ctx, func(b *book) error {
		n, last = 0, after
		for _, r := range b.records(table, after) {
			last = r.rowid
			by, err := queue.SealedBy(r.sealed)
			if err != nil || by == s.keys.Active() {
				continue // a damaged record is found, and told, when it is opened
			}
			f := queue.Facts{ID: r.id, Endpoint: r.endpoint}
			sealed, err := s.keys.Again(&f, table == "answers", r.sealed)
			if err != nil {
				return err
			}
			if b.broken == nil {
				_, err = b.c.ExecContext(context.Background(), "UPDATE "+table+" SET sealed = ? WHERE rowid = ?", sealed, r.rowid)
				b.fail(err)
			}
			n++
		}
		return nil
	})
	return n, last, err
}

func (b *book) records(table string, after int64) []record {
	var all []record
	rows, err := b.c.QueryContext(context.Background(), `SELECT t.rowid, c.id, g.endpoint, t.sealed FROM `+table+` t
		JOIN calls c ON c.seq = t.seq JOIN gates g USING (gate) WHERE t.rowid > ? ORDER BY t.rowid LIMIT ?`, after, resealBatch)
	if err != nil {
		b.fail(err)
		return nil
	}
	defer rows.Close()
	for size := 0; size < resealBytes && rows.Next(); {
		var r record
		b.fail(rows.Scan(&r.rowid, &r.id, &r.endpoint, &r.sealed))
		all = append(all, r)
		size += len(r.sealed)
	}
	b.fail(rows.Err())
	return all
}

// KeyUse implements queue.Vault.
func (s *Store) KeyUse(ctx context.Context) (map[string]queue.Use, error) {
	use := map[string]queue.Use{}
	for _, table := range sealedTables {
		// The version and the id of the key are the first bytes.
		err := groups(ctx, s, "SELECT substr(sealed, 1, 64), count(*) FROM "+table+" GROUP BY substr(sealed, 1, 9)",
			func(head []byte, n int) error {
				if by, err := queue.SealedBy(head); err == nil { // else it is damaged, and under none
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
	err := groups(ctx, s, "SELECT key, count(*) FROM taken GROUP BY key", func(by int64, n int) error {
		u := use[keyID(by)]
		u.Keys += n
		use[keyID(by)] = u
		return nil
	})
	return use, err
}

// groups runs a query for groups and their sizes.
func groups[T any](ctx context.Context, s *Store, text string, f func(T, int) error) error {
	rows, err := s.read.QueryContext(ctx, text)
	if err != nil {
		return wrap("read "+s.path, err)
	}
	defer rows.Close()
	for rows.Next() {
		var of T
		var n int
		if err := rows.Scan(&of, &n); err != nil {
			return wrap("read "+s.path, err)
		}
		if err := f(of, n); err != nil {
			return err
		}
	}
	return wrap("read "+s.path, rows.Err())
}
