package postgres

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// maxRescue bounds how many lost leases, and expired calls, one Claim deals with.
const maxRescue = 256

// errOverdue ends a claim that must be preceded by a rescue.
var errOverdue = errors.New("leases have run out")

// Claim implements queue.Feed.
func (s *Store) Claim(ctx context.Context, now time.Time, ask queue.Ask) (queue.Batch, error) {
	if ask.Lease <= 0 {
		ask.Lease = DefaultLease
	}
	if err := s.handBack(ctx); err != nil {
		return queue.Batch{}, err
	}
	batch, err := s.claim(ctx, now, ask, true)
	if errors.Is(err, errOverdue) {
		if err := s.rescue(ctx, now); err != nil {
			return queue.Batch{}, err
		}
		batch, err = s.claim(ctx, now, ask, false)
	}
	if err != nil {
		return queue.Batch{}, err
	}
	return batch, nil
}

// view is a gate in which calls wait, as it was a moment ago.
type view struct {
	gate, closed  int64
	held          bool
	running, most int
	served        int64
	due           int64 // of its longest-due call; closed, held and full ones are not looked into
}

// viewGates finds the longest-due call by the head of each priority: the index
// gives those in order, so that no backlog is sorted.
const viewGates = `SELECT v.gate, v.closed, v.held, v.running, v.most, v.served, CASE WHEN v.closed > $1 OR v.held OR
		v.most > 0 AND v.running >= v.most THEN 0 ELSE coalesce((SELECT min(h.next_at) FROM generate_series(0, 9) p CROSS JOIN LATERAL
			(SELECT next_at FROM calls c WHERE c.state = 0 AND c.gate = v.gate AND c.priority = p::smallint ORDER BY next_at LIMIT 1) h),
		0) END AS due
	FROM (SELECT g.gate, greatest(g.closed, coalesce(e.closed, 0)) AS closed, g.paused OR coalesce(e.paused, false) AS held, g.running,
			g.most, g.served
		FROM (SELECT gate FROM tallies WHERE state = 0 GROUP BY gate HAVING sum(n) > 0) q JOIN gates g USING (gate)
			LEFT JOIN gates e ON e.endpoint = g.endpoint AND e.key = '') v`

const overdue = `SELECT EXISTS (SELECT FROM calls WHERE state = 1 AND lease_until <= $1)
	OR EXISTS (SELECT FROM calls WHERE state = 0 AND expires > 0 AND expires <= $1)`

// claiming is one Claim under way.
type claiming struct {
	s     *Store
	t     *tx
	ask   queue.Ask
	now   time.Time
	at    int64
	own   map[int64]int // what the worker has of each gate
	token int64
	next  int64
	got   []*taken
}

// claim hands out what is due. It looks which gates may give something, locks
// these, and takes from them in turn.
func (s *Store) claim(ctx context.Context, now time.Time, ask queue.Ask, first bool) (queue.Batch, error) {
	var c *claiming
	err := s.attempt(ctx, "claim calls in "+s.name, func(t *tx) error {
		if c != nil && t.again {
			s.leases.suspect(c.token)
		}
		t.lane = s.claimLane()
		c = &claiming{s: s, t: t, ask: ask, now: now, at: nanos(now), own: s.leases.running(ask.Worker, now), next: math.MaxInt64}
		late, views, err := c.look()
		if err != nil {
			return err
		}
		if late && first {
			return errOverdue
		}
		if ready := c.ready(views); len(ready) > 0 {
			return c.take(ready)
		}
		return nil
	})
	if err != nil {
		if c != nil {
			s.leases.suspect(c.token)
		}
		return queue.Batch{}, err
	}
	return c.unseal(ctx)
}

