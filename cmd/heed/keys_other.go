//go:build !unix

package main

import (
	"io/fs"
	"os"
)

// sameOwner does nothing where files are handed out otherwise.
func sameOwner(*os.File, fs.FileInfo) error { return nil }
