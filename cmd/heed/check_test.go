package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestCheckScripts runs the command lines of testdata/check/*.txtar, in which
// check CODE ARGS… is heed check ARGS… within this process. There is one script
// only: a check ends all children of its process.
func TestCheckScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "check"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"check": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) == 0 {
					ts.Fatalf("usage: check CODE ARGS…")
				}
				var out, errw bytes.Buffer
				code := strconv.Itoa(run(t.Context(), append([]string{"check"}, args[1:]...), os.Environ(), strings.NewReader(""), &out, &errw))
				_, _ = ts.Stdout().Write(out.Bytes())
				_, _ = ts.Stderr().Write(errw.Bytes())
				if code != args[0] {
					ts.Fatalf("exit code: got %s, want %s\n%s%s", code, args[0], out.String(), errw.String())
				}
			},
		},
	})
}

func TestACheckThatIsInterruptedBeforeItsClientGreetsSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("a signal came")) // as signal.NotifyContext has it
	var out, errw bytes.Buffer
	if code := run(ctx, []string{"check", "--lines", "--", "sleep", "100"}, os.Environ(), strings.NewReader(""), &out, &errw); code != exitCanceled {
		t.Errorf("exit code: got %d, want %d; %s", code, exitCanceled, errw.String())
	}
}

func TestASecondSignalLeavesAnInterruptedCheckItsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defer unhurried(ctx)()
	for range 2 { // either would end this process
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesThatAClientsCommandNamesAreFoundFromTheFolderOfACase(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"client", "sync.py", "sync", "python3.11"} {
		if err := os.WriteFile(name, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, args, want string }{
		{"a program of this folder", "./client {url}", dir + "/client {url}"},
		{"a script", "python3 -u sync.py {url}", "python3 -u " + dir + "/sync.py {url}"},
		{"a word that is also a file", "cli sync {url}", "cli sync {url}"},
		{"a program of PATH", "python3.11 ./sync.py", "python3.11 " + dir + "/sync.py"},
		{"what is not there", "curl -o new.json {url}", "curl -o new.json {url}"},
		{"a folder", "ls ./ {url}", "ls ./ {url}"},
	} {
		got, err := rooted(strings.Fields(c.args))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(got, strings.Fields(c.want)); diff != "" {
			t.Errorf("%s: -got +want\n%s", c.name, diff)
		}
	}
}
