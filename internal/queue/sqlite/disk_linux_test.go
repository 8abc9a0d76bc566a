package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// smallDisk mounts a file system of its own for the test.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("mount a small disk: %v: it needs root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ballast fills a disk but for some bytes.
func ballast(t *testing.T, dir string, free int) (path string) {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "ballast")
	if err := os.WriteFile(path, make([]byte, int(s.Bavail)*int(s.Bsize)-free), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func drop(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestADiskThatIsFullAcknowledgesNothingAndGetsOverIt(t *testing.T) {
	dir := smallDisk(t)
	o := sqlite.Options{Path: filepath.Join(dir, "queue.db"), Keys: queue.NewKeys(queue.NewKey())}
	s := open(t, o)
	enqueue(t, s, get("first"))
	full := ballast(t, dir, 256<<10)
	big := get("")
	big.Body = bytes.Repeat([]byte("x"), 16<<10)
	acknowledged, err := 0, error(nil)
	for err == nil && acknowledged < 100 {
		if _, err = s.Enqueue(t.Context(), time.Now(), []queue.Call{big}); err == nil {
			acknowledged++
		}
	}
	if !errors.Is(err, queue.ErrFull) || !strings.Contains(err.Error(), "free space") {
		t.Fatalf("enqueue on a full disk: got %v, want ErrFull that says what to do", err)
	}
	if f, err := s.Get(t.Context(), "first"); err != nil || f.State != queue.Queued {
		t.Errorf("read on a full disk: got %s, %v, want queued", f.State, err)
	}
	drop(t, full)
	enqueue(t, s, get("last"))
	if got, want := len(claim(t, s)), acknowledged+2; got != want {
		t.Errorf("claimed: got %d, want the %d that were acknowledged", got, want)
	}
	s.Close()
}

func TestOnAFullDiskTheFreePagesOfTheFileAreUsedUp(t *testing.T) {
	dir := smallDisk(t)
	s := open(t, sqlite.Options{Path: filepath.Join(dir, "queue.db"), Keys: queue.NewKeys(queue.NewKey())})
	calls := func(prefix string, n int) error {
		for i := range n {
			c := get(fmt.Sprint(prefix, i))
			c.Body = bytes.Repeat([]byte("x"), 16<<10)
			if _, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{c}); err != nil {
				return fmt.Errorf("call %d of %d: %w", i, n, err)
			}
		}
		return nil
	}
	if err := calls("erased-", 40); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprint("erased-", i))
		if err := s.Cancel(t.Context(), time.Now(), ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Purge(t.Context(), ids); n != 40 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	ballast(t, dir, 200<<10) // for the log, which all of the calls would need three times over
	if err := calls("kept-", 30); err != nil {
		t.Errorf("the file has room for 40 calls: %v", err)
	}
	s.Close()
}

func TestAStoreOpensOnceTheDiskHasSpaceAgain(t *testing.T) {
	dir := smallDisk(t)
	o := sqlite.Options{Path: filepath.Join(dir, "queue.db"), Keys: queue.NewKeys(queue.NewKey())}
	full := ballast(t, dir, 0)
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrFull) {
		t.Errorf("open on a full disk: got %v, want ErrFull", err)
	}
	drop(t, full)
	s, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, get("a"))
	s.Close()
}

func TestAStoreOpensOnADiskThatHasNoRoomToMoveItsLog(t *testing.T) {
	dir := smallDisk(t)
	o := sqlite.Options{Path: filepath.Join(dir, "queue.db"), Keys: queue.NewKeys(queue.NewKey())}
	s := open(t, o)
	var ids []string
	for i := range 40 { // which lie in the log
		big := get(fmt.Sprintf("call-%d", i))
		big.Body = bytes.Repeat([]byte("x"), 16<<10)
		enqueue(t, s, big)
		ids = append(ids, big.ID)
	}
	full := ballast(t, dir, 0)
	s.Close()
	drop(t, full)
	ballast(t, dir, 128<<10)
	knows(t, o, ids...)
}

func TestAFileThatCannotBeWrittenIsToldAtStart(t *testing.T) {
	dir := smallDisk(t)
	o := sqlite.Options{Path: filepath.Join(dir, "queue.db"), Keys: queue.NewKeys(queue.NewKey())}
	s, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, get("a"))
	s.Close()
	again := func(flags uintptr) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	again(syscall.MS_RDONLY)
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrStorage) || !strings.Contains(err.Error(), "let heed write") {
		t.Errorf("open: got %v, want ErrStorage that says to let heed write", err)
	}
	again(0)
	if s, err = sqlite.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := len(claim(t, s)); got != 1 {
		t.Errorf("claimed once it can be written: got %d, want 1", got)
	}
	s.Close()
}
