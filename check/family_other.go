//go:build !linux

package check

import "os/exec"

// separate has nothing to do where groups are not known.
func separate(*exec.Cmd) {}

// kill ends the program.
func (f *family) kill() int {
	_ = f.cmd.Process.Kill()
	return 0
}

// Adopt does nothing where processes cannot be adopted.
func Adopt() (end func()) { return func() {} }
