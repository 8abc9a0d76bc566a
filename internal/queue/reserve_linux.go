package queue

import (
	"errors"
	"math"
	"os"
	"syscall"
)

// Room is how many bytes may be written to the disk of dir.
func Room(dir string) (free int64, known bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	size := int64(s.Bsize)
	return int64(min(s.Bavail, math.MaxInt64/uint64(size))) * size, true
}

// allocate makes f longer by n bytes that take up room.
func allocate(f *os.File, from, n int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, from, n)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS): // as NFS before 4.2
			return scribble(f, from, n)
		case err != nil:
			return &os.PathError{Op: "allocate", Path: f.Name(), Err: err}
		default:
			return nil
		}
	}
}
