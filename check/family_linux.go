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
	for range 64 { // a process that forks meanwhile is met again
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

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const prSetChildSubreaper = 36

// Adopt makes this process the parent of those whose own parent has ended, so
// that a client that has hidden its children leaves none: what it returns ends
// every child that this process has then. A program that has children of its
// own must not call it.
func Adopt() (end func()) {
	_, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	return func() {
		if failed != 0 {
			return
		}
		for range 8 { // the end of one makes its children ours
			found := children()
			if len(found) == 0 {
				return
			}
			for _, pid := range found {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				_, _ = syscall.Wait4(pid, nil, 0, nil)
			}
		}
	}
}

// children lists the processes whose parent is this one.
func children() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state parent …; the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(os.Getpid()) {
			all = append(all, pid)
		}
	}
	return all
}
