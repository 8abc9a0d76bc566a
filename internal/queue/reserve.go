package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Reserve is a file that takes up room on the disk of a queue until the disk is
// full. Then it is given up for those who make room: to cancel and to purge
// needs some to begin with, also for the pages that lie in the log of the
// database and that its file has not grown for yet. So the log is to be emptied
// before they are more than what is kept.
//
// Who takes calls in asks Closed before, and has the log trimmed behind them, see
// Trim; who makes room does so Within, or with Purge. What follows from what in
// there is the reserve's business. Fill is called from time to time. The nil
// Reserve is none: everything is done without.
type Reserve struct {
	Path string
	// Log is the log of the database. Empty: nobody looks at it.
	Log string
	// Size is in bytes. 0: an eighth of what is free, from 1 to 64 MiB: the log
	// has 20 to 30 MB before it is moved, unless calls come faster than that.
	Size int64

	mu    sync.Mutex
	held  int64 // bytes
	spent time.Time
	tried time.Time // to empty the log
}

const (
	// leastReserve is enough for the log of some hundred changes.
	leastReserve = 1 << 20
	mostReserve  = 64 << 20
	// reserved is for how long after it was given up nobody else gets the room.
	reserved = 10 * time.Second
	// between is for how long a log that could not be emptied is left alone: a
	// reader may be in the way, whom the writer waits for each time.
	between = 100 * time.Millisecond
)

// Fill makes the file where there is none, and a larger one where the disk has
// got much more room. It fails where there is none.
func (r *Reserve) Fill() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if info, err := os.Stat(r.Path); err == nil && r.held == 0 {
		r.held = info.Size()
	}
	if want := r.wanted(); r.held < want && r.held <= want/2 {
		return r.fill(want)
	}
	return nil
}

// Purger is what a reserve needs of a store: Purge erases ended calls, and without
// ids it empties the log.
type Purger interface {
	Purge(ctx context.Context, ids []string) (erased int, err error)
}

// Closed says that nothing new may be taken in: the room was just given up, for
// those who make more.
func (r *Reserve) Closed(now time.Time) error {
	if r.justSpent(now) {
		return fmt.Errorf("the room that is left is kept for those who make more: %w", ErrFull)
	}
	return nil
}

// Trim has the log emptied if it has outgrown what is kept. Where that fails it is
// tried again with one of the next.
func (r *Reserve) Trim(ctx context.Context, now time.Time, s Purger) {
	if r.outgrown(now) {
		r.empty(ctx, s)
	}
}

// Within does what makes room on the disk, in the room that is kept for it if need
// be. Where that was given up before, the log is emptied first: it grows with each
// change, until nothing is left, not even to empty it.
func (r *Reserve) Within(ctx context.Context, s Purger, do func() error) error {
	if r.tight() {
		r.empty(ctx, s)
	}
	err := do()
	if r == nil || !errors.Is(err, ErrFull) {
		return err
	}
	r.spend(time.Now())
	r.empty(ctx, s)
	return do()
}

// Purge erases calls Within. What is purged makes no room for anybody until the
// log is emptied, and that takes what is kept if nothing else is left.
func (r *Reserve) Purge(ctx context.Context, s Purger, ids []string) (erased int, err error) {
	err = r.Within(ctx, s, func() error {
		erased, err = s.Purge(ctx, ids)
		return err
	})
	if err == nil && r.stuck() {
		r.spend(time.Now())
		r.empty(ctx, s)
	}
	return erased, err
}

// empty has the log emptied. Where it cannot be, what follows fails.
func (r *Reserve) empty(ctx context.Context, s Purger) {
	_, _ = s.Purge(ctx, nil)
	r.emptied()
}

// wanted is how much is to be kept.
func (r *Reserve) wanted() int64 {
	if r.Size > 0 {
		return r.Size
	}
	free, known := Room(filepath.Dir(r.Path))
	if !known {
		return leastReserve
	}
	return min(max((free+r.held)/8, leastReserve), mostReserve)
}

// fill makes the file as large as size, or leaves it as it was.
func (r *Reserve) fill(size int64) error {
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = allocate(f, r.held, size-r.held)
	if err != nil {
		err = errors.Join(err, f.Truncate(r.held))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		r.held = size
	} else if r.held == 0 {
		err = errors.Join(err, os.Remove(r.Path))
	}
	return err
}

// scribble writes what takes up room wherever it is written: what can be
// compressed would take up less.
func scribble(f *os.File, from, n int64) error {
	part := make([]byte, leastReserve)
	for n > 0 {
		part = part[:min(n, int64(len(part)))]
		rand.Read(part)
		if _, err := f.WriteAt(part, from); err != nil {
			return err
		}
		from, n = from+int64(len(part)), n-int64(len(part))
	}
	return nil
}

// outgrown tells that the log is longer than what is kept allows, so that it is
// to be emptied while the disk has room for it.
func (r *Reserve) outgrown(now time.Time) bool {
	if r == nil || r.Log == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == 0 || now.Sub(r.tried) < between || !r.over() {
		return false
	}
	r.tried = now
	return true
}

// emptied tells that the log was to be emptied: where it was, it may be so again
// at once.
func (r *Reserve) emptied() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over() {
		r.tried = time.Time{}
	}
}

// over tells that the log is longer than three quarters of what is kept.
func (r *Reserve) over() bool {
	info, err := os.Stat(r.Log)
	return err == nil && info.Size() > r.held/4*3
}

// tight tells that the room was given up, and that the log has used half of what
// there is: it is to be emptied before another change, since to do so takes some.
func (r *Reserve) tight() bool { return r.cramped(false) }

// stuck tells that the room is kept while the log, which was to be emptied, may
// not have been for want of it.
func (r *Reserve) stuck() bool { return r.cramped(true) }

// cramped tells that the log is longer than what is free, while the room is
// kept, or was given up.
func (r *Reserve) cramped(kept bool) bool {
	if r == nil || r.Log == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held > 0 != kept {
		return false
	}
	free, known := Room(filepath.Dir(r.Path))
	if !known {
		free = leastReserve / 2
	}
	info, err := os.Stat(r.Log)
	return err == nil && info.Size() > free
}

// spend gives the room up, and tells whether there was any.
func (r *Reserve) spend(now time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == 0 {
		return false
	}
	if err := os.Remove(r.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	r.held, r.spent = 0, now
	return true
}

// justSpent tells that the room was just given up, so that nothing new may take it.
func (r *Reserve) justSpent(now time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held == 0 && now.Sub(r.spent) < reserved
}
