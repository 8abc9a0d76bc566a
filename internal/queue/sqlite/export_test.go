package sqlite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// Unsynced makes a store that leaves the disk to the system: it behaves the
// same as long as the machine runs.
func Unsynced(o Options) Options {
	o.unsynced = true
	return o
}

// Synced makes a store whose log is synced by sync.
func Synced(o Options, sync func() error) Options {
	o.sync = sync
	return o
}

// Moved makes a store that is told by moved what comes of moving its log.
func Moved(o Options, moved func() error) Options {
	o.moved = moved
	return o
}

// Settled makes a store whose file is synced by settle.
func Settled(o Options, settle func() error) Options {
	o.settle = settle
	return o
}

// ErrUnsynced is errUnsynced.
var ErrUnsynced = errUnsynced

// LimitPages lets the file grow no further than n pages.
func (s *Store) LimitPages(ctx context.Context, n int) error {
	_, err := s.held[1].ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", n))
	return err
}

// Plan tells how SQLite goes about a list.
func (s *Store) Plan(t *testing.T, f queue.Filter) string {
	t.Helper()
	where, args, err := conditions(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+listQuery(where), append(args, 100)...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, none int
		var detail string
		if err := rows.Scan(&id, &parent, &none, &detail); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, detail)
	}
	return plan.String()
}

// Sealed returns the sealed request of a call as it lies on the disk.
func (s *Store) Sealed(t *testing.T, id string) []byte {
	t.Helper()
	r, err := s.get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.sealed(t.Context(), "requests", r.seq)
	if err != nil || b == nil {
		t.Fatalf("sealed: got %v, %v", b, err)
	}
	return b
}

// Few makes a store that keeps next to nothing in memory, so that a few calls
// go through all that many do.
func Few(o Options) Options {
	o.few = few{fresh: 2, step: 1, keys: 2, filed: 1, log: 16}
	return o
}

// InMemory tells how many queued calls are not in the index of due calls.
func (s *Store) InMemory(t *testing.T) (n int) {
	t.Helper()
	err := s.read.QueryRowContext(t.Context(), `SELECT count(*) FROM calls
		WHERE seq > (SELECT value FROM meta WHERE name = 'listed') AND state = 0`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Read reads, and goes on until done is called.
func (s *Store) Read(t *testing.T) (done func() error) {
	t.Helper()
	rows, err := s.read.QueryContext(t.Context(), "SELECT seq FROM calls")
	if err != nil || !rows.Next() {
		t.Fatalf("read: %v", err)
	}
	return rows.Close
}

// TakenBack has calls cancelled and two claims carried out in a transaction that
// fails.
func (s *Store) TakenBack(t *testing.T, now time.Time, n int, ids ...string) {
	t.Helper()
	err := s.do(t.Context(), func(b *book) error {
		for _, id := range ids {
			b.settle(now, b.load(id), &queue.Outcome{State: queue.Cancelled})
		}
		for range 2 {
			b.claim(now, queue.Ask{Max: n, Lease: time.Hour})
		}
		b.fail(errors.New("for a test"))
		return nil
	})
	if err == nil {
		t.Fatal("the transaction did not fail")
	}
}

// Statements counts the statements of the writer, those that are listed, and
// those among them that say nothing.
func Statements() (fields, listed, empty int) {
	known := map[*string]bool{}
	for _, text := range texts.all() {
		if known[text] = true; *text == "" {
			empty++
		}
	}
	return reflect.TypeFor[statements[string]]().NumField(), len(known), empty
}
