package heed

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// choppy reads in pieces of the sizes given, round and round.
type choppy struct {
	r     io.Reader
	sizes []byte
	n     int
}

func (c *choppy) Read(p []byte) (int, error) {
	size := 1 + int(c.sizes[c.n%len(c.sizes)])*97
	c.n++
	return c.r.Read(p[:min(len(p), size)])
}

func (c *choppy) Close() error { return nil }

// FuzzSpool reads a spool in pieces of any size, gives readers up midway, and
// wants every reader to see the original from its start.
func FuzzSpool(f *testing.F) {
	f.Add([]byte("hello"), []byte{1, 2, 3}, uint16(1), uint32(3))
	f.Add([]byte("x"), []byte{0}, uint16(900), uint32(1<<20+5))
	f.Add([]byte{}, []byte{255}, uint16(0), uint32(0))
	f.Fuzz(func(t *testing.T, seed, sizes []byte, repeat uint16, stop uint32) {
		if len(sizes) == 0 {
			sizes = []byte{7}
		}
		text := bytes.Repeat(seed, min(int(repeat), (3<<20)/(len(seed)+1)))
		s := newSpool(&choppy{r: bytes.NewReader(text), sizes: sizes})
		defer s.Close()
		first := s.reader(nil)
		part := make([]byte, min(int(stop), len(text)))
		if _, err := io.ReadFull(&choppy{r: first, sizes: sizes[len(sizes)/2:]}, part); err != nil || !bytes.Equal(part, text[:len(part)]) {
			t.Fatalf("the first %d bytes: %v", len(part), err)
		}
		for range 2 {
			got, err := io.ReadAll(&choppy{r: s.reader(nil), sizes: sizes})
			if err != nil || !bytes.Equal(got, text) {
				t.Fatalf("got %d bytes, want %d (%v)", len(got), len(text), err)
			}
		}
		if _, err := first.Read(make([]byte, 1)); !errors.Is(err, errSpoolClosed) {
			t.Errorf("the reader before got %v", err)
		}
	})
}

func TestABodyBeyondTheLimitGoesThroughAndIsNotReplayable(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 1000)
	s := newSpool(io.NopCloser(bytes.NewReader(text)))
	s.limit = 5000
	got, err := io.ReadAll(s.reader(nil))
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("the reader got %d bytes, %v", len(got), err)
	}
	if s.replayable() {
		t.Error("it says that it can be sent again")
	}
	if n, err := s.reader(nil).Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("another reader got %d bytes, %v; want an error, never an empty body", n, err)
	}
}

func TestFillStopsAtTheLimit(t *testing.T) {
	src := bytes.NewReader(make([]byte, 10<<20))
	s := newSpool(io.NopCloser(src))
	s.limit = 1000
	if err := s.fill(nil); !errors.Is(err, errTooLarge) || src.Len() < 9<<20 {
		t.Errorf("got %v with %d bytes unread", err, src.Len())
	}
}

// faultySource panics once it has been read from.
type faultySource struct{ read bool }

func (s *faultySource) Read(p []byte) (int, error) {
	if s.read {
		panic("a bug of the source")
	}
	s.read = true
	return copy(p, "abc"), nil
}

func (s *faultySource) Close() error { return nil }

func TestASourceThatPanicsDoesSoWhereTheSpoolIsRead(t *testing.T) {
	s := newSpool(&faultySource{})
	for range 2 {
		r := s.reader(nil)
		head := make([]byte, 3)
		if _, err := io.ReadFull(r, head); err != nil || string(head) != "abc" {
			t.Fatalf("what was read before is %q, %v", head, err)
		}
		func() {
			defer func() {
				if got := recover(); got != "a bug of the source" {
					t.Errorf("the reader panicked with %v", got)
				}
			}()
			r.Read(head)
		}()
	}
	if s.replayable() {
		t.Error("it says that it can be sent again")
	}
}

// boastful says that it has read more than there is room for.
type boastful struct{}

func (boastful) Read(p []byte) (int, error) { return len(p) + 1, nil }

func TestASourceThatReadsMoreThanThereIsRoomForIsAnError(t *testing.T) {
	s := newSpool(io.NopCloser(boastful{}))
	if n, err := s.reader(nil).Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("got %d bytes, %v; want an error", n, err)
	}
}
