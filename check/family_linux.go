package check

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// separate puts cmd in a process group of its own, so that a signal reaches
// all of it.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the group, and by the mark in their environment those that have
// left the group. It returns how many of these there were besides the program.
func (f *family) kill() int {
	_ = syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL)
	if f.mark == "" {
		return 0
	}
	mark := []byte(markName + "=" + f.mark + "\x00")
	left := map[int]bool{}
	for range 8 { // a process that forks meanwhile is met again
		found := marked(mark)
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			if pid != f.cmd.Process.Pid {
				left[pid] = true
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return len(left)
}

// marked lists the processes that have mark in their environment.
func marked(mark []byte) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, mark) {
			all = append(all, pid)
		}
	}
	return all
}
