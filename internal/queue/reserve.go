package queue

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Reserve is a file that takes up room on the disk of a queue until the disk is
// full. Then it is given up for those who make room: to cancel and to purge
// needs some to begin with. The nil Reserve is none.
type Reserve struct {
	Path string
	// Size is in bytes. 0: 1 MiB, which is enough for the log of some hundred
	// changes, and the log is used again.
	Size int

	mu    sync.Mutex
	held  bool
	spent time.Time
}

// reserved is for how long after it was given up nobody else gets the room.
const reserved = 10 * time.Second

// Fill makes the file where there is none. It fails where there is no room.
func (r *Reserve) Fill() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return nil
	}
	size := orInt(r.Size, 1<<20)
	if info, err := os.Stat(r.Path); err == nil && info.Size() == int64(size) {
		r.held = true
		return nil
	}
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	room := make([]byte, size)
	rand.Read(room) // what can be compressed would take up less
	_, err = f.Write(room)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.Path))
	}
	r.held = true
	return nil
}

// Spend gives the room up, and tells whether there was any.
func (r *Reserve) Spend(now time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held {
		return false
	}
	if err := os.Remove(r.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	r.held, r.spent = false, now
	return true
}

// Spent tells that the room was just given up, so that nothing new may take it.
func (r *Reserve) Spent(now time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.held && now.Sub(r.spent) < reserved
}
