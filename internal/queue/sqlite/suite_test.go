package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/queuetest"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

func TestStore(t *testing.T) { suite(t, sqlite.Unsynced) }

func TestStoreWithLittleInMemory(t *testing.T) {
	suite(t, func(o sqlite.Options) sqlite.Options { return sqlite.Few(sqlite.Unsynced(o)) })
}

func suite(t *testing.T, with func(sqlite.Options) sqlite.Options) {
	queuetest.Run(t, func(t testing.TB, o queuetest.Options) (queue.Store, func(*queue.Keys) queue.Store) {
		path := filepath.Join(t.TempDir(), "queue.db")
		p := with(sqlite.Options{Path: path, Keys: o.Keys, Keep: o.Keep, Most: o.Most})
		s := open(t, p)
		return s, func(k *queue.Keys) queue.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			p.Keys = k
			return open(t, p)
		}
	})
}

// open opens a store for the time of the test.
func open(t testing.TB, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
