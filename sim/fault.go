package sim

import (
	"context"
	"slices"
	"strings"
	"time"
)

// fault is one way to misbehave. To add one: write its serve function in a
// file of its own, with a comment that says what a client sees, and list it
// in faults. A fault that lets the operation happen calls x.operate.
type fault struct {
	name   string
	takes  []string // names of durations, all optional
	serve  func(x *exchange)
	counts []string // names of numbers, all optional
}

var statusFault = fault{"a status", []string{"after", "date", "reset"}, serveStatus, []string{"remaining"}}

// faults lists the words of the steps language.
var faults = []fault{
	{"reset", nil, serveReset, nil},
	{"commit-then-reset", nil, serveCommitThenReset, nil},
	{"truncate", nil, serveTruncate, nil},
	{"envelope", nil, serveEnvelope, nil},
	{"empty", nil, serveEmpty, nil},
	{"html", nil, serveHTML, nil},
	{"stale", []string{"age"}, serveStale, nil},
	{"slow", []string{"for", "upto"}, serveSlow, nil},
	{"hang", []string{"for"}, serveHang, nil},
}

func faultNames() string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// usage says what f takes; f is nil for ok.
func (f *fault) usage() string {
	if f == nil || len(f.takes) == 0 {
		return "write it without parentheses"
	}
	return "it takes " + strings.Join(slices.Concat(f.takes, f.counts), "=, ") + "="
}

// wait returns a duration of the step, or d when the step does not give it.
func (s step) wait(name string, d time.Duration) time.Duration {
	if w, ok := s.waits[name]; ok {
		return w
	}
	return d
}

// rest waits for d and tells whether the caller is still there.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
