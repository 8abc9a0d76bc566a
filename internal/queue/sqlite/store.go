// Package sqlite keeps the queue in one SQLite file, in the process.
//
// The process that opens the file owns it alone: a second one is refused, and
// each start is a new epoch in which the leases of the last are free at once.
// One goroutine writes. It carries out the operations that wait, up to 512, in
// one transaction (WAL). Beside it one goroutine syncs the log, and only then
// are they answered; what comes meanwhile is the next transaction. So an
// operation may be seen by a reader shortly before it is on the disk. Another
// goroutine moves the log into the file. Readers have connections of their own
// and do not disturb them.
//
// What a call costs is mostly the pages that change. So what would change a
// page for each call, its place in the order of its gate and its idempotency
// key, is kept in memory first and written for many calls at once; the rows of
// the calls say it for a restart. What is known of calls under lease is kept in
// memory too, so that settling reads nothing.
//
// Limits: files on network file systems are refused, since their locks do not
// hold. A damaged file is refused and left as it is; a damaged call in a file
// that is whole ends as dead, and holds no other up.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/heedproject/heed/internal/queue"
	driver "modernc.org/sqlite"
)

// Options says where and how to keep the queue.
type Options struct {
	// Path is the file. Its folder must exist. Beside it lie -wal, -shm and
	// -owner files.
	Path string
	// Keys seal what calls say. Required.
	Keys *queue.Keys
	Keep queue.Keep
	// Most bounds the calls that are queued or running. 0: no bound but the disk.
	Most int

	unsynced bool         // for tests that need no disk
	sync     func() error // for tests of a slow disk, and of one that fails
	moved    func() error // for tests of a disk that fails when the log is moved
	settle   func() error // for tests of a disk that fails when the file is synced
	few      few          // for tests of few calls
}

// few is how much is kept in memory, to be written together later.
type few struct {
	fresh int64 // calls that are not in the index of due calls
	step  int64 // are entered into it with one transaction
	keys  int   // idempotency keys that are not filed
	filed int   // are filed with one transaction, at least
	log   int   // is written before the log is moved, see moveAfter
}

// Store is a queue.Store.
type Store struct {
	path  string
	keys  *queue.Keys
	keep  queue.Keep
	most  int
	epoch int64

	few    few
	owner  *sql.DB // holds the lock on the -owner file
	write  *sql.DB // one connection
	read   *sql.DB
	move   *sql.DB      // one connection, see mover
	wal    *os.File     // the write-ahead log, to sync it; nil: not opened
	sync   func() error // does so
	file   *os.File     // the database, to sync it; nil: not opened
	settle func() error // does so
	moved  func() error // what more came of moving the log
	ops    chan *op     // has room, so that who hands one over sleeps once only
	closed chan struct{}
	ended  chan struct{} // the writer has
	close  sync.Once
	held   []*sql.Conn // taken out of their pools for good
	failed bool        // the disk did; only the log is to go by
	writer sync.WaitGroup
}

var (
	_ queue.Store    = (*Store)(nil)
	_ queue.Beginner = (*Store)(nil)
)

// Open opens the file, or makes it, and owns it until Close.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Keys == nil {
		return nil, fmt.Errorf("open %s: no key to seal it with: make one with heed keys new", o.Path)
	}
	if err := checkPlace(o.Path); err != nil {
		return nil, err
	}
	s := &Store{path: o.Path, keys: o.Keys, keep: o.Keep, most: o.Most, sync: o.sync, moved: o.moved, settle: o.settle,
		few: cmp.Or(o.few, few{fresh: 8192, step: 1024, keys: 1 << 16, filed: 128, log: moveAfter}),
		ops: make(chan *op, maxBatch), closed: make(chan struct{}), ended: make(chan struct{})}
	b, err := s.start(ctx, o)
	if err != nil {
		s.closeFiles()
		return nil, err
	}
	s.writer.Go(func() {
		b.run(s.ops, s.closed)
		close(s.ended)
		b.close()
	})
	return s, nil
}

