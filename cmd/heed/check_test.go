package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/alecthomas/kong"
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
				code := exitOf(runCheck(t, args[1:], &out, &errw))
				_, _ = ts.Stdout().Write(out.Bytes())
				_, _ = ts.Stderr().Write(errw.Bytes())
				if code != args[0] {
					ts.Fatalf("exit code: got %s, want %s\n%s%s", code, args[0], out.String(), errw.String())
				}
			},
		},
	})
}

func exitOf(code int) string {
	return map[int]string{exitOK: "0", exitFailure: "1", exitUsage: "2"}[code]
}

// runCheck parses and runs one command line.
func runCheck(t *testing.T, args []string, out, errw *bytes.Buffer) (code int) {
	defer func() {
		if s, ok := recover().(shown); ok {
			code = s.code
		}
	}()
	var line struct {
		Check checkCmd `cmd:""`
	}
	sh := &shell{ctx: t.Context(), env: os.Environ(), out: out, err: errw}
	parser, err := kong.New(&line, kong.Name("heed"), kong.Writers(out, errw), kong.Exit(func(code int) { panic(shown{code}) }))
	if err != nil {
		t.Fatal(err)
	}
	k, err := parser.Parse(append([]string{"check"}, args...))
	if err != nil {
		sh.say("heed: %v", err)
		return exitUsage
	}
	return sh.end(k.Run(sh))
}