func (c *claiming) look() (late bool, views []view, err error) {
	c.t.queue(overdue, c.at).QueryRow(func(r pgx.Row) error { return r.Scan(&late) })
	c.t.queue(viewGates, c.at).Query(func(rows pgx.Rows) (err error) {
		views, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (v view, err error) {
			err = r.Scan(&v.gate, &v.closed, &v.held, &v.running, &v.most, &v.served, &v.due)
			return v, err
		})
		return err
	})
	c.t.queue("SELECT nextval('tokens')").QueryRow(func(r pgx.Row) error { return r.Scan(&c.token) })
	if err := c.t.flush(); err != nil {
		return false, nil, err
	}
	gates := make(map[int64]bool, len(views))
	for _, v := range views {
		gates[v.gate] = true
	}
	return late, views, c.s.learnGates(c.t, gates)
}

// ready picks the gates that may give something, the one served longest ago
// first, and notes when another one may.
func (c *claiming) ready(views []view) []view {
	views = slices.DeleteFunc(views, func(v view) bool {
		switch {
		case v.held || c.room(&v) <= 0:
			return true
		case v.closed > c.at:
			c.next = min(c.next, v.closed)
			return true
		case v.due > c.at:
			c.next = min(c.next, v.due)
			return true
		}
		return v.due == 0 // its calls were taken in this instant
	})
	slices.SortFunc(views, func(a, b view) int { return cmp.Or(cmp.Compare(a.served, b.served), cmp.Compare(a.gate, b.gate)) })
	if len(views) > c.ask.Max {
		c.next = c.at // those behind have their turn at the next claim
		views = views[:max(c.ask.Max, 0)]
	}
	return views
}

// room is how many more calls of the gate may run.
func (c *claiming) room(v *view) int {
	n := c.ask.Max
	if c.ask.Share > 0 {
		n = min(n, c.ask.Share-c.own[v.gate])
	}
	if v.most > 0 {
		n = min(n, v.most-v.running)
	}
	return n
}

// lockGates tells the gates as they are now, and until this transaction ends.
const lockGates = `SELECT gate, closed, paused, running, most, served FROM gates WHERE gate = ANY($1) ORDER BY gate FOR UPDATE`

// lock locks the gates that nobody else holds. If others hold all of them it
// waits for them, in order: that lasts as long as their commit.
func (c *claiming) lock(ready []view) ([]view, error) {
	ids := make([]int64, len(ready))
	for i := range ready {
		ids[i] = ready[i].gate
	}
	var locked []view
	read := func(rows pgx.Rows) (err error) {
		locked, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (v view, err error) {
			err = r.Scan(&v.gate, &v.closed, &v.held, &v.running, &v.most, &v.served)
			return v, err
		})
		return err
	}
	c.t.queue(lockGates+" SKIP LOCKED", ids).Query(read)
	if err := c.t.flush(); err != nil {
		return nil, err
	}
	if len(locked) == 0 {
		c.t.queue(lockGates, ids).Query(read)
		if err := c.t.flush(); err != nil {
			return nil, err
		}
	} else if len(locked) < len(ready) {
		c.next = c.at // the others at the next claim
	}
	return slices.DeleteFunc(locked, func(v view) bool { return v.held || v.closed > c.at || c.room(&v) <= 0 }), nil
}

// line is what one gate may give, in the order in which it goes.
type line struct {
	view
	heads []head
	room  int
}

// head is a call that is due.
type head struct {
	seq, gate, rank int64
}

const readHeads = `SELECT u.gate, c.seq, p, c.next_at
	FROM unnest($1::bigint[], $2::integer[]) u(gate, n) CROSS JOIN generate_series(0, 9) p CROSS JOIN LATERAL
		(SELECT seq, next_at FROM calls c WHERE c.state = 0 AND c.gate = u.gate AND c.priority = p::smallint AND c.next_at <= $3
			AND (c.expires = 0 OR c.expires > $3) ORDER BY c.next_at, c.seq LIMIT u.n) c`

