package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// begins is one Begin.
type begins struct {
	claims []queue.Claim
	lost   []string
}

// Begin implements queue.Beginner.
func (s *Store) Begin(ctx context.Context, claims []queue.Claim) ([]string, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	b := &begins{claims: claims}
	if err := s.begins.do(ctx, b); err != nil {
		return nil, err
	}
	return b.lost, nil
}

// begin writes a group of them. It may be repeated.
func (s *Store) begin(ctx context.Context, _ int, group []*step[*begins]) error {
	var holds []hold
	for _, st := range group {
		for i := range st.in.claims {
			holds = append(holds, hold{st.in.claims[i].ID, st.in.claims[i].Lease.Token})
		}
	}
	ids, tokens := inOrder(holds)
	var held map[hold]bool
	err := s.attempt(ctx, "begin calls in "+s.name, func(t *tx) error {
		held = map[hold]bool{}
		t.queue(`UPDATE leases l SET begun = $3 FROM unnest($1::text[], $2::bigint[]) u(id, token) JOIN calls c USING (id)
			WHERE l.gate = c.gate AND l.seq = c.seq AND l.token = u.token RETURNING u.id, l.token`, ids, tokens, nanos(time.Now())).
			Query(readHolds(held))
		return t.commit()
	})
	if err != nil {
		return err
	}
	for _, st := range group {
		for i := range st.in.claims {
			if c := &st.in.claims[i]; !held[hold{c.ID, c.Lease.Token}] {
				st.in.lost = append(st.in.lost, c.ID)
			}
		}
	}
	return nil
}

// inOrder lays claims out in the order in which their rows are locked, so that
// steps which meet wait and do not lock each other out.
func inOrder(holds []hold) (ids []string, tokens []int64) {
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.token, b.token)) })
	for _, h := range holds {
		ids, tokens = append(ids, h.id), append(tokens, h.token)
	}
	return ids, tokens
}

// readHolds notes the claims that rows tell.
func readHolds(to map[hold]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var h hold
		_, err := pgx.ForEachRow(rows, []any{&h.id, &h.token}, func() error {
			to[h] = true
			return nil
		})
		return err
	}
}
