package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/heedproject/heed/internal/queue"
)

// keys reads the key ring. Where none is configured, a key is made beside the
// file at the first start.
func (s *storage) keys(path string) (*queue.Keys, error) {
	refs := s.cfg.Queue.Keys
	if len(refs) == 0 {
		return s.ownKeys(path)
	}
	var lines []string
	for i, ref := range refs {
		text, err := ref.Text(s.opts.Getenv, s.opts.ReadFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.cfg.Where(fmt.Sprintf("queue.keys[%d]", i)), err)
		}
		lines = append(lines, string(text))
	}
	keys, err := queue.ReadKeys(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.cfg.Where("queue.keys"), err)
	}
	return keys, nil
}

// OwnKeys is the key file of a queue that has none configured.
func OwnKeys(path string) string { return path + ".keys" }

// holds tells whether there is a queue in a file.
func holds(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() > 0
}

// ownKeys reads the key that lies beside the file of a queue. A queue that is
// there and has lost its key gets no other one, which could not open it.
func (s *storage) ownKeys(of string) (*queue.Keys, error) {
	path := OwnKeys(of)
	text, err := os.ReadFile(path)
	if missing := errors.Is(err, fs.ErrNotExist); missing && s.log != nil && holds(of) {
		return nil, fmt.Errorf("the key file %s is gone, and the queue beside it was sealed with it: put it back from a copy; "+
			"or, if what is in the queue may be lost, move %s away", path, of)
	} else if missing && s.log != nil {
		if err = s.makeKey(path); err == nil || errors.Is(err, fs.ErrExist) { // another process was faster
			text, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the key of the queue: %w; or name one under queue.keys", err)
	}
	keys, err := queue.ReadKeys(strings.NewReader(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

func (s *storage) makeKey(path string) error {
	key := queue.NewKey()
	err := NewKeyFile(path, []byte("# Seals the calls of the queue beside it. Made by heed at its first start.\n"+key.Reveal()+"\n"))
	if err == nil {
		s.log.Warn("a key for the queue was made", slog.String("key_id", key.ID()), slog.String("file", path),
			slog.String("advice", "it lies beside what it seals: for more than development make one with heed keys new, keep it elsewhere and name it under queue.keys"))
	}
	return err
}

// NewKeyFile writes a file that is for this user alone and was not there;
// fs.ErrExist: it was. Whoever looks, and whoever is interrupted, meets no file
// or all of it.
func NewKeyFile(path string, text []byte) error {
	return settle(path, text, nil, os.Link)
}

// ReplaceKeyFile puts other text into a file, in one step and for the owner
// that it has alone: often a gateway reads it that is not root, who rotates.
func ReplaceKeyFile(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return settle(path, text, info, os.Rename)
}

// settle writes a file beside path, gives it its owner and, when it is on the
// disk, its place.
func settle(path string, text []byte, owner fs.FileInfo, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	if owner != nil {
		err = sameOwner(f, owner)
	}
	if err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = place(f.Name(), path)
	}
	if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) { // it was renamed
		err = errors.Join(err, gone)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
