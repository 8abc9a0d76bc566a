package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// output is the file of -o. It is opened before anything is sent, so that a
// place that cannot be written to costs no call, and gets its name only when
// the answer is there.
type output struct {
	io.Writer
	name string
	part *os.File
}

// openOutput makes name.part; with no name the answer goes to stdout.
func openOutput(name string, stdout io.Writer) (*output, error) {
	if name == "" {
		return &output{Writer: stdout}, nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("-o %s is a directory; name a file", name)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("-o %s is no regular file; leave -o out and redirect stdout there", name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("-o: %w", err)
	}
	f, err := os.Create(name + ".part")
	if err != nil {
		return nil, fmt.Errorf("-o cannot be written: %w", err)
	}
	return &output{Writer: f, name: name, part: f}, nil
}

// keep gives the file its name.
func (o *output) keep() error {
	if o.part == nil {
		return nil
	}
	part := o.part
	o.part = nil
	if err := part.Close(); err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return os.Rename(part.Name(), o.name)
}

// drop removes what keep has not kept.
func (o *output) drop() error {
	if o.part == nil {
		return nil
	}
	part := o.part
	o.part = nil
	return errors.Join(part.Close(), os.Remove(part.Name()))
}
