package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// Vault is the queue of a configuration for the rotation of its keys, without
// a process around it.
type Vault struct {
	queue.Vault
	io.Closer
	Keys *queue.Keys // the ring it was opened with
}

// OpenVault opens the queue of cfg. Nothing is made: neither a file nor a key.
// queue.ErrOwned: a gateway has it.
func OpenVault(ctx context.Context, cfg *config.Config, opts Options) (*Vault, error) {
	if cfg.Queue == nil {
		return nil, fmt.Errorf("%s has no queue, which could hold calls", cfg.File)
	}
	st := storage{cfg: cfg, opts: opts.withDefaults()}
	store, keys, err := st.open(ctx)
	if err != nil {
		return nil, err
	}
	return &Vault{store, store, keys}, nil
}

// storage finds and opens the store of the queue of cfg.
type storage struct {
	cfg  *config.Config
	opts Options
	log  *slog.Logger // nil: a command asks, which makes no folder, file or key
}

// open opens where calls are kept, with the keys that it returns.
func (s *storage) open(ctx context.Context) (queue.Store, *queue.Keys, error) {
	q := s.cfg.Queue
	if q.Store == config.QueuePostgres {
		return s.openPostgres(ctx)
	}
	path, err := s.path()
	if err != nil {
		return nil, nil, err
	}
	if dir := filepath.Dir(path); s.log != nil && !isFolder(dir) {
		return nil, nil, fmt.Errorf("%s: there is no folder %s: make it, or name a file in one that exists", s.cfg.Where("queue.path"), dir)
	}
	keys, err := s.keys(path)
	if err != nil {
		return nil, nil, err
	}
	if err := s.private(path); err != nil {
		return nil, nil, err
	}
	o := sqlite.Options{Path: path, Keys: keys, Keep: queue.Keep{Answers: q.ResultTTL, Broken: q.DeadTTL}, Most: q.Max.Calls}
	store, err := sqlite.Open(ctx, o)
	if errors.Is(err, queue.ErrFull) && s.log != nil && os.Remove(reserveOf(path)) == nil { // to start takes some room too
		store, err = sqlite.Open(ctx, o)
	}
	return store, keys, err
}

// reserveOf names the file that keeps room on the disk of the queue in a file.
func reserveOf(path string) string { return path + "-reserve" }

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// reserve keeps some room on the disk of the queue for those who make room on
// it. Nil: the disk is another machine's.
func (s *storage) reserve() *queue.Reserve {
	path, err := s.path()
	if err != nil || s.cfg.Queue.Store == config.QueuePostgres {
		return nil
	}
	r := &queue.Reserve{Path: reserveOf(path), Log: path + "-wal"}
	if err := r.Fill(); err != nil {
		s.log.Warn("no room is kept on the disk of the queue", slog.String("kind", "queue"), slog.String("error", err.Error()),
			slog.String("advice", "make room: on a full disk calls could not even be cancelled or purged"))
	}
	return r
}

// openPostgres opens the store that several gateways share.
func (s *storage) openPostgres(ctx context.Context) (queue.Store, *queue.Keys, error) {
	q := s.cfg.Queue
	m := maker{cfg: s.cfg, getenv: s.opts.Getenv, readFile: s.opts.ReadFile}
	address, err := m.secret("queue.dsn", q.DSN)
	if err != nil {
		return nil, nil, err
	}
	keys, err := s.keys("")
	if err != nil {
		return nil, nil, err
	}
	store, err := postgres.Open(ctx, postgres.Options{
		Address: postgres.Address(address), Keys: keys, Keep: queue.Keep{Answers: q.ResultTTL, Broken: q.DeadTTL}, Most: q.Max.Calls,
	})
	if err != nil {
		return nil, nil, err
	}
	if s.log != nil {
		s.compare(ctx, store)
	}
	return store, keys, nil
}

// compare tells of a clock that is far from that of the database, which those
// who share it had better agree with.
func (s *storage) compare(ctx context.Context, store *postgres.Store) {
	ahead, err := store.Ahead(ctx, time.Now())
	if err == nil && ahead.Abs() > s.cfg.Queue.Lease/2 {
		s.log.Error("this clock and that of the database differ", slog.String("kind", "queue"), slog.String("ahead", ahead.Round(time.Second).String()),
			slog.String("advice", "set them by NTP: gateways that differ by more than queue.lease take each other's calls"))
	}
}

// path is where the file lies. Its folder is made when it is the usual one.
func (s *storage) path() (string, error) {
	if path := s.cfg.Queue.Path; path != "" {
		return path, nil
	}
	path := QueuePath(s.opts.Getenv)
	if path == "" {
		return "", errors.New("queue.path: neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME says where the queue may lie; name a file")
	}
	if s.cfg.File == "" { // it keeps its calls apart from those of a heed.yaml
		path = filepath.Join(filepath.Dir(path), "demo.db")
	}
	if s.log == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("queue.path: make the folder of the queue: %w; name a file in a folder that can be written", err)
	}
	return path, nil
}

// QueuePath is where the queue of a process lies whose configuration does not
// say it: in the folder for what has to outlive the process, which is systemd's
// or the user's (XDG Base Directory Specification). Empty: there is none.
func QueuePath(getenv func(string) string) string {
	const file = "queue.db"
	if dir, _, _ := strings.Cut(getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return filepath.Join(dir, file)
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "heed", file)
	}
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "heed", file)
	}
	return ""
}

// private makes the file, if there is none, so that nobody else can read it.
func (s *storage) private(path string) error {
	flags := os.O_RDWR
	if s.log != nil {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	switch {
	case s.log == nil && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no queue at %s: heed up makes it; where that runs as a service, name the file under queue.path", path)
	case err != nil:
		return fmt.Errorf("open the queue: %w; queue.path must lie in a folder that exists and can be written", err)
	}
	return f.Close()
}
