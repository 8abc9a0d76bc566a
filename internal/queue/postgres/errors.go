package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5/pgconn"
)

// failure is an error of the driver on its way to wrap: what the store itself
// says of a step passes untouched.
type failure struct{ err error }

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// failed marks an error of the driver.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// errSlow is the cause with which a step ends that the server did not answer.
var errSlow = errors.New("the server did not answer in time")

// errMet ends a step that another session was at first.
var errMet = fmt.Errorf("somebody else has changed the call in this instant: try again: %w", queue.ErrState)

// wrap says what kind of failure an error of the driver is, and what to do.
// The error itself ends here: it may hold the whole configuration. Its text
// names host, user and database, and no value that was bound.
func (s *Store) wrap(what string, err error) error {
	f, ok := errors.AsType[failure](err)
	if !ok {
		return err
	}
	const wait = "see whether the server runs and can be reached; heed goes on by itself when it answers"
	if e, ok := errors.AsType[*pgconn.PgError](f.err); ok {
		do, kind := sort(e.Code)
		return fmt.Errorf("%s: %w: %s: %s", what, kind, do, oneLine(f.err))
	}
	if s.isClosed() {
		return fmt.Errorf("%s: %w", what, queue.ErrClosed)
	}
	return fmt.Errorf("%s: %w: %s: %s", what, queue.ErrStorage, wait, oneLine(f.err))
}

// oneLine folds the driver's list of hosts that it tried.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// sort tells what to do about a SQLSTATE (postgresql.org/docs, appendix A), and
// its kind.
func sort(code string) (do string, kind error) {
	switch code {
	case "53100":
		return "free space on the server's disk; what was not acknowledged was not stored", queue.ErrFull
	case "53300":
		return "the server has no connection left: raise its max_connections, or end other sessions", queue.ErrStorage
	case "28P01", "28000":
		return "the server does not let this user in: correct user, password or pg_hba.conf", queue.ErrStorage
	case "3D000":
		return "the database does not exist: make it with createdb", queue.ErrStorage
	case "42501":
		return "the user may not do this: make it the owner of the schema, or let it create one", queue.ErrStorage
	case "25006":
		return "the server takes no writes, since it is a standby or set to read only: name the primary", queue.ErrStorage
	case "57P01", "57P02", "57P03":
		return "the server is stopping or starting; heed goes on by itself when it is up", queue.ErrStorage
	case "58030":
		return "the server cannot read or write its disk: check the disk", queue.ErrStorage
	case "55P03", "57014":
		return "another session holds a lock for too long: end it (pg_stat_activity)", queue.ErrStorage
	case "42P01", "3F000":
		return "a table of the queue is gone: restore the schema, or restart heed to make an empty one", queue.ErrStorage
	}
	switch code[:min(2, len(code))] {
	case "XX":
		return "stop heed, copy the server's data away, and restore a copy", queue.ErrCorrupt
	case "22", "54":
		return "a value was refused; a body may have at most 1 GB", queue.ErrInvalid
	}
	return "see the cause", queue.ErrStorage
}

// passing tells that the same step may succeed at once: it met another
// gateway's, or its connection had died.
func passing(err error) bool {
	f, ok := errors.AsType[failure](err)
	if !ok {
		return errors.Is(err, errMet)
	}
	e, ok := errors.AsType[*pgconn.PgError](f.err)
	if !ok {
		_, refused := errors.AsType[*pgconn.ConnectError](f.err)
		return !refused && !errors.Is(f.err, errSlow)
	}
	switch e.Code {
	case "40001", "40P01", // serialization failure, deadlock
		"23505", // somebody has taken the id or the key
		"22012": // a lease was lost
		return true
	}
	return ended(e)
}

// ended tells that the server has ended the session.
func ended(e *pgconn.PgError) bool {
	switch e.Code {
	case "57P01", "57P02", "57P03", "57P05", "25P03":
		return true
	}
	return false
}

// cut tells that a step ended with its connection. It may have been committed:
// a session that is ended while it commits does so first, and what it says of
// that may be followed, or replaced, by word of its end.
func cut(err error) bool {
	if e, said := errors.AsType[*pgconn.PgError](err); said {
		return ended(e)
	}
	return !errors.Is(err, errMet)
}

// met tells that an id, a key or a place was taken already.
func met(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23505"
}

// lost tells that not all claims of saveAll were held.
func lost(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "22012"
}

// moved tells that the server takes no writes any more.
func moved(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "25006"
}
