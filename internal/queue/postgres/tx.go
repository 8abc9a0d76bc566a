package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// patience is how long a step may take, its repetitions included.
	patience = 10 * time.Second
	// tries is how often a step is carried out that meets others'.
	tries = 4
)

// tx is one transaction. Statements are queued and sent together, so that it
// takes as many round trips as it needs answers.
type tx struct {
	ledger
	ctx   context.Context
	conn  *pgx.Conn
	batch *pgx.Batch
	begun bool
	// again tells that an earlier try may have been committed, though its
	// connection died, or its session was ended, before it said so.
	again bool
}

const begin = "BEGIN"

// queue adds a statement.
func (t *tx) queue(text string, args ...any) *pgx.QueuedQuery {
	if t.batch == nil {
		t.batch = &pgx.Batch{}
	}
	if !t.begun {
		t.begun = true
		t.batch.Queue(begin)
	}
	return t.batch.Queue(text, args...)
}

// flush sends what is queued and waits for the answers.
func (t *tx) flush() error {
	if t.batch == nil {
		return nil
	}
	b := t.batch
	t.batch = nil
	return failed(t.conn.SendBatch(t.ctx, b).Close())
}

// script runs statements without values.
func (t *tx) script(text string) error {
	_, err := t.conn.PgConn().Exec(t.ctx, text).ReadAll()
	return failed(err)
}

// errNotCommitted is for a server that answers COMMIT with another word: it
// does when the transaction had failed.
var errNotCommitted = errors.New("the server did not commit")

// commit writes the ledger, sends what is queued and ends the transaction.
func (t *tx) commit() error {
	t.ledger.write(t)
	t.queue("COMMIT").Exec(func(said pgconn.CommandTag) error {
		if said.String() != "COMMIT" {
			return fmt.Errorf("%w: it said %q", errNotCommitted, said)
		}
		return nil
	})
	return t.flush()
}

// attempt carries a step out in a transaction, once more if it met another
// gateway's or a connection that had died. f may run several times; it ends
// with commit, or without for a step that changes nothing. What becomes of ctx
// after the start does not matter: a step that was begun is carried out.
func (s *Store) attempt(ctx context.Context, what string, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return fmt.Errorf("%s: %w", what, queue.ErrClosed)
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), patience, errSlow)
	defer cancel()
	again := false
	for n := 1; ; n++ {
		err := s.once(ctx, again, f)
		if moved(err) {
			s.pool.Reset() // a new session may find the primary
		}
		if err == nil || n == tries || !passing(err) {
			return s.wrap(what, err)
		}
		if cut(err) {
			again = true
			s.pool.Reset() // the others have most likely died too
		}
	}
}

func (s *Store) once(ctx context.Context, again bool, f func(*tx) error) error {
	c, err := s.pool.Acquire(ctx)
	if errors.Is(err, queue.ErrStorage) {
		return err // prepare has refused the server
	}
	if err != nil {
		return failed(slow(ctx, err))
	}
	defer c.Release() // closes it if the transaction is still open
	t := &tx{ctx: ctx, conn: c.Conn(), again: again}
	if err = f(t); err == nil {
		err = t.flush()
	}
	if t.begun && !c.Conn().IsClosed() && c.Conn().PgConn().TxStatus() != 'I' {
		if _, e := c.Exec(ctx, "ROLLBACK"); e != nil && err == nil {
			err = failed(e)
		}
	}
	if _, driver := errors.AsType[failure](err); driver {
		return failed(slow(ctx, err))
	}
	return err
}

// slow adds the cause to an error that the end of patience has brought about.
func slow(ctx context.Context, err error) error {
	if ctx.Err() != nil && context.Cause(ctx) == errSlow {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return err
}
