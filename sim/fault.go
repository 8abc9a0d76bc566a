package sim

import (
	"slices"
	"strings"
	"time"
)

// fault is one way to misbehave.
//
// To add one:
//  1. Write its serve function in a file fault_NAME.go, with a comment that
//     says what a client sees and what happened on the server.
//  2. End with x.write(answer), x.refuse(refusal), or, where the client sees
//     no answer, x.outcome(0) and an aborted handler.
//  3. A fault that lets the operation happen calls x.operate; one that comes
//     before authorization and limits calls x.usual instead.
//  4. One that waits calls x.hold first, so that a second request with the
//     same idempotency key meets it in flight, and then x.rest: never time.Sleep.
//  5. Chance comes from x.Draw("NAME") and from nowhere else.
//  6. List it in faults below, with the arguments that it takes, and add its
//     word to the comment of ParseSteps and a test of what is on the wire.
type fault struct {
	name   string
	serve  func(x *Exchange)
	spoil  func(d *delivery, s *step) // of the words for webhooks, in place of serve
	takes  []string                   // names of durations, all optional
	counts []string                   // names of numbers, all optional
	text   string                     // what the text in parentheses is; "": it takes none
	must   bool                       // the text may not be left out
	// fits says what is wrong with the text, and what to write. Optional.
	fits func(text string) (message, remedy string)
}

var statusFault = fault{name: "a status", serve: serveStatus, takes: []string{"after", "date", "reset"}, counts: []string{"remaining"}}

// faults lists the words of the steps language.
var faults = []fault{
	{name: "throttle", serve: serveThrottle, takes: []string{"after", "date"}},
	{name: "expire", serve: serveExpire},
	{name: "reset", serve: serveReset},
	{name: "close", serve: serveClose},
	{name: "hang", serve: serveHang, takes: []string{"for"}},
	{name: "commit-then-reset", serve: serveCommitThenReset},
	{name: "commit-then-500", serve: func(x *Exchange) { serveCommitThen(x, 500) }},
	{name: "commit-then-504", serve: func(x *Exchange) { serveCommitThen(x, 504) }},
	{name: "commit-then-hang", serve: serveCommitThenHang, takes: []string{"for"}},
	{name: "slow", serve: serveSlow, takes: []string{"for", "upto", "median", "p99"}},
	{name: "stall", serve: serveStall, takes: []string{"for"}, counts: []string{"at"}},
	{name: "drip", serve: serveDrip, takes: []string{"every"}, counts: []string{"bytes"}},
	{name: "truncate", serve: serveTruncate},
	{name: "cut", serve: serveCut, counts: []string{"at"}},
	{name: "cut-clean", serve: serveCutClean, counts: []string{"at"}},
	{name: "cut-valid", serve: serveCutValid},
	{name: "malformed", serve: serveMalformed},
	{name: "wrong-type", serve: serveWrongType, text: "a media type", fits: isMedia},
	{name: "empty", serve: serveEmpty},
	{name: "envelope", serve: serveEnvelope},
	{name: "html", serve: serveHTML},
	{name: "stale", serve: serveStale, takes: []string{"age"}},
	{name: "redirect", serve: serveRedirect, text: "a URL", fits: isAddress},
	{name: "golden", serve: serveGolden, text: "the name of a golden exchange", must: true},
}

// usage says what f takes; f is nil for ok.
func (f *fault) usage() string {
	switch {
	case f == nil:
	case f.text != "":
		return "it takes " + f.text
	case len(f.takes)+len(f.counts) > 0:
		return "it takes " + strings.Join(slices.Concat(f.takes, f.counts), "=, ") + "="
	}
	return "write it without parentheses"
}

// wait returns a duration of the step, or d when the step does not give it.
func (s *step) wait(name string, d time.Duration) time.Duration {
	if w, ok := s.waits[name]; ok {
		return w
	}
	return d
}

// count returns a number of the step, or n when the step does not give it.
func (s *step) count(name string, n int) int {
	if c, ok := s.counts[name]; ok {
		return c
	}
	return n
}

// waiting holds the idempotency key and waits. It tells whether the fault may
// go on; if not, what there is to answer is answered.
func (x *Exchange) waiting(d time.Duration) bool {
	if r := x.hold(); r != nil {
		x.refuse(*r)
		return false
	}
	if !x.rest(d) {
		x.outcome(0)
		return false
	}
	return true
}
