package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/heedproject/heed/internal/queue"
	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"
)

// wrap says what kind of failure an error of the driver is, and what to do.
// The driver's text names no value that was bound.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if errors.Is(err, sql.ErrConnDone) || err.Error() == "sql: database is closed" {
		return fmt.Errorf("%s: %w", what, queue.ErrClosed)
	}
	kind, do := queue.ErrStorage, "see the cause"
	if e, ok := errors.AsType[*driver.Error](err); ok {
		do, kind = sort(e.Code())
	}
	return fmt.Errorf("%s: %w: %s: %w", what, kind, do, err)
}

// sort tells the kind of a result code (sqlite.org/rescode.html) and what to do.
func sort(c int) (do string, kind error) {
	switch c & 0xff {
	case code.SQLITE_FULL:
		return "free space on its file system; what was not acknowledged was not stored", queue.ErrFull
	case code.SQLITE_READONLY, code.SQLITE_CANTOPEN, code.SQLITE_PERM, code.SQLITE_AUTH:
		return "let heed write the file and its folder", queue.ErrStorage
	case code.SQLITE_CORRUPT, code.SQLITE_NOTADB:
		return "stop heed, copy the file and its -wal away, and restore a copy, " +
			"or rescue what can be read with: sqlite3 FILE .recover; nothing was overwritten", queue.ErrCorrupt
	case code.SQLITE_IOERR:
		return "check the disk and the space on it", queue.ErrStorage
	case code.SQLITE_TOOBIG, code.SQLITE_CONSTRAINT, code.SQLITE_MISMATCH:
		return "a value was refused; a body may have at most 1 GB", queue.ErrInvalid
	case code.SQLITE_BUSY, code.SQLITE_LOCKED:
		return "another program holds a lock on the file: stop it", queue.ErrOwned
	}
	return "see the cause", queue.ErrStorage
}
