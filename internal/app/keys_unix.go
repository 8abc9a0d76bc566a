//go:build unix

package app

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a file to the owner of another one.
func sameOwner(f *os.File, as fs.FileInfo) error {
	if s, ok := as.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return f.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}

// syncFolder brings the names of a folder to the disk.
func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
