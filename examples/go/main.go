// Command go shows heed in a Go program: an http.Client whose Transport gets
// calls through. Run it against the demo:
//
//	go run ./cmd/heed up
//	go run ./examples/go http://127.0.0.1:8642/demo/go
//
// Against the gateway, as here, the gateway retries and the program waits.
// Given the URL of an API itself, the program's own Transport retries.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./examples/go URL")
		os.Exit(2)
	}
	if err := fetch(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// client is made once and shared: its Transport remembers what the server said.
var client = &http.Client{Transport: &heed.Transport{
	Policy: policy.Policy{
		Retry:   policy.Retry{Budget: 2 * time.Minute},
		Backoff: policy.Backoff{Base: 200 * time.Millisecond},
	},
	Observe: func(e heed.Event) {
		slog.Info(e.Kind.String(), "attempt", e.Attempt, "status", e.Status, "class", e.Class.String(), "delay", e.Delay)
	},
}}

func fetch(url string) error {
	resp, err := client.Get(url)
	if failed, ok := errors.AsType[*heed.Error](err); ok && !failed.RetryAt.IsZero() {
		return fmt.Errorf("not now; try again at %s", failed.RetryAt.Format(time.RFC3339))
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return err
	}
	if report, ok := heed.ReportOf(resp); ok {
		fmt.Fprintf(os.Stderr, "status %d after %d attempt(s), waited %s\n", resp.StatusCode, report.Attempts, report.Waited)
	}
	return nil
}