// lines reads the due calls of gates that are locked.
func (c *claiming) lines(locked []view) ([]*line, error) {
	ids, n, all := make([]int64, len(locked)), make([]int32, len(locked)), make([]*line, len(locked))
	of := map[int64]*line{}
	for i, v := range locked {
		l := &line{view: v, room: c.room(&v)}
		ids[i], n[i], all[i], of[v.gate] = v.gate, int32(l.room), l, l
	}
	c.t.queue(readHeads, ids, n, c.at).Query(func(rows pgx.Rows) error {
		var h head
		var priority int
		var due int64
		_, err := pgx.ForEachRow(rows, []any{&h.gate, &h.seq, &priority, &due}, func() error {
			h.rank = queue.Rank(time.Unix(0, due), priority)
			of[h.gate].heads = append(of[h.gate].heads, h)
			return nil
		})
		return err
	})
	if err := c.t.flush(); err != nil {
		return nil, err
	}
	for _, l := range all {
		slices.SortFunc(l.heads, func(a, b head) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq)) })
		l.heads = l.heads[:min(len(l.heads), l.room)]
	}
	slices.SortFunc(all, func(a, b *line) int { return cmp.Or(cmp.Compare(a.served, b.served), cmp.Compare(a.gate, b.gate)) })
	return all, nil
}

// take claims from the gates, one call of each in turn.
func (c *claiming) take(ready []view) error {
	locked, err := c.lock(ready)
	if err != nil || len(locked) == 0 {
		return err
	}
	lines, err := c.lines(locked)
	if err != nil {
		return err
	}
	var picks, empty []int64
	for turn := 0; len(lines) > 0 && len(picks) < c.ask.Max; turn++ {
		lines = slices.DeleteFunc(lines, func(l *line) bool {
			if turn < len(l.heads) {
				if len(picks) < c.ask.Max {
					picks = append(picks, l.heads[turn].seq)
				}
				return false
			}
			if turn < l.room {
				empty = append(empty, l.gate)
			}
			return true // else its room is used up: it is asked again when a call of it ends
		})
	}
	if len(lines) > 0 {
		c.next = c.at
	}
	return c.lease(picks, empty)
}

const (
	leaseCalls = `WITH leased AS (
		UPDATE calls c SET state = 1, token = $2, lease_until = $3, begun = $6 WHERE c.seq = ANY($1) AND c.state = 0 RETURNING c.*
	), marked AS (
		UPDATE gates g SET running = g.running + k.n, served = $4
			FROM (SELECT gate, count(*)::integer AS n FROM leased GROUP BY gate) k WHERE g.gate = k.gate
	), counted AS (
		INSERT INTO tallies (state, gate, reason, lane, n) SELECT 0, gate, '', $5, -count(*) FROM leased GROUP BY gate ORDER BY gate
			ON CONFLICT (state, gate, reason, lane) DO UPDATE SET n = tallies.n + excluded.n
	) SELECT ` + columns + `, c.trail, r.sealed FROM leased c LEFT JOIN requests r USING (seq)`
	upcoming = `SELECT min(h.next_at) FROM unnest($1::bigint[]) u(gate) CROSS JOIN generate_series(0, 9) p CROSS JOIN LATERAL
		(SELECT next_at FROM calls c WHERE c.state = 0 AND c.gate = u.gate AND c.priority = p::smallint AND c.next_at > $2
			ORDER BY next_at LIMIT 1) h`
)

// lease hands the picked calls out, finds when the gates that are empty will
// have another one, and commits.
func (c *claiming) lease(picks, empty []int64) error {
	until := c.now.Add(c.ask.Lease)
	place := make(map[int64]int, len(picks))
	for i, seq := range picks {
		place[seq] = i
	}
	got := make([]*taken, len(picks))
	c.t.queue(leaseCalls, picks, c.token, nanos(until), c.at, int16(c.t.lane), !c.ask.Begins).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			k := &taken{until: until}
			if err := rows.Scan(k.fields(&k.trail, &k.sealed)...); err != nil {
				return err
			}
			got[place[k.seq]] = k
		}
		return rows.Err()
	})
	if len(empty) > 0 {
		c.t.queue(upcoming, empty, c.at).QueryRow(func(r pgx.Row) error {
			var soonest *int64
			err := r.Scan(&soonest)
			if soonest != nil {
				c.next = min(c.next, *soonest)
			}
			return err
		})
	}
	c.got = got
	return c.t.commit()
}

