//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// sealedCalls is how many calls are sealed again, in 25 commits of SQLite.
const sealedCalls = 12800

// filled is a folder with a queue that is sealed with one key, and with a key
// file that has another one in front.
type filled struct {
	t          *testing.T
	dir        string
	old, fresh *queue.Key
}

func newFilled(t *testing.T) *filled {
	t.Helper()
	f := &filled{t: t, dir: t.TempDir(), old: queue.NewKey(), fresh: queue.NewKey()}
	s := f.open(f.old)
	calls := make([]queue.Call, sealedCalls)
	for i := range calls {
		calls[i] = queue.Call{
			Facts:   queue.Facts{ID: fmt.Sprintf("c%d", i), Endpoint: "api", Method: "POST", Template: "/x"},
			Request: queue.Request{Path: "/x", Body: fmt.Appendf(nil, "%01000d", i)},
		}
	}
	if _, err := s.Enqueue(t.Context(), time.Now(), calls); err != nil {
		t.Fatal(err)
	}
	f.close(s)
	writeFile(t, f.file("queue.keys"), f.fresh.Reveal()+"\n"+f.old.Reveal()+"\n")
	writeFile(t, f.file("heed.yaml"), fmt.Sprintf("version: 1\nqueue: {path: %s, keys: [\"file:%s\"]}\nendpoints: {api: {url: https://api.example.com}}\n",
		f.file("queue.db"), f.file("queue.keys")))
	return f
}

func (f *filled) file(name string) string { return filepath.Join(f.dir, name) }

// open opens the queue with keys.
func (f *filled) open(key *queue.Key, more ...*queue.Key) *sqlite.Store {
	f.t.Helper()
	s, err := sqlite.Open(f.t.Context(), sqlite.Options{Path: f.file("queue.db"), Keys: queue.NewKeys(key, more...)})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *filled) close(s *sqlite.Store) {
	f.t.Helper()
	if err := s.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// reseal makes the command.
func (f *filled) reseal() *exec.Cmd {
	f.t.Helper()
	program, err := binary()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.CommandContext(f.t.Context(), program, "keys", "rotate", "--reseal")
	cmd.Dir = f.dir
	return cmd
}

// use counts what is under each key.
func (f *filled) use() map[string]queue.Use {
	f.t.Helper()
	s := f.open(f.fresh, f.old)
	defer f.close(s)
	use, err := s.KeyUse(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return use
}

func TestASealingAgainThatIsKilledGoesOnWhereItWas(t *testing.T) {
	f := newFilled(t)
	cmd := f.reseal()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// One batch takes less than that in the log, so that the first one is there
	// and most are not.
	for {
		select {
		case err := <-ended:
			t.Fatalf("it ended before it could be killed: %v", err)
		case <-time.After(time.Millisecond):
		}
		if info, err := os.Stat(f.file("queue.db-wal")); err == nil && info.Size() > 1<<20 {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-ended

	use := f.use()
	if old, fresh := use[f.old.ID()].Records, use[f.fresh.ID()].Records; old == 0 || fresh == 0 || old+fresh != sealedCalls {
		t.Fatalf("after the kill: got %v, want %d under both keys together", use, sealedCalls)
	}
	if out, err := f.reseal().CombinedOutput(); err != nil {
		t.Fatalf("once more: %v\n%s", err, out)
	}
	if diff := cmp.Diff(f.use(), map[string]queue.Use{f.fresh.ID(): {Records: sealedCalls}}); diff != "" {
		t.Errorf("in the end (-got +want):\n%s", diff)
	}
	s := f.open(f.fresh)
	defer f.close(s)
	for i := range sealedCalls {
		c, err := s.Reveal(t.Context(), fmt.Sprintf("c%d", i))
		if err != nil {
			t.Fatalf("without the old key: %v", err)
		}
		if got, want := string(c.Body), fmt.Sprintf("%01000d", i); got != want {
			t.Fatalf("call %d: got %.20q…, want %.20q…", i, got, want)
		}
	}
}
