package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/heedproject/heed/internal/config"
)

type initCmd struct {
	File  string `arg:"" optional:"" default:"heed.yaml" help:"Where to write it."`
	Force bool   `help:"Overwrite the file if it is there."`
}

// Help is what heed init --help says beside the flags.
func (initCmd) Help() string {
	return `The file works as it is; its comments say what each setting does.

Examples:

    heed init
    heed init --force deploy/heed.yaml`
}

// Run writes the file.
func (c *initCmd) Run(sh *shell) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if c.Force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(c.File, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("%s is there already; heed init --force overwrites it", c.File))
	}
	if err != nil {
		return usage(err)
	}
	_, err = f.Write(config.Init())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	sh.say("wrote %s; next: heed config check, then heed up", c.File)
	return nil
}
