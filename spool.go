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

var errFault = errors.New("reading the body panicked")

var errSpoolClosed = errors.New("heed: the attempt that read this body has ended")

// spool keeps what has been read of a body while it streams, so that another
// reader can begin at the start and go on where the first stopped. Only the
// latest reader may read. The source is read by a goroutine of its own, one
// piece at a time, so that a source that stalls does not hold up whoever waits
// for it longer than that one's attempt.
type spool struct {
	src   io.ReadCloser
	limit int64

	mu      sync.Mutex
	reading chan struct{} // closed when the piece that is read is there; nil: none is read
	piece   []byte        // the latest piece, once nothing is kept any more
	srcErr  error         // how src ended; io.EOF when whole
	fault   any           // what reading src panicked with; nil: it did not
	taken   int64         // read from src so far
	mem     []byte
	file    *os.File
	size    int64 // kept so far
	lost    bool  // more was read than is kept
	current *spoolReader
	closed  bool
}

func newSpool(src io.ReadCloser) *spool { return &spool{src: src, limit: spoolLimit} }

// spoolReader reads the body from its start, until end is closed.
type spoolReader struct {
	s   *spool
	at  int64
	end <-chan struct{}
}

// reader returns the body from its start; the reader before it ends.
func (s *spool) reader(end <-chan struct{}) *spoolReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = &spoolReader{s: s, end: end}
	return s.current
}

// again is reader for the HTTP stack, where there still is a whole body.
func (s *spool) again(end <-chan struct{}) (io.ReadCloser, error) {
	if !s.replayable() {
		return nil, errors.New("heed: the body cannot be sent again")
	}
	return s.reader(end), nil
}

// replayable tells whether another reader would see the whole body.
func (s *spool) replayable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.lost && (s.srcErr == nil || s.srcErr == io.EOF)
}

// unread tells that the source failed, or, at a timeout, that it was what was
// waited for.
func (s *spool) unread(timeout bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srcErr != nil && s.srcErr != io.EOF || timeout && s.reading != nil
}

// Read implements io.Reader.
func (r *spoolReader) Read(p []byte) (int, error) {
	for {
		n, more, err := r.s.replay(r, p)
		if more == nil {
			return n, err
		}
		select {
		case <-more:
		case <-r.end:
			return 0, errSpoolClosed
		}
	}
}

// replay serves r from what is there, or starts to read more.
func (s *spool) replay(r *spoolReader, p []byte) (n int, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	piece := s.taken - int64(len(s.piece)) // where it begins
	switch {
	case s.closed || s.current != r:
		return 0, nil, errSpoolClosed
	case r.at < s.size:
		n, err = s.kept(p, r.at)
	case r.at >= piece && r.at < s.taken:
		n = copy(p, s.piece[r.at-piece:])
	case r.at != s.taken:
		err = errors.New("heed: the body is too large to be sent again")
	case s.fault != nil:
		panic(s.fault) // here somebody can recover, as they could without a spool
	case s.srcErr != nil:
		err = s.srcErr
	default:
		return 0, s.pump(), nil
	}
	r.at += int64(n)
	return n, nil, err
}

// pump reads the next piece, unless that is under way.
func (s *spool) pump() <-chan struct{} {
	if s.reading == nil {
		s.reading = make(chan struct{})
		go s.take(s.reading)
	}
	return s.reading
}

// pieces are what src is read into.
var pieces = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (s *spool) take(done chan struct{}) {
	buf := pieces.Get().(*[32 << 10]byte)
	defer pieces.Put(buf)
	n, fault, err := s.pull(buf[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += int64(n)
	s.srcErr, s.fault = err, fault
	s.piece = nil
	if !s.closed {
		s.keep(buf[:n])
	}
	if s.lost && !s.closed {
		s.piece = append([]byte(nil), buf[:n]...)
	}
	s.reading = nil
	close(done)
}

// pull reads from src. A panic there would end the process, as the goroutine is
// nobody's: it is kept for who reads the spool.
func (s *spool) pull(p []byte) (n int, fault any, err error) {
	defer func() {
		if fault = recover(); fault != nil {
			n, err = 0, errFault
		}
	}()
	if n, err = s.src.Read(p); n < 0 || n > len(p) {
		return 0, nil, fmt.Errorf("reading the body returned %d bytes for a buffer of %d", n, len(p))
	}
	return n, nil, err
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
func (s *spool) fill(end <-chan struct{}) error {
	r, buf := s.reader(end), make([]byte, 32<<10)
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
// for a piece that is being read: closing the source may end that, or may
// itself have to wait for it.
func (s *spool) Close() error {
	s.mu.Lock()
	was, reading := s.closed, s.reading != nil
	s.closed = true
	s.drop()
	s.piece = nil
	s.mu.Unlock()
	switch {
	case was:
		return nil
	case reading:
		go s.src.Close()
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
