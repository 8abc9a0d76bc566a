package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// rows runs a query outside of a transaction and calls f for every row. A
// connection that had died is replaced, unless rows have come already.
func (s *Store) rows(ctx context.Context, text string, args []any, f func(pgx.Rows) error) error {
	what := "read " + s.name
	if s.isClosed() {
		return fmt.Errorf("%s: %w", what, queue.ErrClosed)
	}
	asked := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	for n := 1; ; n++ {
		seen, err := s.query(ctx, text, args, f)
		if err != nil && asked.Err() != nil {
			return fmt.Errorf("%s: %w", what, asked.Err())
		}
		if err == nil || seen || n == tries || !passing(err) {
			return s.wrap(what, err)
		}
		s.pool.Reset()
	}
}

func (s *Store) query(ctx context.Context, text string, args []any, f func(pgx.Rows) error) (seen bool, err error) {
	c, err := s.pool.Acquire(ctx)
	if errors.Is(err, queue.ErrStorage) {
		return false, err // prepare has refused the server
	}
	if err != nil {
		return false, failed(slow(ctx, err))
	}
	defer c.Release()
	rows, err := c.Query(ctx, text, args...)
	if err != nil {
		return false, failed(slow(ctx, err))
	}
	defer rows.Close()
	for rows.Next() {
		seen = true
		if err := f(rows); err != nil {
			return true, err
		}
	}
	return seen, failed(slow(ctx, rows.Err()))
}

// withGate joins a call with its gate and that of the whole endpoint.
const withGate = ` JOIN gates g ON g.gate = c.gate LEFT JOIN gates e ON e.endpoint = g.endpoint AND e.key = ''`

const gateColumns = `, g.endpoint, g.key, greatest(g.closed, coalesce(e.closed, 0))`

// shown scans one row of a reader: a call that waits is due when its gate opens.
func shown(rows pgx.Rows, more ...any) (*row, error) {
	r := &row{}
	var closed int64
	if err := rows.Scan(r.fields(append([]any{&r.key.endpoint, &r.key.key, &closed, &r.trail}, more...)...)...); err != nil {
		return nil, failed(err)
	}
	if queue.State(r.state) == queue.Queued {
		r.times[3] = max(r.times[3], closed)
	}
	return r, r.read()
}

// get reads one call and a sealed column of it; nil: it is not kept.
func (s *Store) get(ctx context.Context, id, column string) (r *row, sealed []byte, err error) {
	none := fmt.Errorf("call %.64q: %w", id, queue.ErrNotFound)
	if !fits(id) {
		return nil, nil, none
	}
	err = s.rows(ctx, "SELECT "+columns+gateColumns+", c.trail, c."+column+" FROM "+fromAll+withGate+" WHERE c.id = $1",
		[]any{id}, func(rows pgx.Rows) (err error) {
			r, err = shown(rows, &sealed)
			return err
		})
	if err == nil && r == nil {
		err = none
	}
	return r, sealed, err
}

// Get implements queue.Reader.
func (s *Store) Get(ctx context.Context, id string) (queue.Facts, error) {
	r, _, err := s.get(ctx, id, "answer")
	if err != nil {
		return queue.Facts{}, err
	}
	return r.Facts, nil
}

