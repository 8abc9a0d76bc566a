//go:build linux

package check_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/check"
)

// working tells whether a goroutine is at work in the package.
func working() bool {
	all := make([]byte, 1<<20)
	return bytes.Contains(all[:runtime.Stack(all, true)], []byte("heedproject/heed/check."))
}

func TestACheckLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	app := httptest.NewServer(adapter())
	defer app.Close()
	for name, c := range map[string]check.Client{
		"command":            shell("sleep 0.01"),
		"command that hangs": shell("sleep 1000"),
		"lines":              speaking(`while read line; do echo '{"id":"read","ok":true}'; done`),
		"lines that hang":    speaking("exec sleep 1000"),
		"lines that close":   speaking("exec 1>&-; exec sleep 1000"),
		"adapter":            check.Adapter{URL: app.URL},
		"program":            quiet(check.Hello{}),
		"gateway":            check.Bare(),
	} {
		if _, err := check.Run(t.Context(), check.Options{Client: c, Cases: oneRead(), Limit: 300 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // they need no more than their turn
		for working() && ctx.Err() == nil {
			runtime.Gosched()
		}
		if ctx.Err() != nil {
			t.Errorf("%s: somebody is still at work", name)
		}
		cancel()
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), "heed-check-") {
			t.Errorf("%s is left", f.Name())
		}
	}
}
