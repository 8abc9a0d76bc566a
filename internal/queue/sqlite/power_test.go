package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// left copies files of a store as they are, and returns options for the copy.
func left(t *testing.T, o sqlite.Options, suffixes ...string) sqlite.Options {
	t.Helper()
	was := o.Path
	o.Path = filepath.Join(t.TempDir(), "queue.db")
	for _, suffix := range suffixes {
		b, err := os.ReadFile(was + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.Path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func knows(t *testing.T, o sqlite.Options, ids ...string) {
	t.Helper()
	s := open(t, o)
	for _, id := range ids {
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Errorf("call %s: %v", id, err)
		}
	}
}

// TestAStartNeedsNothingOfTheLogThatWasLeft has the log lost that the disk of
// the last process had not taken.
func TestAStartNeedsNothingOfTheLogThatWasLeft(t *testing.T) {
	o := options(t)
	enqueue(t, open(t, o), get("a"))
	o = left(t, o, "", "-wal")
	open(t, o)
	knows(t, left(t, o, ""), "a")
}

func TestADiskThatFailedLeavesTheLogToTheNextStart(t *testing.T) {
	o := options(t)
	failing := sqlite.Synced(o, func() error { return errors.New("no") })
	s := open(t, failing)
	if _, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("a")}); !errors.Is(err, queue.ErrStorage) {
		t.Fatalf("enqueue: got %v, want ErrStorage", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(o.Path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("the log: got %v, %v, want it as it was", info, err)
	}
	knows(t, o, "a")
}

func TestALogThatTheFileDidNotTakeEndsAllWriting(t *testing.T) {
	o := options(t)
	var fails error
	s := open(t, sqlite.Moved(o, func() error { return fails }))
	enqueue(t, s, get("a"), get("b"))
	if err := s.Cancel(t.Context(), time.Now(), "b"); err != nil {
		t.Fatal(err)
	}
	fails = sqlite.ErrUnsynced
	if _, err := s.Purge(t.Context(), []string{"b"}); err != nil { // moves the log
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("c")}); !errors.Is(err, queue.ErrStorage) {
		t.Errorf("enqueue: got %v, want ErrStorage", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(o.Path + "-wal"); err != nil {
		t.Errorf("the log: %v, want it left to the next start", err)
	}
	knows(t, o, "a")
}

// TestAFileThatTheDiskDidNotTakeEndsAllWriting has the disk fail beside the
// writer, when the log was moved because it is long.
func TestAFileThatTheDiskDidNotTakeEndsAllWriting(t *testing.T) {
	o := options(t)
	failed := make(chan struct{})
	var once sync.Once
	s := open(t, sqlite.Few(sqlite.Settled(o, func() error {
		once.Do(func() { close(failed) })
		return errors.New("no")
	})))
	enqueue(t, s, get("a"))
	for done := false; !done; {
		_, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("")})
		if err != nil && !errors.Is(err, queue.ErrStorage) {
			t.Fatalf("enqueue: got %v, want ErrStorage", err)
		}
		done = err != nil
	}
	<-failed // for that and nothing else
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	knows(t, o, "a")
}

// TestAReaderHoldsNoWriterUp has a reader go on for longer than a purge, which
// would have waited for it.
func TestAReaderHoldsNoWriterUp(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, get("a"), get("b"))
	if err := s.Cancel(t.Context(), time.Now(), "b"); err != nil {
		t.Fatal(err)
	}
	done := s.Read(t)
	began := time.Now()
	if _, err := s.Purge(t.Context(), []string{"b"}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*time.Second { // a tenth of a second, on a machine that has the time
		t.Errorf("purge beside a reader: got %v, want it not to wait for the reader", took)
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), time.Now(), 10); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(o.Path + "-wal"); err != nil || info.Size() != 0 {
		t.Errorf("the log after the next sweep: got %v, %v, want it empty", info, err)
	}
}
