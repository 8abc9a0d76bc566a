package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

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
	most, running int // running is counted where most is a limit
	served        int64
	lines         []line
}

// line is the calls of one line in a gate.
type line struct {
	gate int64
	line queue.Line
	due  int64 // of its first call; 0: there is none; behind: it was not looked for so far
}

const (
	// maxPassed bounds how many calls of a line that have expired a claim passes
	// over. What is behind more of them has its turn when these are ended, which
	// each claim does with some.
	maxPassed = 4096
	// behind stands for when a call is due that may be behind so many.
	behind = -1
)

// viewGates finds the first call of each line: the index gives it, so that no
// backlog is sorted.
var viewGates = fmt.Sprintf(`SELECT v.gate, greatest(v.closed, coalesce(e.closed, 0)), v.paused OR coalesce(e.paused, false), v.most, v.served,
		CASE WHEN v.most > 0 THEN (SELECT count(*)::integer FROM leases l WHERE l.gate = v.gate) ELSE 0 END,
		q.line, coalesce((SELECT next_at FROM (SELECT next_at, expires FROM due d WHERE d.gate = q.gate AND d.line = q.line
				ORDER BY next_at LIMIT %d) f WHERE f.expires = 0 OR f.expires > $1 ORDER BY next_at LIMIT 1),
			(SELECT %d FROM due d WHERE d.gate = q.gate AND d.line = q.line LIMIT 1), 0)
	FROM (SELECT gate, line FROM live GROUP BY gate, line HAVING sum(n) > 0) q
		JOIN gates v USING (gate) LEFT JOIN gates e ON e.endpoint = v.endpoint AND e.key = '' ORDER BY v.gate`, maxPassed, behind)

const overdue = `SELECT EXISTS (SELECT FROM leases WHERE until <= $1) OR EXISTS (SELECT FROM due WHERE expires > 0 AND expires <= $1)`

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
		t.stripe = s.claimStripe()
		c = &claiming{s: s, t: t, ask: ask, now: now, at: nanos(now), own: s.leases.running(ask.Worker, now), next: math.MaxInt64}
		late, views, err := c.look()
		if err != nil {
			return err
		}
		if late && first {
			return errOverdue
		}
		if late { // more than one rescue ends: what is due may lie behind them, unread
			c.next = c.at
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
	c.t.queue(viewGates, c.at).Query(func(rows pgx.Rows) error {
		var v view
		var l line
		_, err := pgx.ForEachRow(rows, []any{&v.gate, &v.closed, &v.held, &v.most, &v.served, &v.running, &l.line, &l.due}, func() error {
			if l.gate = v.gate; len(views) == 0 || views[len(views)-1].gate != v.gate {
				views = append(views, v)
			}
			last := &views[len(views)-1]
			last.lines = append(last.lines, l)
			return nil
		})
		return err
	})
	if err := c.t.flush(); err != nil {
		return false, nil, err
	}
	gates := make(map[int64]bool, len(views))
	for _, v := range views {
		gates[v.gate] = true
	}
	c.s.turns.keep(gates)
	return late, views, c.s.learnGates(c.t, gates)
}

