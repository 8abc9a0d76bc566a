package app

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// held lists a folder with what is in each file.
func held(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range list {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(text)
	}
	return all
}

func TestAKeyFileGetsItsNameOnlyWhenItIsWhole(t *testing.T) {
	for _, before := range []map[string]string{{}, {"k": "old"}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "k")
		for name, text := range before {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cut := errors.New("interrupted")
		err := settle(path, []byte("new"), nil, func(from, to string) error {
			if got, err := os.ReadFile(from); string(got) != "new" {
				t.Errorf("before it gets its name it holds %q, %v; want all of it", got, err)
			}
			now := held(t, dir)
			delete(now, filepath.Base(from))
			if diff := cmp.Diff(now, before); diff != "" {
				t.Errorf("an interruption leaves (-got +want):\n%s", diff)
			}
			return cut
		})
		if !errors.Is(err, cut) {
			t.Errorf("got %v, want the error of the renaming", err)
		}
		if diff := cmp.Diff(held(t, dir), before); diff != "" {
			t.Errorf("an error leaves (-got +want):\n%s", diff)
		}
	}
}

func TestANewKeyFileIsForItsUserAloneAndReplacesNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	if err := NewKeyFile(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := NewKeyFile(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: got %v, want that there is one", err)
	}
	if diff := cmp.Diff(held(t, filepath.Dir(path)), map[string]string{"k": "first"}); diff != "" {
		t.Errorf("files (-got +want):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode: got %v, want 0600", got)
	}
}

func TestAReplacedKeyFileIsAllThatIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	if err := ReplaceKeyFile(path, []byte("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where there is none: got %v, want that there is none", err)
	}
	if err := NewKeyFile(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceKeyFile(path, []byte("second")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(held(t, filepath.Dir(path)), map[string]string{"k": "second"}); diff != "" {
		t.Errorf("files (-got +want):\n%s", diff)
	}
}

func TestProcessesThatStartAtOnceMakeOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q.db.keys")
	s := storage{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	var starts sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		starts.Go(func() {
			keys, err := s.ownKeys(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = keys.Active()
		})
	}
	starts.Wait()
	for _, id := range ids[1:] {
		if id != ids[0] {
			t.Errorf("got keys %v, want one", ids)
			break
		}
	}
}
