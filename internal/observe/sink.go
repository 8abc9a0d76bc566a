package observe

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// linger is how long the owner of a sink lets lines gather before it writes
// them: a system call per line would cost more than the line.
const linger = 5 * time.Millisecond

// sink takes lines from many goroutines and writes them from one. It holds at
// most limit bytes; a line that does not fit is dropped and counted.
type sink struct {
	w     io.Writer
	limit int
	// told renders the line that says how many were dropped.
	told func(now time.Time, lost uint64) []byte

	mu      sync.Mutex
	buf     []byte
	spare   []byte
	untold  uint64 // dropped since the last line that said so
	dropped uint64 // dropped ever
	failed  uint64 // writes that failed
	err     error  // of the last of them
	closed  bool

	wake chan struct{}
	stop chan struct{}
	done chan struct{}
}

func newSink(w io.Writer, limit int, told func(time.Time, uint64) []byte) *sink {
	s := &sink{
		w: w, limit: limit, told: told,
		wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	go s.run()
	return s
}

// put takes one whole line. It does not block and keeps nothing of p.
func (s *sink) put(p []byte) {
	s.mu.Lock()
	if s.closed || len(s.buf)+len(p) > s.limit {
		s.untold++
		s.dropped++
		s.mu.Unlock()
		return
	}
	first := len(s.buf) == 0
	s.buf = append(s.buf, p...)
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Write makes the sink the output of a slog.Handler, which writes whole lines.
func (s *sink) Write(p []byte) (int, error) {
	s.put(p)
	return len(p), nil
}

func (s *sink) run() {
	defer close(s.done)
	pause := time.NewTimer(linger)
	defer pause.Stop()
	for {
		select {
		case <-s.wake:
		case <-s.stop:
			s.flush()
			return
		}
		pause.Reset(linger)
		select {
		case <-pause.C:
		case <-s.stop:
		}
		s.flush()
	}
}

// flush writes what is held. Only the owner calls it.
func (s *sink) flush() {
	s.mu.Lock()
	out, lost := s.buf, s.untold
	s.buf, s.untold = s.spare[:0], 0
	s.mu.Unlock()
	if lost > 0 {
		out = append(out, s.told(time.Now(), lost)...)
	}
	var err error
	if len(out) > 0 {
		_, err = s.w.Write(out)
	}
	s.mu.Lock()
	s.spare = out
	if err != nil {
		s.failed++
		s.err = err
	}
	s.mu.Unlock()
}

// counts returns how many lines were dropped and how many writes failed.
func (s *sink) counts() (dropped, failed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped, s.failed
}

// close writes what is held and ends the owner. A writer that blocks for
// longer than ctx is left behind.
func (s *sink) close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.stop)
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("the log was not written to its end: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("%d write(s) to the log failed, check its disk: %w", s.failed, s.err)
	}
	return nil
}