// checkPlace refuses a folder that is not there or not on this machine.
func checkPlace(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("open %s: its folder does not exist: make it, or give another path: %w", path, queue.ErrStorage)
	}
	if name := networkFS(dir); name != "" {
		return fmt.Errorf("open %s: it lies on a network file system (%s), whose locks do not hold: "+
			"give a path on a local disk, or use Postgres: %w", path, name, queue.ErrStorage)
	}
	return nil
}

// start takes the lock, checks and migrates the file, and makes the book.
func (s *Store) start(ctx context.Context, o Options) (*book, error) {
	syncFaster()
	if err := s.own(ctx); err != nil {
		return nil, err
	}
	// A commit does not wait for the disk: what is committed is synced beside
	// it (see disk), and SQLite syncs before it moves the log into the file.
	synced := "_pragma=synchronous(NORMAL)"
	if o.unsynced {
		synced, s.sync = "_pragma=synchronous(OFF)", func() error { return nil }
		s.settle = s.sync
	}
	s.write = open(s.path, "_txlock=immediate", "_pragma="+busy(locked), "_journal_mode=WAL", synced,
		"_pragma=cache_size(-16384)", "_pragma=secure_delete(FAST)",
		pages(lastResort), "_pragma=temp_store(MEMORY)", "_pragma=journal_size_limit(67108864)")
	s.write.SetMaxOpenConns(1)
	c, err := s.write.Conn(ctx)
	if err != nil {
		return nil, wrap("open "+s.path, err)
	}
	s.held = append(s.held, c)
	if err := migrate(ctx, c, s.path); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, c); err != nil {
		return nil, err
	}
	s.read = open(s.path, "mode=ro", "_pragma="+busy(locked), "_pragma=cache_size(-2048)", "_pragma=query_only(1)")
	s.read.SetMaxOpenConns(4)
	if err := s.settleLog(ctx, c); err != nil {
		return nil, err
	}
	if err := s.checkKeys(ctx, c); err != nil {
		return nil, err
	}
	s.move = open(s.path, "_pragma=busy_timeout(0)", synced, "_pragma=cache_size(-64)", pages(0))
	s.move.SetMaxOpenConns(1)
	return newBook(ctx, s, c)
}

// syncFaster asks for fdatasync(2) instead of fsync: it leaves the time stamps
// of the log out, which nothing needs, and keeps a commit just as durable.
// Where there is none, nothing changes.
var syncFaster = sync.OnceFunc(func() { driver.Fdatasync(true) })

// open makes a pool; nothing is opened yet.
func open(path string, params ...string) *sql.DB {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: strings.Join(params, "&")}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		panic(err) // only if the driver is not linked
	}
	return db
}

