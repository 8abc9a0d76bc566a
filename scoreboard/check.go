package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	grading "github.com/heedproject/heed/check"
	"github.com/heedproject/heed/check/report"
)

// longest is how long one check may take: a slow machine needs two minutes.
const longest = 10 * time.Minute

// check runs heed check on a client, at all cases or at these, and returns its
// report and, where the client does not tell it itself, its version.
func check(ctx context.Context, p place, s start, seed uint64, only []string) (*grading.Report, string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	dir, err := os.MkdirTemp("", "scoreboard-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "report.json")
	args := append([]string{"check", "--seed", strconv.FormatUint(seed, 10), "--json", file, "--color", "never"}, s.flags(only)...)
	if s.Gateway != "" {
		stop, where, err := open(ctx, p, s.Gateway, dir)
		if err != nil {
			return nil, "", err
		}
		defer stop()
		args = append(args, where...)
	} else {
		args = append(append(args, "--"), s.Args...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "heed.tool"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("heed check: %w\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	r, err := report.Read(text)
	if err != nil {
		return nil, "", err
	}
	if err := p.keep(s, only, text); err != nil {
		return nil, "", err
	}
	version, err := s.version()
	return r, version, err
}

// flags are those of heed check for the client, and for these cases alone.
func (s start) flags(only []string) []string {
	var all []string
	for _, id := range only {
		all = append(all, "--only", id)
	}
	for _, c := range s.Claim {
		all = append(all, "--claim", c)
	}
	for _, c := range s.Without {
		all = append(all, "--without", c)
	}
	if s.Lines {
		all = append(all, "--lines")
	}
	return all
}

// keep leaves the report, with the timeline of every case, beside the programs:
// who doubts a verdict looks there.
func (p place) keep(s start, only []string, text []byte) error {
	name := s.Name + ".json"
	if only != nil {
		name = fmt.Sprintf("%s.again-%d.json", s.Name, len(only))
	}
	dir := filepath.Join(filepath.Dir(p.bin), "reports")
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), text, 0o644))
}

var number = regexp.MustCompile(`\d+(\.\d+)+`)

// version is the first number of the first line of what the command prints; a
// gateway is as old as the repository.
func (s start) version() (string, error) {
	switch {
	case s.Gateway != "":
		return "this repository", nil
	case s.Version == nil:
		return "", nil
	}
	out, err := exec.Command(s.Version[0], s.Version[1:]...).Output()
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return string(number.Find(line)), nil
}

// open starts heed up with the configuration and returns what ends it, and by
// which flags heed check reaches it.
func open(ctx context.Context, p place, config, dir string) (stop func(), flags []string, err error) {
	var at [3]string // of the simulator, of the gateway, of its operators
	for i := range at {
		if at[i], err = free(); err != nil {
			return nil, nil, err
		}
	}
	file := filepath.Join(dir, "heed.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, at[0]), 0o600); err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "heed.tool"), "up", "--config", file, "--listen", at[1], "--admin", at[2])
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()                          // by that signal
	}
	if err := answers(ctx, at[1]); err != nil {
		stop()
		return nil, nil, fmt.Errorf("the gateway does not answer: %w\n%s", err, said.String())
	}
	return stop, []string{"--listen", at[0], "--via", "http://" + at[1] + "/check"}, nil
}

// free is an address of this host at which nobody listens.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// answers waits until somebody listens at addr.
func answers(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
