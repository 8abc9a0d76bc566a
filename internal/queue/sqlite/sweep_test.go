package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

func TestAPurgeOfNothingEmptiesTheLog(t *testing.T) {
	o := sqlite.Options{Path: filepath.Join(t.TempDir(), "queue.db"), Keys: queue.NewKeys(queue.NewKey())}
	s := open(t, o)
	defer s.Close()
	enqueue(t, s, get("a"))
	size := func() int64 {
		info, err := os.Stat(o.Path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	n, err := s.Purge(t.Context(), nil)
	if err != nil || n != 0 || before == 0 || size() != 0 {
		t.Errorf("purged %d (%v), and the log has %d bytes after %d, want none", n, err, size(), before)
	}
	if got := len(claim(t, s)); got != 1 {
		t.Errorf("%d calls are there, want the one", got)
	}
}
