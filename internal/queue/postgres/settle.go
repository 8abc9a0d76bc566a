package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// ends is one Settle.
type ends struct {
	now    time.Time
	claims []queue.Settlement
	sealed [][]byte // the answers that are kept
	lost   []string
}

func (e *ends) bytes() (n int) {
	for _, b := range e.sealed {
		n += len(b)
	}
	return n
}

// Settle implements queue.Feed.
func (s *Store) Settle(ctx context.Context, now time.Time, claims []queue.Settlement) ([]string, error) {
	e := &ends{now: now, claims: claims, sealed: make([][]byte, len(claims))}
	for i := range claims {
		c := &claims[i]
		if c.State == queue.Running {
			return nil, fmt.Errorf("settle call %s: running is no outcome: %w", c.ID, queue.ErrInvalid)
		}
		if c.Answer == nil || !c.State.Ended() {
			continue
		}
		key, err := s.endpointOf(ctx, c)
		if err != nil {
			return nil, err
		}
		if e.sealed[i], err = s.keys.SealAnswer(&queue.Facts{ID: c.ID, Endpoint: key}, c.Answer); err != nil {
			return nil, err
		}
	}
	if len(claims) == 0 {
		return nil, nil
	}
	if err := s.ends.do(ctx, e); err != nil {
		return nil, err
	}
	return e.lost, nil
}

// endpointOf tells whose the call is, which its answer is sealed for. That of
// a call that is unknown stays unused.
func (s *Store) endpointOf(ctx context.Context, c *queue.Settlement) (string, error) {
	if r, _ := s.leases.get(hold{c.ID, c.Lease.Token}); r != nil {
		return r.Endpoint, nil
	}
	var endpoint string
	err := s.rows(ctx, "SELECT g.endpoint FROM calls c JOIN gates g USING (gate) WHERE c.id = $1", []any{c.ID},
		func(r pgx.Rows) error { return r.Scan(&endpoint) })
	return endpoint, err
}

// settle writes a group of settlements.
func (s *Store) settle(ctx context.Context, stripe int, group []*step[*ends]) error {
	var holds []hold
	for _, st := range group {
		for i := range st.in.claims {
			holds = append(holds, hold{st.in.claims[i].ID, st.in.claims[i].Lease.Token})
		}
	}
	begun, sure := false, true
	err := s.attempt(ctx, "settle calls in "+s.name, func(t *tx) error {
		t.stripe = stripe
		b := &settling{s: s, t: t, rows: map[hold]*row{}, saved: map[saved]bool{}}
		if err := b.load(holds); err != nil {
			return err
		}
		begun = true
		changes := b.apply(group)
		if !sure || b.doubt {
			return b.settle(group, changes)
		}
		err := t.saveAll(changes)
		sure = !lost(err)
		return err
	})
	if err != nil && begun {
		s.leases.doubtful(holds)
	}
	if err == nil {
		s.leases.drop(holds...)
	}
	return err
}

// settling is a group of settlements under way.
type settling struct {
	s     *Store
	t     *tx
	rows  map[hold]*row // of the claims that may still be held
	saved map[saved]bool
	doubt bool // some were perhaps settled before
}

// saved names a claim by the place of its call, and by its token, which is what a
// change of a claimed call has as at: a call may be in a group twice, under a
// claim that was lost and one that was not.
type saved struct{ seq, at int64 }

// load finds the rows of claims: in memory, else in the database.
func (b *settling) load(holds []hold) error {
	var unknown []string
	for _, h := range holds {
		r, doubt := b.s.leases.get(h)
		if r == nil {
			unknown = append(unknown, h.id)
			continue
		}
		b.rows[h] = r
		b.doubt = b.doubt || doubt || b.t.again
	}
	if len(unknown) == 0 {
		return nil
	}
	rows, err := b.s.load(b.t, fromRunning+" WHERE c.id = ANY($1)", unknown)
	for _, r := range rows {
		b.rows[hold{r.ID, r.token}] = r
	}
	return err
}

