package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/heedproject/heed/internal/queue"
)

// book is what the writer knows beside the database. Only the writer's
// goroutine touches it; undo takes it back when a transaction fails.
type book struct {
	s     *Store
	c     *sql.Conn
	q     statements[*sql.Stmt]
	gates map[gateKey]*gate
	byID  map[int64]*gate
	// out are the calls that are leased in this epoch, as they lie in the
	// file: those who settle them need not read them again.
	out   map[string]*row
	live  int   // calls queued or running
	token int64 // of the last lease
	// latest is the latest now that was told, see clock.
	latest  int64
	seq     int64 // of the last call that was enqueued
	listed  int64 // the queued calls up to this seq are in the index of due calls
	keys    ledger
	arrived int // keys that the transaction took

	d       *disk
	pending []*op  // committed, and not on the disk
	rush    bool   // somebody in the transaction need not wait for the disk
	sizes   [2]int // of the last batches
	dead    error  // the disk cannot be trusted any more

	m       *mover
	moving  bool
	written int // since the log was moved, see moveAfter

	erase  []int64 // whose requests go at the end of the transaction
	erased bool    // the transaction erased something for good
	stale  bool    // what was erased may still lie in the write-ahead log
	broken error   // the first failure of the transaction
	undo   []func()
	delta  map[tally]int
	served map[*gate]bool
}

type gateKey struct{ endpoint, key string }

// gate is the row of a quota key and what is in it.
type gate struct {
	id              int64
	gateKey         gateKey
	closed          int64
	paused          bool
	most            int
	served          int64
	queued, running int
	// idle is when the next call may be due, as far as is known: never later
	// than the truth, so that nothing is overlooked.
	idle   int64
	index  lines             // which may have a call in the index, once learnt
	learnt bool              // nothing in the index is of another line
	fresh  map[int][]arrival // of each lane, in order
	turn   int               // the lane that had the last one
	all    *gate             // of the whole endpoint; nil: none
}

type tally struct {
	gate   int64
	state  queue.State
	reason string
}

func newBook(ctx context.Context, s *Store, c *sql.Conn) (*book, error) {
	b := &book{s: s, c: c, gates: map[gateKey]*gate{}, byID: map[int64]*gate{}, out: map[string]*row{},
		delta: map[tally]int{}, served: map[*gate]bool{}}
	var err error
	if b.q, err = prepare(ctx, c); err != nil {
		return nil, wrap("prepare "+s.path, err)
	}
	if err := b.readGates(ctx, c); err != nil {
		return nil, wrap("read the gates of "+s.path, err)
	}
	if err := b.readCalls(ctx, c); err != nil {
		return nil, wrap("read the calls of "+s.path, err)
	}
	if b.d, err = s.disk(); err != nil {
		return nil, err
	}
	if b.m, err = s.mover(ctx); err != nil {
		close(b.d.work)
	}
	return b, err
}

// readGates reads the gates and how many calls of each queue and run.
func (b *book) readGates(ctx context.Context, c *sql.Conn) error {
	err := each(ctx, c, "SELECT gate, endpoint, key, closed, paused, most, served FROM gates", func(r *sql.Rows) error {
		g := &gate{}
		err := r.Scan(&g.id, &g.gateKey.endpoint, &g.gateKey.key, &g.closed, &g.paused, &g.most, &g.served)
		b.gates[g.gateKey], b.byID[g.id] = g, g
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range b.gates {
		g.all = b.gates[gateKey{g.gateKey.endpoint, ""}]
	}
	return each(ctx, c, "SELECT gate, state, n FROM tallies WHERE state < 2", func(r *sql.Rows) error {
		var t tally
		var n int
		err := r.Scan(&t.gate, &t.state, &n)
		if g := b.byID[t.gate]; g != nil {
			b.count(g, t.state, n)
		}
		return err
	})
}

// readCalls reads how far the calls go, and what is kept in memory of them.
func (b *book) readCalls(ctx context.Context, c *sql.Conn) error {
	err := each(ctx, c, "SELECT seq, created FROM calls ORDER BY seq DESC LIMIT 1", func(r *sql.Rows) error {
		return r.Scan(&b.seq, &b.latest)
	})
	if err != nil {
		return err
	}
	marks := map[string]*int64{"filed": &b.keys.filed, "listed": &b.listed}
	err = each(ctx, c, "SELECT name, value FROM meta", func(r *sql.Rows) error {
		var name string
		var value int64
		err := r.Scan(&name, &value)
		if to := marks[name]; to != nil {
			*to = value
			b.seq = max(b.seq, value) // no seq is used twice, even if the last calls were erased
		}
		return err
	})
	if err == nil {
		err = b.readKeys(ctx, c)
	}
	if err == nil {
		err = b.readFresh(ctx, c)
	}
	return err
}

// each calls f for every row.
func each(ctx context.Context, c *sql.Conn, text string, f func(*sql.Rows) error) error {
	rows, err := c.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (b *book) count(g *gate, s queue.State, n int) {
	switch s {
	case queue.Queued:
		g.queued += n
		b.live += n
	case queue.Running:
		g.running += n
		b.live += n
	}
}

// move counts n calls of a gate more (or fewer) in a state.
func (b *book) move(g *gate, s queue.State, reason string, n int) {
	if !s.Ended() {
		reason = "" // the reasons of waits are not counted
	}
	b.delta[tally{g.id, s, reason}] += n
	b.count(g, s, n)
	b.undo = append(b.undo, func() { b.count(g, s, -n) })
}

// close empties the write-ahead log, so that the file is whole by itself. After
// a failure the log is what is left to go by.
func (b *book) close() {
	if b.dead == nil {
		b.truncate()
	}
	shut(&b.q)
}

// flush writes what was put off to the end of the transaction.
func (b *book) flush() {
	b.file()
	b.list()
	for t, n := range b.delta {
		if n != 0 {
			b.exec(b.q.tally, t.gate, t.state, t.reason, n)
		}
	}
	if len(b.erase) > 0 {
		b.exec(b.q.erase, array(b.erase))
	}
	for g := range b.served {
		b.exec(b.q.serve, g.served, g.id)
	}
}

// exec runs a statement and returns how many rows it changed. A failure breaks
// the transaction.
func (b *book) exec(q *sql.Stmt, args ...any) int {
	if b.broken != nil {
		return 0
	}
	r, err := q.ExecContext(context.Background(), args...)
	if err != nil {
		b.fail(err)
		return 0
	}
	n, _ := r.RowsAffected()
	b.written += int(n)
	return int(n)
}

// row runs a query for one row and tells whether there was one.
func (b *book) row(q *sql.Stmt, to []any, args ...any) bool {
	if b.broken != nil {
		return false
	}
	err := q.QueryRowContext(context.Background(), args...).Scan(to...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		b.fail(err)
	}
	return err == nil
}

// errEnough is what a reader of rows says that wants no more of them.
var errEnough = errors.New("enough")

// rows runs a query and calls f for every row. f runs no statement.
func (b *book) rows(q *sql.Stmt, f func(scan func(...any) error) error, args ...any) {
	if b.broken != nil {
		return
	}
	rows, err := q.QueryContext(context.Background(), args...)
	if err != nil {
		b.fail(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			if !errors.Is(err, errEnough) {
				b.fail(err)
			}
			return
		}
	}
	b.fail(rows.Err())
}

func (b *book) fail(err error) {
	if b.broken == nil && err != nil {
		b.broken = wrap("write "+b.s.path, err)
	}
}
