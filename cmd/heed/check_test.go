package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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
