package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// Group commit: one fsync for the operations that came together.
const (
	maxBatch = 512
	linger   = 2 * time.Millisecond
)

// op is one atomic step that waits for the writer. do may run twice, and
// writes nothing before it has checked everything.
type op struct {
	do   func(*book) error
	err  error
	done chan struct{}
}

// book is what the writer knows beside the database. Only the writer's
// goroutine touches it; undo takes it back when a transaction fails.
type book struct {
	s     *Store
	c     *sql.Conn
	q     statements
	gates map[gateKey]*gate
	byID  map[int64]*gate
	// out are the calls that are leased in this epoch, as they lie in the
	// file: those who settle them need not read them again.
	out   map[string]*row
	live  int   // calls queued or running
	token int64 // of the last lease
	// latest is the latest now that was told, see clock.
	latest int64
	last   int // size of the last batch

	m       *mover
	moving  bool
	written int // rows since the log was moved

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
	idle int64
	none uint16 // bit p: certainly no call of priority p is queued
	all  *gate  // of the whole endpoint; nil: none
}

// priorities are 0 to 9.
const priorities = 10

func (g *gate) has(priority int) bool { return g.none&(1<<priority) == 0 }

// wait notes that a call is queued.
func (g *gate) wait(priority int, at int64) {
	g.idle = min(g.idle, at)
	g.none &^= 1 << priority
}

type tally struct {
	gate   int64
	state  queue.State
	reason string
}

func newBook(ctx context.Context, s *Store, c *sql.Conn) (*book, error) {
	b := &book{s: s, c: c, gates: map[gateKey]*gate{}, byID: map[int64]*gate{}, out: map[string]*row{},
		delta: map[tally]int{}, served: map[*gate]bool{}}
	if err := b.q.prepare(ctx, c); err != nil {
		return nil, wrap("prepare "+s.path, err)
	}
	err := each(ctx, c, "SELECT gate, endpoint, key, closed, paused, most, served FROM gates", func(r *sql.Rows) error {
		g := &gate{}
		err := r.Scan(&g.id, &g.gateKey.endpoint, &g.gateKey.key, &g.closed, &g.paused, &g.most, &g.served)
		b.gates[g.gateKey], b.byID[g.id] = g, g
		return err
	})
	if err != nil {
		return nil, wrap("read the gates of "+s.path, err)
	}
	for _, g := range b.gates {
		g.all = b.gates[gateKey{g.gateKey.endpoint, ""}]
	}
	err = each(ctx, c, "SELECT gate, state, n FROM tallies WHERE state < 2", func(r *sql.Rows) error {
		var t tally
		var n int
		err := r.Scan(&t.gate, &t.state, &n)
		if g := b.byID[t.gate]; g != nil {
			b.count(g, t.state, n)
		}
		return err
	})
	if err != nil {
		return nil, wrap("count the calls of "+s.path, err)
	}
	err = each(ctx, c, "SELECT created FROM calls ORDER BY seq DESC LIMIT 1", func(r *sql.Rows) error { return r.Scan(&b.latest) })
	if err != nil {
		return nil, wrap("read the calls of "+s.path, err)
	}
	b.m, err = s.mover(ctx)
	return b, err
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

// do hands a step to the writer and waits until it is on the disk. Once handed
// over it is carried out, whatever becomes of ctx.
func (s *Store) do(ctx context.Context, f func(*book) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := &op{do: f, done: make(chan struct{})}
	select {
	case s.ops <- o:
		<-o.done
		return o.err
	case <-s.closed:
		return fmt.Errorf("write %s: %w", s.path, queue.ErrClosed)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run writes until closed. ops has no buffer: what is in it was not taken.
func (b *book) run(ops <-chan *op, closed <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case o := <-ops:
			b.commit(b.gather(o, ops, timer))
			b.order()
		case <-b.m.done:
			b.moved()
		case <-closed:
			if b.moving {
				<-b.m.done
			}
			close(b.m.work)
			return
		}
	}
}

// close empties the write-ahead log, so that the file is whole by itself.
func (b *book) close() {
	b.truncate()
	b.q.close()
}

// gather takes what waits. When the last batch was larger it lingers, since
// those who were answered are about to come back.
func (b *book) gather(first *op, ops <-chan *op, timer *time.Timer) []*op {
	batch := append(make([]*op, 0, max(b.last, 8)), first)
	timer.Reset(linger)
	for len(batch) < maxBatch {
		select {
		case o := <-ops:
			batch = append(batch, o)
			continue
		default:
		}
		if len(batch) >= b.last {
			break
		}
		select {
		case o := <-ops:
			batch = append(batch, o)
			continue
		case <-timer.C:
		}
		break
	}
	b.last = len(batch)
	return batch
}

// commit carries the operations out in one transaction. If one of them breaks
// it, each is tried alone, so that one cannot spoil the others.
func (b *book) commit(batch []*op) {
	err := b.transact(batch)
	if err != nil && len(batch) > 1 && !storage(err) {
		for _, o := range batch {
			b.commit([]*op{o})
		}
		return
	}
	for _, o := range batch {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}

// storage tells that trying again at once will not help.
func storage(err error) bool {
	return errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrStorage)
}

func (b *book) transact(batch []*op) error {
	b.reset()
	if _, err := b.c.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
		return wrap("write "+b.s.path, err)
	}
	for _, o := range batch {
		if o.err = o.do(b); b.broken != nil {
			return b.rollback(b.broken)
		}
	}
	if b.flush(); b.broken != nil {
		return b.rollback(b.broken)
	}
	if _, err := b.c.ExecContext(context.Background(), "COMMIT"); err != nil {
		return b.rollback(wrap("write "+b.s.path, err))
	}
	if b.erased {
		b.truncate()
	}
	return nil
}

func (b *book) reset() {
	b.broken, b.undo, b.erase, b.erased = nil, b.undo[:0], b.erase[:0], false
	clear(b.delta)
	clear(b.served)
}

// rollback takes everything back. It fails only where SQLite has done so by itself.
func (b *book) rollback(err error) error {
	b.c.ExecContext(context.Background(), "ROLLBACK")
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
	b.reset()
	return err
}

// flush writes what was put off to the end of the transaction.
func (b *book) flush() {
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
			b.fail(err)
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
