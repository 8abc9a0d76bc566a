//go:build !linux

package sqlite

import (
	"math"
	"os"
)

// networkFS cannot tell on this system.
func networkFS(string) string { return "" }

// room cannot be told on this system.
func room(string) int64 { return math.MaxInt64 }

// syncData brings what was written to f to the disk.
func syncData(f *os.File) error { return f.Sync() }
