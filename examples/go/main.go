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
	if err != nil {
		return told(err)
	}
	defer resp.Body.Close()
	report, _ := heed.ReportOf(resp)
	if report.Reason != "" { // the server's last word, such as a 429 that the budget was too short for
		if !report.RetryAt.IsZero() {
			return fmt.Errorf("status %d: %s; try again at %s", resp.StatusCode, report.Reason, report.RetryAt.Format(time.RFC3339))
		}
		return fmt.Errorf("status %d: %s", resp.StatusCode, report.Reason)
	}
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return told(err)
	}
	fmt.Fprintf(os.Stderr, "status %d after %d attempt(s), waited %s\n", resp.StatusCode, report.Attempts, report.Waited)
	return nil
}

// told is the error of heed itself: around it an http.Client puts one whose
// text has the whole URL, with the query.
func told(err error) error {
	if failed, ok := errors.AsType[*heed.Error](err); ok {
		return failed
	}
	return err
}
