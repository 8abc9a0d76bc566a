package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// from joins a call with its gate and that of the whole endpoint.
const from = ` FROM calls c JOIN gates g USING (gate) LEFT JOIN gates e ON e.endpoint = g.endpoint AND e.key = ''`

const gateColumns = `, g.endpoint, g.key, max(g.closed, coalesce(e.closed, 0))`

// shown scans one row of a reader.
func shown(scan func(...any) error, more ...any) (*row, error) {
	r := &row{}
	var closed int64
	if err := r.scan(scan, append([]any{&r.Endpoint, &r.Gate, &closed}, more...)...); err != nil {
		return nil, err
	}
	if r.damaged {
		r.Reason = queue.ReasonUnreadable
	}
	if r.State == queue.Queued {
		r.times[3] = max(r.times[3], closed)
	}
	return r, nil
}

func (s *Store) get(ctx context.Context, id string) (*row, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+columns+gateColumns+", c.trail"+from+" WHERE c.id = ?", id)
	if err != nil {
		return nil, wrap("read "+s.path, err)
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return nil, wrap("read "+s.path, err)
		}
		return nil, fmt.Errorf("call %s: %w", id, queue.ErrNotFound)
	}
	var trail []byte
	r, err := shown(rows.Scan, &trail)
	if err != nil {
		return nil, wrap("read "+s.path, err)
	}
	r.trail = trail
	r.read()
	return r, nil
}

// Get implements queue.Reader.
func (s *Store) Get(ctx context.Context, id string) (queue.Facts, error) {
	r, err := s.get(ctx, id)
	if err != nil {
		return queue.Facts{}, err
	}
	return r.Facts, nil
}

// IDs implements queue.Index: the index of the ids alone answers it.
func (s *Store) IDs(ctx context.Context, prefix string, limit int) (ids []string, err error) {
	rows, err := s.read.QueryContext(ctx, idsQuery, prefix, queue.Beyond(prefix), limit)
	if err != nil {
		return nil, wrap("list ids of "+s.path, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, wrap("list ids of "+s.path, err)
		}
		ids = append(ids, id)
	}
	return ids, wrap("list ids of "+s.path, rows.Err())
}

const idsQuery = "SELECT id FROM calls WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"

// List implements queue.Reader.
func (s *Store) List(ctx context.Context, f queue.Filter) (queue.Page, error) {
	where, args, err := conditions(f)
	if err != nil {
		return queue.Page{}, err
	}
	limit := f.Limit
	if limit <= 0 {
		limit = queue.DefaultLimit
	}
	rows, err := s.read.QueryContext(ctx, listQuery(where), append(args, limit+1)...)
	if err != nil {
		return queue.Page{}, wrap("list calls of "+s.path, err)
	}
	defer rows.Close()
	var page queue.Page
	var last int64
	for rows.Next() {
		r, err := shown(rows.Scan)
		if err != nil {
			return queue.Page{}, wrap("list calls of "+s.path, err)
		}
		r.read()
		if len(page.Calls) == limit {
			page.Next = strconv.FormatInt(last, 10)
			break
		}
		page.Calls, last = append(page.Calls, r.Facts), r.seq
	}
	return page, wrap("list calls of "+s.path, rows.Err())
}

func listQuery(where string) string {
	return "SELECT " + columns + gateColumns + from + where + " ORDER BY c.seq LIMIT ?"
}

// conditions turns a filter into SQL.
func conditions(f queue.Filter) (where string, args []any, err error) {
	parts := []string{"1"}
	add := func(part string, arg any) { parts, args = append(parts, part), append(args, arg) }
	for _, w := range []struct{ column, word string }{
		{"g.endpoint", f.Endpoint}, {"g.key", f.Gate},
		{"c.tenant > '' AND c.tenant", f.Tenant}, {"c.correlation > '' AND c.correlation", f.CorrelationID}, // as the indexes say
		{"c.reason", f.Reason}, {"c.class", f.Class},
	} {
		if w.word != "" {
			add(w.column+" = ?", w.word)
		}
	}
	for _, w := range []struct {
		part string
		at   time.Time
	}{
		{"c.created >= ?", f.CreatedFrom}, {"c.created < ?", f.CreatedBefore}, {"c.kept_until > 0 AND c.kept_until < ?", f.KeptBefore},
	} {
		if !w.at.IsZero() {
			add(w.part, nanos(w.at))
		}
	}
	if f.After != "" {
		after, err := strconv.ParseInt(f.After, 10, 64)
		if err != nil {
			return "", nil, fmt.Errorf("list calls: the cursor is not one that a page gave: %w", queue.ErrInvalid)
		}
		add("c.seq > ?", after)
	}
	if len(f.States) > 0 {
		words := make([]string, len(f.States))
		for i, s := range f.States {
			words[i] = strconv.Itoa(int(s))
		}
		parts = append(parts, stateCondition(f.States)+"c.state IN ("+strings.Join(words, ",")+")")
	}
	return " WHERE " + strings.Join(parts, " AND "), args, nil
}

// stateCondition lets the planner see that the index of broken calls serves.
func stateCondition(states []queue.State) string {
	for _, s := range states {
		if s <= queue.Done {
			return ""
		}
	}
	return "c.state > 2 AND "
}