// IDs implements queue.Index.
func (s *Store) IDs(ctx context.Context, prefix string, limit int) (ids []string, err error) {
	if !fits(prefix) {
		return nil, nil
	}
	err = s.rows(ctx, "SELECT id FROM calls WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3",
		[]any{prefix, queue.Beyond(prefix), limit}, func(rows pgx.Rows) error {
			var id string
			if err := rows.Scan(&id); err != nil {
				return failed(err)
			}
			ids = append(ids, id)
			return nil
		})
	return ids, err
}

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
	var page queue.Page
	var last int64
	args = append(args, limit+1)
	from := fromAll
	if len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s queue.State) bool { return s <= queue.Done }) {
		from, where = fromEnded, where+" AND b.state > 2"
	}
	text := "SELECT " + columns + gateColumns + ", NULL::bytea FROM " + from + withGate + where + " ORDER BY c.seq LIMIT $" + strconv.Itoa(len(args))
	err = s.rows(ctx, text, args, func(rows pgx.Rows) error {
		r, err := shown(rows)
		if err != nil {
			return err
		}
		if len(page.Calls) == limit {
			page.Next = strconv.FormatInt(last, 10)
			return nil
		}
		page.Calls, last = append(page.Calls, r.Facts), r.seq
		return nil
	})
	if err != nil {
		return queue.Page{}, err
	}
	return page, nil
}

// conditions turns a filter into SQL.
func conditions(f queue.Filter) (where string, args []any, err error) {
	parts := []string{"true"}
	add := func(part string, arg any) {
		args = append(args, arg)
		parts = append(parts, part+" $"+strconv.Itoa(len(args)))
	}
	for _, w := range []struct{ column, word string }{
		{"g.endpoint", f.Endpoint}, {"g.key", f.Gate}, {"c.tenant", f.Tenant}, {"c.correlation", f.CorrelationID},
		{"c.reason", f.Reason}, {"c.class", f.Class},
	} {
		if !fits(w.word) {
			return "", nil, fmt.Errorf("list calls: a word of the filter is not text in UTF-8: %w", queue.ErrInvalid)
		}
		if w.word != "" {
			add(w.column+" =", w.word)
		}
	}
	for _, w := range []struct {
		part string
		at   time.Time
	}{
		{"c.created >=", f.CreatedFrom}, {"c.created <", f.CreatedBefore}, {"c.kept_until > 0 AND c.kept_until <", f.KeptBefore},
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
		add("c.seq >", after)
	}
	if len(f.States) > 0 {
		words := make([]string, len(f.States))
		for i, s := range f.States {
			words[i] = strconv.Itoa(int(s))
		}
		parts = append(parts, stateOf+" IN ("+strings.Join(words, ",")+")")
	}
	return " WHERE " + strings.Join(parts, " AND "), args, nil
}

// Counts implements queue.Reader.
func (s *Store) Counts(ctx context.Context) ([]queue.Count, error) {
	var all []queue.Count
	err := s.rows(ctx, `SELECT g.endpoint, t.state, t.reason, sum(t.n)::bigint
		FROM (SELECT gate, state, reason, n FROM tallies WHERE state > 0
			UNION ALL SELECT gate, 0, '', n FROM live
			UNION ALL SELECT gate, 0, '', -count(*) FROM leases GROUP BY gate
			UNION ALL SELECT gate, 1, '', count(*) FROM leases GROUP BY gate) t JOIN gates g USING (gate)
		GROUP BY 1, 2, 3 HAVING sum(t.n) <> 0 ORDER BY 1, 2, 3`, nil, func(rows pgx.Rows) error {
		var c queue.Count
		var state int16
		err := rows.Scan(&c.Endpoint, &state, &c.Reason, &c.N)
		c.State = queue.State(state)
		all = append(all, c)
		return failed(err)
	})
	return all, err
}

// Reveal implements queue.Opener.
func (s *Store) Reveal(ctx context.Context, id string) (queue.Call, error) {
	r, sealed, err := s.get(ctx, id, "request")
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
	r, sealed, err := s.get(ctx, id, "answer")
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
	r, _, err := s.get(ctx, id, "request")
	if err != nil {
		return nil, err
	}
	var all []queue.Request
	err = s.rows(ctx, "SELECT sealed FROM revisions WHERE seq = $1 ORDER BY revision", []any{r.seq}, func(rows pgx.Rows) error {
		var sealed []byte
		if err := rows.Scan(&sealed); err != nil {
			return failed(err)
		}
		said, err := s.keys.OpenRequest(&r.Facts, sealed)
		all = append(all, said)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
