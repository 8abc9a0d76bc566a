package heed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Bounds of what is kept of a body so that it can be sent again.
const (
	spoolMemory = 1 << 20 // beyond it, a file
	spoolLimit  = 1 << 30 // beyond it, the body cannot be sent again
)

var errTooLarge = errors.New("the body is larger than the limit")

var errSpoolClosed = errors.New("heed: the attempt that read this body has ended")

// spool keeps what has been read of a body while it streams, so that another
// reader can begin at the start and go on where the first stopped. Only the
// latest reader may read.
type spool struct {
	turn sync.Mutex // held while src is read, which may take long
	src  io.ReadCloser

	mu      sync.Mutex
	srcErr  error // how src ended; io.EOF when whole
	taken   int64 // read from src so far
	mem     []byte
	file    *os.File
	size    int64 // kept so far
	limit   int64
	lost    bool // more was read than is kept
	current *spoolReader
	closed  bool
}

func newSpool(src io.ReadCloser) *spool { return &spool{src: src, limit: spoolLimit} }

// spoolReader reads the body from its start.
type spoolReader struct {
	s  *spool
	at int64
}

// reader returns the body from its start; the reader before it ends.
func (s *spool) reader() *spoolReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = &spoolReader{s: s}
	return s.current
}

// again is reader for the HTTP stack, where there still is a whole body.
func (s *spool) again() (io.ReadCloser, error) {
	if !s.replayable() {
		return nil, errors.New("heed: the body cannot be sent again")
	}
	return s.reader(), nil
}

// replayable tells whether another reader would see the whole body.
func (s *spool) replayable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.lost && (s.srcErr == nil || s.srcErr == io.EOF)
}

// Read implements io.Reader.
func (r *spoolReader) Read(p []byte) (int, error) {
	if n, done, err := r.s.replay(r, p); done {
		return n, err
	}
	r.s.turn.Lock() // an ended attempt may still be reading
	defer r.s.turn.Unlock()
	if n, done, err := r.s.replay(r, p); done {
		return n, err
	}
	n, err := r.s.src.Read(p)
	return r.s.took(r, p[:n], err)
}

// replay serves r from what is kept; done is false when src must be read.
func (s *spool) replay(r *spoolReader, p []byte) (n int, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.current != r:
		return 0, true, errSpoolClosed
	case r.at < s.size:
		n, err = s.kept(p, r.at)
		r.at += int64(n)
		return n, true, err
	case r.at != s.taken:
		return 0, true, errors.New("heed: the body is too large to be sent again")
	case s.srcErr != nil:
		return 0, true, s.srcErr
	}
	return 0, false, nil
}

// took notes what r read from src.
func (s *spool) took(r *spoolReader, p []byte, err error) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += int64(len(p))
	s.srcErr = err
	if !s.closed {
		s.keep(p)
	}
	if s.current != r {
		return 0, errSpoolClosed
	}
	r.at += int64(len(p))
	return len(p), err
}

// kept reads from what is kept.
func (s *spool) kept(p []byte, at int64) (int, error) {
	if at < int64(len(s.mem)) {
		return copy(p, s.mem[at:]), nil
	}
	n, err := s.file.ReadAt(p[:min(int64(len(p)), s.size-at)], at-int64(len(s.mem)))
	if n > 0 {
		err = nil
	}
	return n, err
}

// keep stores what was read. A spool that cannot store goes on without: the
// body then cannot be sent again.
func (s *spool) keep(p []byte) {
	if s.lost || len(p) == 0 {
		return
	}
	if s.size+int64(len(p)) > s.limit {
		s.drop()
		return
	}
	room := spoolMemory - len(s.mem)
	head := p[:min(room, len(p))]
	s.mem = append(s.mem, head...)
	s.size += int64(len(head))
	if tail := p[len(head):]; len(tail) > 0 && !s.spill(tail) {
		s.drop()
	}
}

func (s *spool) spill(p []byte) bool {
	if s.file == nil {
		f, err := os.CreateTemp("", "heed-body-*")
		if err != nil {
			return false
		}
		_ = os.Remove(f.Name()) // it lives as long as it is open
		s.file = f
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return err == nil
}

// drop gives up what is kept; the current reader goes on.
func (s *spool) drop() {
	s.lost = true
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	s.mem, s.size = nil, 0
}

// fill reads the whole body, or as much as shows that it is too large to keep.
func (s *spool) fill() error {
	r, buf := s.reader(), make([]byte, 32<<10)
	for {
		switch _, err := r.Read(buf); {
		case s.dropped():
			return fmt.Errorf("%w, %d bytes,", errTooLarge, s.limit)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read the body: %w", err)
		}
	}
}

func (s *spool) dropped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close ends the reader for its attempt; the spool lives on.
func (r *spoolReader) Close() error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.current == r {
		r.s.current = nil
	}
	return nil
}

// Close releases the caller's body and what is kept of it. It does not wait
// for a reader: closing the source is what ends one that is blocked.
func (s *spool) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.drop()
	s.mu.Unlock()
	if was {
		return nil
	}
	return s.src.Close()
}

// rejoined is a body whose beginning was read ahead.
type rejoined struct {
	head []byte
	rest io.ReadCloser
	err  error // how reading ahead ended
}

func (b *rejoined) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

func (b *rejoined) Close() error { return b.rest.Close() }