// taken is a call that was handed out, still sealed.
type taken struct {
	row
	sealed []byte
	until  time.Time
}

// unseal makes the batch. What cannot be unsealed ends here.
func (c *claiming) unseal(ctx context.Context) (queue.Batch, error) {
	var batch queue.Batch
	var dead []queue.Settlement
	if c.next < math.MaxInt64 {
		batch.Next = instant(c.next)
	}
	for _, k := range c.got {
		if k == nil {
			continue // cancelled in this instant
		}
		k.key, _ = c.s.gates.key(k.gate)
		l := queue.Lease{Token: k.token, Until: k.until}
		err := k.read()
		var said queue.Request
		if err == nil {
			said, err = c.s.keys.OpenRequest(&k.Facts, k.sealed)
		}
		if err != nil {
			dead = append(dead, queue.Settlement{ID: k.ID, Lease: l, Outcome: queue.Outcome{State: queue.Dead, Reason: queue.ReasonUnreadable}})
			continue
		}
		c.s.leases.add(c.ask.Worker, k.until, &k.row)
		batch.Claims = append(batch.Claims, queue.Claim{Call: queue.Call{Facts: k.Facts, Request: said}, Lease: l})
	}
	if len(dead) > 0 {
		if _, err := c.s.Settle(ctx, c.now, dead); err != nil {
			return queue.Batch{}, err
		}
	}
	return batch, nil
}

// rescue takes back the leases that have run out, and ends the calls that have
// expired. Rows that another gateway is at are left to it.
func (s *Store) rescue(ctx context.Context, now time.Time) error {
	return s.attempt(ctx, "take leases back in "+s.name, func(t *tx) error {
		t.lane = s.claimLane()
		err := s.endAll(t, now, rescued, "c.state = 1 AND c.lease_until <= $1 ORDER BY c.lease_until")
		if err == nil {
			err = s.endAll(t, now, expire, expired)
		}
		if err != nil {
			return err
		}
		return t.commit()
	})
}

const expired = "c.state = 0 AND c.expires > 0 AND c.expires <= $1 ORDER BY c.expires"

// rescued says what becomes of a call whose lease has run out: what was not
// begun was certainly not sent.
func rescued(r *row) queue.Outcome {
	if !r.begun && !r.damaged {
		return queue.Outcome{State: queue.Queued, Reason: queue.ReasonHandedBack}
	}
	return queue.Rescue(&r.Facts)
}

func expire(*row) queue.Outcome {
	return queue.Outcome{State: queue.Dead, Reason: queue.ReasonExpired}
}

// endAll moves calls on that a condition selects.
func (s *Store) endAll(t *tx, now time.Time, o func(*row) queue.Outcome, where string) error {
	rows, err := s.load(t, where+" LIMIT $2 FOR UPDATE SKIP LOCKED", nanos(now), maxRescue)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.move(t, now, rows, o)
}

// move applies an outcome to calls whose rows are locked. Nobody holds them
// after it.
func (s *Store) move(t *tx, now time.Time, rows []*row, o func(*row) queue.Outcome) error {
	changes := make([]change, len(rows))
	for i, r := range rows {
		changes[i] = r.change()
		out := o(r)
		r.Apply(now, &out, s.keep)
		r.token = 0
	}
	if err := t.save(changes, func(int64) {}); err != nil {
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
		t.lane = s.claimLane()
		rows, err := s.load(t, "c.state = 1 AND c.token = ANY($1) FOR UPDATE", tokens)
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