// ready picks the gates that may give something, the one served longest ago
// first, and notes when another one may.
func (c *claiming) ready(views []view) []view {
	views = slices.DeleteFunc(views, func(v view) bool {
		if v.held || c.room(&v) <= 0 {
			return true
		}
		due := int64(math.MaxInt64)
		for _, l := range v.lines {
			switch {
			case l.due > 0:
				due = min(due, max(l.due, v.closed))
			case l.due == behind && v.closed <= c.at:
				c.next = c.at
			}
		}
		if due > c.at {
			c.next = min(c.next, due)
		}
		return due > c.at
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
const lockGates = `SELECT gate, closed, paused, most, served FROM gates WHERE gate = ANY($1) ORDER BY gate FOR UPDATE`

// countRunning counts in gates that are locked and have a limit: nobody else
// claims from them, and what is being settled counts until that is on the disk.
const countRunning = `SELECT g.gate, count(*)::integer FROM gates g JOIN leases l USING (gate) WHERE g.gate = ANY($1) AND g.most > 0 GROUP BY g.gate`

// readHeads gives the first calls of lines, and the one behind them: it tells
// when the line goes on.
var readHeads = fmt.Sprintf(`SELECT u.gate, u.line, d.at, d.seq, d.next_at
	FROM unnest($1::bigint[], $2::smallint[], $3::integer[]) u(gate, line, n) CROSS JOIN LATERAL
		(SELECT at, seq, next_at FROM (SELECT ctid AS at, seq, next_at, expires FROM due d WHERE d.gate = u.gate AND d.line = u.line
				ORDER BY d.next_at, d.seq LIMIT %d) f WHERE f.expires = 0 OR f.expires > $4
			ORDER BY next_at, seq LIMIT u.n + 1) d`, maxPassed)

// shelf is what one gate may give, in the order in which it goes.
type shelf struct {
	view
	part
	heads []head
	room  int
}

// head is a call that is due.
type head struct {
	at              pgtype.TID // of its row in due
	gate, seq, rank int64
	line            queue.Line
}

// Lane is whose turn it is.
func (h head) Lane() int { return h.line.Lane() }

// add puts a call on the shelf, or notes when it will be due.
func (s *shelf) add(h head, due, now int64) {
	switch {
	case due <= now:
		h.rank = queue.Rank(time.Unix(0, due), h.line.Priority())
		s.heads = append(s.heads, h)
	default:
		s.wait(due)
	}
}

// next tells when a shelf that is empty may give something; math.MaxInt64: that
// is not known. Where others took what was seen of a lane, those that were not
// read have their turn at once.
func (s *shelf) next(now int64) int64 {
	if s.rest {
		return now
	}
	read := map[queue.Line]int{}
	for _, h := range s.heads {
		if read[h.line]++; read[h.line] > s.each {
			return now
		}
	}
	if s.soon > 0 {
		return s.soon
	}
	return math.MaxInt64
}

// shelves locks the gates that nobody else holds, and reads what they may give.
// If others hold all of them it waits for them, in order: that lasts as long as
// their commit.
func (c *claiming) shelves(ready []view) ([]*shelf, error) {
	all, err := c.lock(ready, " SKIP LOCKED")
	if err == nil && len(all) == 0 {
		all, err = c.lock(ready, "")
	}
	if err != nil {
		return nil, err
	}
	if len(all) < len(ready) {
		c.next = c.at // the others at the next claim
	}
	all = slices.DeleteFunc(all, func(s *shelf) bool {
		s.room = c.room(&s.view)
		return s.held || s.closed > c.at || s.room <= 0
	})
	for _, s := range all {
		slices.SortFunc(s.heads, func(a, b head) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq)) })
		s.heads = queue.Turns(s.heads, c.s.turns.last(s.gate))
		s.heads = s.heads[:min(len(s.heads), s.room)]
	}
	slices.SortFunc(all, func(a, b *shelf) int { return cmp.Or(cmp.Compare(a.served, b.served), cmp.Compare(a.gate, b.gate)) })
	return all, nil
}

// wanted is what is to be read of gates: for each of some lines, how many calls.
type wanted struct {
	ids   []int64
	gates []int64
	lines []int16
	n     []int32
	parts map[int64]part
}

func (c *claiming) wanted(ready []view) wanted {
	w := wanted{ids: make([]int64, len(ready)), parts: make(map[int64]part, len(ready))}
	for i := range ready {
		v := &ready[i]
		p := v.part(c.at, c.room(v), c.s.turns.last(v.gate))
		for _, l := range p.lines {
			w.gates, w.lines, w.n = append(w.gates, v.gate), append(w.lines, int16(l)), append(w.n, int32(p.each))
		}
		w.ids[i], w.parts[v.gate] = v.gate, p
	}
	return w
}

// lock locks gates and reads their lines as they are then.
func (c *claiming) lock(ready []view, how string) (all []*shelf, err error) {
	w := c.wanted(ready)
	of := make(map[int64]*shelf, len(ready))
	c.t.queue(lockGates+how, w.ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			s := &shelf{}
			if err := rows.Scan(&s.gate, &s.closed, &s.held, &s.most, &s.served); err != nil {
				return err
			}
			s.part = w.parts[s.gate]
			all, of[s.gate] = append(all, s), s
		}
		return rows.Err()
	})
	c.t.queue(countRunning, w.ids).Query(func(rows pgx.Rows) error {
		var gate int64
		var n int
		_, err := pgx.ForEachRow(rows, []any{&gate, &n}, func() error {
			if s := of[gate]; s != nil {
				s.running = n
			}
			return nil
		})
		return err
	})
	c.t.queue(readHeads, w.gates, w.lines, w.n, c.at).Query(func(rows pgx.Rows) error {
		var due int64
		var h head
		_, err := pgx.ForEachRow(rows, []any{&h.gate, &h.line, &h.at, &h.seq, &due}, func() error {
			if s := of[h.gate]; s != nil { // else another gateway holds it
				s.add(h, due, c.at)
			}
			return nil
		})
		return err
	})
	return all, c.t.flush()
}

