package check

import (
	"errors"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	keptOutput = 64 << 10 // bytes of what a client writes
	mostOutput = 64 << 20 // then it floods
	// markName is the variable by which the processes of a session are known,
	// whatever group they are in.
	markName = "HEED_CHECK_SESSION"
)

// tail keeps the first and the last of what is written to it, counts all, and
// looks for secrets in all.
type tail struct {
	sought []secret

	mu    sync.Mutex
	head  []byte
	ring  []byte
	last  []byte // the end of what was searched, as long as a secret may be
	bytes int64
	found []string
}

func newTail(sought ...secret) *tail { return &tail{sought: sought} }

// Write never fails: a client that floods is read, or it would hang instead.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.bytes += int64(n)
	t.search(p)
	if room := keptOutput - len(t.head); room > 0 {
		take := min(room, len(p))
		t.head, p = append(t.head, p[:take]...), p[take:]
	}
	t.ring = append(t.ring, p...)
	if over := len(t.ring) - keptOutput; over > 0 {
		t.ring = append(t.ring[:0], t.ring[over:]...)
	}
	return n, nil
}

// search looks for secrets in what came last and p.
func (t *tail) search(p []byte) {
	if len(t.sought) == 0 {
		return
	}
	t.last = append(t.last, p...)
	for _, name := range seek(t.last, t.sought) {
		if !slices.Contains(t.found, name) {
			t.found = append(t.found, name)
		}
	}
	if over := len(t.last) - longest(t.sought); over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
}

func (t *tail) told() Output {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Output{Text: string(t.head) + string(t.ring), Bytes: t.bytes, Told: slices.Clone(t.found)}
}

// family is a program and all that it begets. It is ended as a whole.
type family struct {
	cmd  *exec.Cmd
	mark string
	cut  atomic.Bool // it was ended because its time was over
	left int         // processes that were still there when the program had ended

	wrote atomic.Int64
}

// flood counts and ends a program that writes too much.
type flood struct {
	of *family
	to *tail
}

func (f flood) Write(p []byte) (int, error) {
	if f.of.wrote.Add(int64(len(p))) > mostOutput {
		f.of.kill()
	}
	return f.to.Write(p)
}

// newFamily prepares cmd: a group of its own, and no wait for children that
// hold its outputs open.
func newFamily(cmd *exec.Cmd) *family {
	f := &family{cmd: cmd}
	for _, v := range cmd.Env {
		if name, mark := cut(v, "="); name == markName {
			f.mark = mark
		}
	}
	separate(cmd)
	cmd.Cancel = func() error { f.cut.Store(true); f.kill(); return nil }
	cmd.WaitDelay = 200 * time.Millisecond
	return f
}

func (f *family) output(to *tail) {
	f.cmd.Stdout, f.cmd.Stderr = flood{f, to}, flood{f, to}
}

func (f *family) flooded() bool { return f.wrote.Load() > mostOutput }

// run waits for the program and ends what it left behind. It returns the exit
// status; -1 stands for a signal.
func (f *family) run() (int, error) {
	if err := f.cmd.Start(); err != nil {
		return 0, err
	}
	return f.wait()
}

func (f *family) wait() (int, error) {
	err := f.cmd.Wait()
	f.left = f.kill()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, err
	}
	return f.cmd.ProcessState.ExitCode(), nil
}