// apply makes the changes that the outcomes are.
func (b *settling) apply(group []*step[*ends]) []change {
	var changes []change
	seen := map[hold]bool{}
	for _, st := range group {
		e := st.in
		e.lost = nil
		for i := range e.claims {
			c := &e.claims[i]
			h := hold{c.ID, c.Lease.Token}
			r := b.rows[h]
			if r == nil || seen[h] {
				e.lost = append(e.lost, c.ID)
				continue
			}
			seen[h] = true
			m := r.change()
			m.answer = e.sealed[i]
			r.Apply(e.now, &c.Outcome, b.s.keep)
			changes = append(changes, m)
			if c.State == queue.Queued && c.Scope == queue.ScopeGate && c.Until.After(e.now) {
				b.t.close(r.gate, nanos(c.Until), fit(c.Source))
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	return changes
}

// settle saves the calls that are still held, finds out about the others, and
// writes what follows.
func (b *settling) settle(group []*step[*ends], changes []change) error {
	if err := b.t.save(changes, func(seq, at int64) { b.saved[saved{seq, at}] = true }); err != nil {
		return err
	}
	if err := b.t.flush(); err != nil {
		return err
	}
	if err := b.settledBefore(changes); err != nil {
		return err
	}
	for _, st := range group {
		b.report(st.in)
	}
	changes = slices.DeleteFunc(changes, func(c change) bool { return !b.saved[saved{c.seq, c.held}] })
	b.t.follow(changes)
	return b.t.commit()
}

// settledBefore finds the calls that an earlier try has settled, of which
// nobody learned. They bear our token, as nobody else has touched them since.
func (b *settling) settledBefore(changes []change) error {
	if !b.doubt {
		return nil
	}
	var seqs, tokens []int64
	for _, c := range changes {
		if !b.saved[saved{c.seq, c.held}] {
			seqs, tokens = append(seqs, c.seq), append(tokens, c.held)
		}
	}
	b.t.queue(`SELECT c.id, c.token FROM calls c JOIN unnest($1::bigint[], $2::bigint[]) u(seq, token) USING (seq)
		WHERE c.token = u.token`, seqs, tokens).Query(func(rows pgx.Rows) error {
		var h hold
		_, err := pgx.ForEachRow(rows, []any{&h.id, &h.token}, func() error {
			b.rows[h] = nil // neither lost nor saved
			return nil
		})
		return err
	})
	return b.t.flush()
}

// report tells which claims of one Settle were lost.
func (b *settling) report(e *ends) {
	for i := range e.claims {
		c := &e.claims[i]
		if r := b.rows[hold{c.ID, c.Lease.Token}]; r != nil && !b.saved[saved{r.seq, c.Lease.Token}] {
			e.lost = append(e.lost, c.ID)
		}
	}
}

// follow counts anew what was saved.
func (t *tx) follow(changes []change) {
	for i := range changes {
		c := &changes[i]
		t.move(c.row, c.was, c.reason, -1)
		t.move(c.row, c.State, c.Reason, 1)
	}
}

// Where calls are looked for: among those that run, wait or have ended, or all.
const (
	fromRunning = `leases l JOIN calls c USING (gate, seq)`
	fromWaiting = `due d JOIN calls c USING (seq) LEFT JOIN leases l ON false`
	fromEnded   = `ends b JOIN calls c USING (seq) LEFT JOIN leases l ON false`
	fromAll     = `calls c LEFT JOIN leases l ON l.gate = c.gate AND l.seq = c.seq`
)

// load reads calls with their trails.
func (s *Store) load(t *tx, from string, args ...any) ([]*row, error) {
	var all []*row
	gates := map[int64]bool{}
	t.queue("SELECT "+columns+", c.trail FROM "+from, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r := &row{}
			if err := rows.Scan(r.fields(&r.trail)...); err != nil {
				return err
			}
			gates[r.gate] = true
			all = append(all, r)
		}
		return rows.Err()
	})
	if err := t.flush(); err != nil {
		return nil, err
	}
	if err := s.learnGates(t, gates); err != nil {
		return nil, err
	}
	for _, r := range all {
		r.key, _ = s.gates.key(r.gate)
		r.damaged = r.read() != nil // whoever reads the call is told of it
	}
	return all, nil
}

// Renew implements queue.Feed.
func (s *Store) Renew(ctx context.Context, until time.Time, claims []queue.Claim) ([]string, error) {
	holds := make([]hold, len(claims))
	for i := range claims {
		holds[i] = hold{claims[i].ID, claims[i].Lease.Token}
	}
	ids, tokens := inOrder(slices.Clone(holds))
	var kept map[hold]bool
	err := s.attempt(ctx, "renew leases in "+s.name, func(t *tx) error {
		kept = map[hold]bool{}
		t.queue(`UPDATE leases l SET until = $3 FROM unnest($1::text[], $2::bigint[]) u(id, token) JOIN calls c USING (id)
			WHERE l.gate = c.gate AND l.seq = c.seq AND l.token = u.token RETURNING u.id, l.token`, ids, tokens, nanos(until)).
			Query(readHolds(kept))
		return t.commit()
	})
	if err != nil {
		return nil, err
	}
	var lost []string
	for _, h := range holds {
		if kept[h] {
			s.leases.renew(h, until)
			continue
		}
		lost = append(lost, h.id)
		s.leases.drop(h)
	}
	return lost, nil
}