// take claims from the gates, one call of each in turn.
func (c *claiming) take(ready []view) error {
	shelves, err := c.shelves(ready)
	if err != nil || len(shelves) == 0 {
		return err
	}
	var picks []head
	for turn := 0; len(shelves) > 0 && len(picks) < c.ask.Max; turn++ {
		shelves = slices.DeleteFunc(shelves, func(s *shelf) bool {
			if turn < len(s.heads) {
				if len(picks) < c.ask.Max {
					picks = append(picks, s.heads[turn])
				}
				return false
			}
			if turn < s.room {
				c.next = min(c.next, s.next(c.at))
			}
			return true // if its room is used up it is asked again when a call of it ends
		})
	}
	if len(shelves) > 0 {
		c.next = c.at
	}
	return c.lease(picks)
}

// leaseCalls takes the first call, and those behind it of which all up to them
// have no more than $7 bytes: to tell the length of a request does not read it.
const leaseCalls = `WITH sized AS (
		SELECT u.at, u.seq, u.n, sum(octet_length(c.request)) OVER (ORDER BY u.n) AS bytes
		FROM unnest($1::tid[], $2::bigint[]) WITH ORDINALITY u(at, seq, n) JOIN calls c USING (seq)
	), took AS (
		DELETE FROM due d USING sized u WHERE d.ctid = u.at AND d.seq = u.seq AND (u.n = 1 OR u.bytes <= $7) RETURNING d.seq, d.gate
	), leased AS (
		INSERT INTO leases (gate, seq, token, until, begun) SELECT gate, seq, $3, $4, $6 FROM took RETURNING seq, token, begun
	), marked AS (
		UPDATE gates g SET served = $5 FROM (SELECT gate FROM took GROUP BY gate) k WHERE g.gate = k.gate
	) SELECT ` + columns + `, c.trail, c.request FROM leased l JOIN calls c USING (seq)`

// unsynced lets a claim not wait for the disk. If the server crashes before it
// is there, it was not: the calls are queued, and what their worker settles is
// refused. Of a write nothing was sent by then, since its begin does wait, and
// what is on the disk before that one's record is there too
// (postgresql.org/docs, "Asynchronous Commit").
const unsynced = "SET LOCAL synchronous_commit = off"

// lease hands the picked calls out, and commits. Whoever else has changed one of
// them in this instant has put its row in due elsewhere. The token is random: a
// counter of the server could give one of a claim that a crash has undone again.
func (c *claiming) lease(picks []head) error {
	begun := c.at
	c.token = 1 + rand.Int64N(math.MaxInt64)
	if c.ask.Begins {
		begun = 0
		c.t.queue(unsynced)
	}
	until := c.now.Add(c.ask.Lease)
	at, seqs, place := make([]pgtype.TID, len(picks)), make([]int64, len(picks)), make(map[int64]int, len(picks))
	for i, h := range picks {
		at[i], seqs[i], place[h.seq] = h.at, h.seq, i
	}
	got := make([]*taken, len(picks))
	c.t.queue(leaseCalls, at, seqs, c.token, nanos(until), c.at, begun, int64(c.ask.Carries())).Query(func(rows pgx.Rows) error {
		var k taken
		fields := k.fields(&k.trail, &k.sealed) // of one row after the other
		for rows.Next() {
			k = taken{until: until}
			if err := rows.Scan(fields...); err != nil {
				return err
			}
			own := k
			got[place[k.seq]] = &own
		}
		return rows.Err()
	})
	c.got = got
	if err := c.t.commit(); err != nil {
		return err
	}
	c.s.turns.took(slices.DeleteFunc(picks, func(h head) bool { return got[place[h.seq]] == nil }))
	return nil
}

// taken is a call that was handed out, still sealed.
type taken struct {
	row
	sealed []byte
	until  time.Time
}

// unseal makes the batch. What cannot be unsealed ends here.
func (c *claiming) unseal(ctx context.Context) (queue.Batch, error) {
	batch := queue.Batch{Claims: make([]queue.Claim, 0, len(c.got))}
	var dead []queue.Settlement
	for _, k := range c.got {
		if k == nil {
			c.next = c.at // too large to be carried with the others, or cancelled or edited in this instant
			continue
		}
		k.key, _ = c.s.gates.key(k.gate)
		l := queue.Lease{Token: k.token, Until: k.until}
		err := k.read()
		k.Begun = time.Time{} // that is the worker's to say
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
	if c.next < math.MaxInt64 {
		batch.Next = instant(c.next)
	}
	if len(dead) > 0 {
		if _, err := c.s.Settle(ctx, c.now, dead); err != nil {
			return queue.Batch{}, err
		}
	}
	return batch, nil
}
