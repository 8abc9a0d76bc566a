//go:build !linux

package sqlite

import "os"

// networkFS cannot tell on this system.
func networkFS(string) string { return "" }

// syncData brings what was written to f to the disk.
func syncData(f *os.File) error { return f.Sync() }