// own takes the exclusive lock of a file beside the database. SQLite's own
// locking does it, on every system alike, and a killed process loses it.
func (s *Store) own(ctx context.Context) error {
	s.owner = open(s.path+"-owner", "_pragma=busy_timeout(0)", "_pragma=journal_mode(MEMORY)")
	s.owner.SetMaxOpenConns(1)
	c, err := s.owner.Conn(ctx)
	if err == nil {
		s.held = append(s.held, c)
		_, err = c.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err == nil {
		return nil
	}
	if err = wrap("own "+s.path, err); errors.Is(err, queue.ErrOwned) {
		return fmt.Errorf("open %s: %w: stop that one, or give this one another file", s.path, queue.ErrOwned)
	}
	return err
}

// begin starts a new epoch: every lease of the last one has run out.
func (s *Store) begin(ctx context.Context, c *sql.Conn) error {
	if err := s.checkPages(ctx, c); err != nil {
		return err
	}
	err := c.QueryRowContext(ctx, "UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value").Scan(&s.epoch)
	if err == nil {
		_, err = c.ExecContext(ctx, "UPDATE calls SET lease_until = 1 WHERE state = 1")
	}
	return wrap("begin an epoch in "+s.path, err)
}

// settleLog moves what the last process left in the log into the file. That one
// may have ended because its disk did not take the log: then the system's memory
// has what the disk has not, a sync does not write it any more, and whatever
// followed it in the log would be lost with the power. Where there is no room to
// move it, it is written anew where it lies: a disk that was full when a process
// ended does not keep the next one from starting.
func (s *Store) settleLog(ctx context.Context, c *sql.Conn) error {
	if !s.movable() {
		return s.rewriteLog()
	}
	_, err := s.empty(ctx, c)
	s.failed = errors.Is(err, errUnsynced)
	return wrap("move the log of "+s.path, err)
}

// smallFile is up to which size the whole file is checked at start. A larger
// one would take longer than a restart may; damage in it is found when its
// page is read.
const smallFile = 32 << 20

// checkPages looks for damage.
func (s *Store) checkPages(ctx context.Context, c *sql.Conn) error {
	info, err := os.Stat(s.path)
	if err != nil || info.Size() > smallFile {
		return wrap("look at "+s.path, err)
	}
	var said string
	err = c.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said)
	if err != nil {
		return wrap("check "+s.path, err)
	}
	if said != "ok" {
		do, _ := sort(11) // SQLITE_CORRUPT
		return fmt.Errorf("check %s: %w: %s", s.path, queue.ErrCorrupt, do)
	}
	return nil
}

// checkKeys notes which key seals from now on, and refuses a ring that lacks
// one which did and still has records: these could not be sent, and what was
// enqueued under it would not be known when it is repeated.
func (s *Store) checkKeys(ctx context.Context, c *sql.Conn) error {
	var missing []int64
	err := each(ctx, c, "SELECT key FROM sealers", func(r *sql.Rows) error {
		var key int64
		err := r.Scan(&key)
		if !s.keys.Has(keyID(key)) {
			missing = append(missing, key)
		}
		return err
	})
	if err != nil {
		return wrap("read the keys of "+s.path, err)
	}
	var use map[string]queue.Use
	if len(missing) > 0 { // looking at every record takes time
		if use, err = s.KeyUse(ctx); err != nil {
			return err
		}
	}
	for _, key := range missing {
		id := keyID(key)
		if n := use[id].Records + use[id].Keys; n > 0 {
			return fmt.Errorf("open %s: %d of its records and idempotency keys are under key %s, which is not in the ring: add it: %w",
				s.path, n, id, queue.ErrKey)
		}
		if _, err := c.ExecContext(ctx, "DELETE FROM sealers WHERE key = ?", key); err != nil {
			return wrap("write the keys of "+s.path, err)
		}
	}
	_, err = c.ExecContext(ctx, "INSERT OR IGNORE INTO sealers VALUES (?)", keyNumber(s.keys.Active()))
	return wrap("write the keys of "+s.path, err)
}

// Close ends the writer after the transaction under way and lets the file go.
// What waits to be written gets ErrClosed.
func (s *Store) Close() error {
	var err error
	s.close.Do(func() {
		close(s.closed)
		s.writer.Wait()
		err = s.closeFiles()
	})
	return err
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.wal != nil {
		errs = append(errs, s.wal.Close())
	}
	// Readers first: the last connection to close empties the log, and a
	// reader could not. The lock goes last.
	all := []*sql.DB{s.read, s.write, s.move, s.owner}
	if s.failed && s.read != nil {
		errs = append(errs, s.keepLog())
		all = []*sql.DB{s.write, s.move, s.read, s.owner}
	}
	for _, c := range slices.Backward(s.held) {
		errs = append(errs, c.Close())
	}
	for _, db := range all {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.file != nil { // last: to close it gives up all locks that the process has on it (fcntl(2))
		errs = append(errs, s.file.Close())
	}
	return wrap("close "+s.path, errors.Join(errs...))
}

// keepLog makes sure that there is a reader, who as the last to close leaves the
// log to the next start, which moves all of it anew.
func (s *Store) keepLog() error {
	var tables int
	return s.read.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables)
}