// Counts implements queue.Reader.
func (s *Store) Counts(ctx context.Context) ([]queue.Count, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT endpoint, state, reason, sum(n) FROM tallies JOIN gates USING (gate)
		GROUP BY 1, 2, 3 HAVING sum(n) <> 0 ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, wrap("count the calls of "+s.path, err)
	}
	defer rows.Close()
	var all []queue.Count
	for rows.Next() {
		var c queue.Count
		if err := rows.Scan(&c.Endpoint, &c.State, &c.Reason, &c.N); err != nil {
			return nil, wrap("count the calls of "+s.path, err)
		}
		all = append(all, c)
	}
	return all, wrap("count the calls of "+s.path, rows.Err())
}

// gatesQuery finds the longest due call of each gate by the head of each of its
// lines, and among those that are not in the index.
var gatesQuery = `WITH RECURSIVE fresh AS MATERIALIZED (SELECT gate, min(next_at) AS at FROM calls
		WHERE seq > (SELECT value FROM meta WHERE name = 'listed') AND state = 0 GROUP BY gate),
	l(gate, line) AS (SELECT gate, (` + minLine(`g.gate`) + `) FROM gates g
		UNION ALL SELECT gate, (` + minLine(`l.gate AND line > l.line`) + `) FROM l WHERE line IS NOT NULL),
	listed AS MATERIALIZED (SELECT gate, min((SELECT min(next_at) FROM calls INDEXED BY due
		WHERE state = 0 AND listed = 1 AND gate = l.gate AND line = l.line)) AS at FROM l WHERE line IS NOT NULL GROUP BY gate)
	SELECT endpoint, key, closed, source, paused, most, served,
	coalesce((SELECT n FROM tallies t WHERE t.gate = g.gate AND state = 0 AND reason = ''), 0),
	coalesce((SELECT n FROM tallies t WHERE t.gate = g.gate AND state = 1 AND reason = ''), 0),
	coalesce(min(f.at, i.at), f.at, i.at, 0)
	FROM gates g LEFT JOIN fresh f ON f.gate = g.gate LEFT JOIN listed i ON i.gate = g.gate ORDER BY endpoint, key`

// Gates implements queue.Gates.
func (s *Store) Gates(ctx context.Context) ([]queue.Gate, error) {
	rows, err := s.read.QueryContext(ctx, gatesQuery)
	if err != nil {
		return nil, wrap("read the gates of "+s.path, err)
	}
	defer rows.Close()
	var all []queue.Gate
	for rows.Next() {
		var g queue.Gate
		var closed, served, due int64
		err := rows.Scan(&g.Endpoint, &g.Key, &closed, &g.Source, &g.Paused, &g.Limit, &served, &g.Queued, &g.Running, &due)
		if err != nil {
			return nil, wrap("read the gates of "+s.path, err)
		}
		g.Closed, g.Served, g.Due = instant(closed), instant(served), instant(due)
		all = append(all, g)
	}
	return all, wrap("read the gates of "+s.path, rows.Err())
}

// sealed reads one sealed record of a call; nil: it is not kept.
func (s *Store) sealed(ctx context.Context, table string, seq int64) ([]byte, error) {
	var b []byte
	err := s.read.QueryRowContext(ctx, "SELECT sealed FROM "+table+" WHERE seq = ?", seq).Scan(&b)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return b, wrap("read "+s.path, err)
}

// Reveal implements queue.Opener.
func (s *Store) Reveal(ctx context.Context, id string) (queue.Call, error) {
	r, err := s.get(ctx, id)
	if err != nil {
		return queue.Call{}, err
	}
	sealed, err := s.sealed(ctx, "requests", r.seq)
	if err != nil {
		return queue.Call{}, err
	}
	if sealed == nil {
		return queue.Call{Facts: r.Facts}, fmt.Errorf("the request of call %s is %w: the call is %s", id, queue.ErrErased, r.State)
	}
	said, err := s.keys.OpenRequest(&r.Facts, sealed)
	return queue.Call{Facts: r.Facts, Request: said}, err
}

// Answer implements queue.Opener.
func (s *Store) Answer(ctx context.Context, id string) (queue.Result, error) {
	r, err := s.get(ctx, id)
	if err != nil {
		return queue.Result{}, err
	}
	sealed, err := s.sealed(ctx, "answers", r.seq)
	if err != nil {
		return queue.Result{}, err
	}
	if sealed == nil {
		return queue.Result{}, fmt.Errorf("an answer to call %s is %w: the call is %s", id, queue.ErrErased, r.State)
	}
	answer, err := s.keys.OpenAnswer(&r.Facts, sealed)
	answer.KeptUntil = r.KeptUntil
	return answer, err
}

// Revisions implements queue.Opener.
func (s *Store) Revisions(ctx context.Context, id string) ([]queue.Request, error) {
	r, err := s.get(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, "SELECT sealed FROM revisions WHERE seq = ? ORDER BY revision", r.seq)
	if err != nil {
		return nil, wrap("read "+s.path, err)
	}
	defer rows.Close()
	var all []queue.Request
	for rows.Next() {
		var sealed []byte
		if err := rows.Scan(&sealed); err != nil {
			return nil, wrap("read "+s.path, err)
		}
		said, err := s.keys.OpenRequest(&r.Facts, sealed)
		if err != nil {
			return nil, err
		}
		all = append(all, said)
	}
	return all, wrap("read "+s.path, rows.Err())
}
