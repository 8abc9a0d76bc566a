package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/heedproject/heed/internal/queue"
	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"
)

// The write-ahead log is moved into the file beside the writer, who would
// otherwise stand still for it: the mover takes most of it over, while the
// writer goes on, and the writer then the little that has come since, so that
// the log is empty and begins anew. SQLite syncs the file only with the move
// that takes the last of the log (walCheckpoint in its wal.c), which is the
// writer's. So the mover syncs what it has moved by itself, else the writer
// would stand still for all of that.

// moveAfter is after how much that was written the log is moved, which is 20 to
// 30 MB of it: rows, of which many share a page, and a kilobyte of what is
// sealed counts as one more. The driver does not tell how long the log is.
const moveAfter = 32000

// lastResort is at how many pages of the log SQLite moves it in the middle of
// a commit, if the mover does not get to it.
const lastResort = 32000

// mover owns the connection that moves the log.
type mover struct {
	c    *sql.Conn
	work chan struct{} // one order at most: the writer waits for the answer
	done chan error
}

// mover opens the connection, and works until work is closed.
func (s *Store) mover(ctx context.Context) (*mover, error) {
	c, err := s.move.Conn(ctx)
	if err != nil {
		return nil, wrap("open "+s.path, err)
	}
	s.held = append(s.held, c)
	if s.settle == nil {
		if s.file, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
			return nil, fmt.Errorf("open %s: %w: %w", s.path, queue.ErrStorage, err)
		}
		s.settle = func() error { return syncData(s.file) }
	}
	m := &mover{c: c, work: make(chan struct{}, 1), done: make(chan error, 1)}
	s.writer.Go(func() {
		for range m.work {
			m.done <- s.shift(c)
		}
	})
	return m, nil
}

// shift moves the log in two steps: what comes during the first, long one is
// moved with the second, and only what comes during that is left to the writer.
func (s *Store) shift(c *sql.Conn) error {
	for range 2 {
		if err := s.passive(c); err != nil {
			return err
		}
		if err := s.settle(); err != nil {
			return fmt.Errorf("%w: %w", errUnsynced, err)
		}
	}
	return nil
}

// passive moves what nobody is using.
func (s *Store) passive(c *sql.Conn) error {
	_, err := s.checkpoint(context.Background(), c, "PASSIVE")
	return err
}

// empty moves all of the log and truncates it, unless a reader is in the way.
func (s *Store) empty(ctx context.Context, c *sql.Conn) (emptied bool, err error) {
	return s.checkpoint(ctx, c, "TRUNCATE")
}

// movable tells whether the file could take all of the log. To try it would use
// up what room there is.
func (s *Store) movable() bool {
	info, err := os.Stat(s.path + "-wal")
	free, known := queue.Room(filepath.Dir(s.path))
	return err != nil || !known || free >= info.Size()
}

// rewriteLog writes the log over itself, so that a sync takes all of it.
func (s *Store) rewriteLog() error {
	f, err := os.OpenFile(s.path+"-wal", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w: %w", s.path, queue.ErrStorage, err)
	}
	defer f.Close()
	part := make([]byte, 256<<10)
	for at, end := int64(0), false; !end; {
		n, err := f.ReadAt(part, at)
		if end = err == io.EOF; err == nil || end {
			_, err = f.WriteAt(part[:n], at)
		}
		if err != nil {
			return fmt.Errorf("write the log of %s anew: %w: %w", s.path, queue.ErrStorage, err)
		}
		at += int64(n)
	}
	if err := syncData(f); err != nil {
		return s.lost(err)
	}
	return nil
}

// errUnsynced tells that the file may lack what the log is thought to have given
// it: where its sync fails, the system may forget that there is something to be
// written, and the next sync succeeds. Any other failure is made good by the
// next move.
var errUnsynced = errors.New("the file was not synced")

func (s *Store) checkpoint(ctx context.Context, c *sql.Conn, how string) (all bool, err error) {
	var busy, pages, moved int
	err = c.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+how+")").Scan(&busy, &pages, &moved)
	if err == nil && s.moved != nil {
		err = s.moved()
	}
	if e, ok := errors.AsType[*driver.Error](err); ok && e.Code() == code.SQLITE_IOERR_FSYNC {
		err = fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return err == nil && busy == 0, err
}

// shifted notes what came of a move.
func (b *book) shifted(err error) {
	if errors.Is(err, errUnsynced) && b.dead == nil {
		b.die(b.s.lost(err))
	}
}

// order has the log moved when it has become long.
func (b *book) order() {
	if b.written >= b.s.few.log && !b.moving && b.dead == nil {
		b.moving, b.written = true, 0
		b.m.work <- struct{}{}
	}
}

// moved takes the rest over.
func (b *book) moved(err error) {
	b.moving = false
	b.shifted(err)
	if b.stale && b.dead == nil {
		b.truncate()
	} else if err == nil {
		b.shifted(b.s.passive(b.c))
	}
}

func pages(n int) string { return fmt.Sprintf("_pragma=wal_autocheckpoint(%d)", n) }
