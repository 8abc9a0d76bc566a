package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// The write-ahead log is moved into the file beside the writer, who would
// otherwise stand still for it: the mover takes most of it over, while the
// writer goes on, and the writer then the little that has come since, so that
// the log is empty and begins anew.

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
	done chan struct{}
}

// mover opens the connection, and works until work is closed.
func (s *Store) mover(ctx context.Context) (*mover, error) {
	c, err := s.move.Conn(ctx)
	if err != nil {
		return nil, wrap("open "+s.path, err)
	}
	s.held = append(s.held, c)
	m := &mover{c: c, work: make(chan struct{}, 1), done: make(chan struct{}, 1)}
	s.writer.Go(func() {
		for range m.work {
			passive(c)
			m.done <- struct{}{}
		}
	})
	return m, nil
}

// passive moves what nobody is using. A disk that fails here fails the next
// commit too, which tells of it.
func passive(c *sql.Conn) {
	var busy, pages, moved int
	c.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &moved)
}

// order has the log moved when it has become long.
func (b *book) order() {
	if b.written >= moveAfter && !b.moving {
		b.moving, b.written = true, 0
		b.m.work <- struct{}{}
	}
}

// moved takes the rest over.
func (b *book) moved() {
	b.moving = false
	passive(b.c)
}

func pages(n int) string { return fmt.Sprintf("_pragma=wal_autocheckpoint(%d)", n) }
