package check

import (
	"context"
	"sync"
	"time"
)

// allowance is the time that a client has for a case. It does not run while one
// of its programs starts: how fast they do, on a machine that may have other
// work, is not judged.
type allowance struct {
	end context.CancelCauseFunc

	mu       sync.Mutex
	left     time.Duration
	since    time.Time // when it last began to run
	starting int
	timer    *time.Timer
}

func newAllowance(d time.Duration, end context.CancelCauseFunc) *allowance {
	a := &allowance{end: end, left: d, since: time.Now()}
	a.timer = time.AfterFunc(d, a.over)
	return a
}

func (a *allowance) over() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.starting == 0 && time.Since(a.since) >= a.left {
		a.end(errLimit)
	}
}

// hold stops the time until release.
func (a *allowance) hold() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.starting++; a.starting == 1 {
		a.timer.Stop()
		a.left -= time.Since(a.since)
	}
}

func (a *allowance) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.starting--; a.starting == 0 {
		a.since = time.Now()
		a.timer.Reset(max(a.left, 0))
	}
}

func (a *allowance) stop() { a.timer.Stop() }
