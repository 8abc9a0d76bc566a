package check

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxLine      = 1 << 20
	mostGarbage  = 5000             // lines that are no outcome
	helloTimeout = 15 * time.Second // interpreters start slowly on a busy machine
)

// Lines is a client that reads operations from its input and writes what came
// of them to its output, one JSON object per line. It begins with a line that
// says what it claims:
//
//	{"name":"urllib3","version":"2.5","claims":["retry","write","header"]}
//
// then for each Task, in any order,
//
//	{"id":"read","ok":true,"status":200}
//
// and it ends when its input does. One process is started for each session, with
// base URL, API key and deadline in its environment.
type Lines struct {
	Args []string
	// Env is the environment; that of the session is added.
	Env []string
}

// Hello starts the program once and reads its first line.
func (l Lines) Hello(ctx context.Context) (Hello, error) {
	s, err := l.open(ctx, Setting{BaseURL: "http://127.0.0.1:9", id: "hello"})
	if err != nil {
		return Hello{}, err
	}
	defer s.Close()
	h := s.hello
	if h.Name == "" {
		h.Name = filepath.Base(l.Args[0])
	}
	return h, nil
}

// Open starts the program and waits for its first line.
func (l Lines) Open(ctx context.Context, s Setting) (Session, error) {
	one, err := l.open(ctx, s)
	if err != nil {
		return nil, err
	}
	return one, nil
}

func (l Lines) open(ctx context.Context, s Setting) (*lines, error) {
	if len(l.Args) == 0 {
		return nil, errors.New("no program is named")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), l.Args[0], l.Args[1:]...)
	cmd.Env = slices.Concat(l.Env, s.environ(), unproxied(l.Env))
	one := &lines{keep: newTail(s.secrets()...), asked: map[string]chan Outcome{}, turn: make(chan struct{}, 1),
		first: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{})}
	one.family = newFamily(cmd)
	if err := one.start(cmd); err != nil {
		return nil, err
	}
	one.ends.Go(one.read)
	one.ends.Go(func() {
		one.status, _ = one.family.wait()
		close(one.gone)
		time.AfterFunc(100*time.Millisecond, func() { one.out.Close() }) // children may hold the other end
	})
	return one, one.greeted(ctx)
}

// start makes the pipes and starts the program.
func (l *lines) start(cmd *exec.Cmd) error {
	theirs, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	out, feed, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer feed.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, feed, flood{l.family, l.keep}
	if err = cmd.Start(); err != nil {
		in.Close()
		out.Close()
		return err
	}
	l.in, l.out = in, out
	return nil
}

// lines is a session of Lines.
type lines struct {
	family *family
	in     *os.File
	out    *os.File
	keep   *tail
	ends   sync.WaitGroup
	status int

	hello Hello
	bad   string        // why its first line is none
	turn  chan struct{} // of who writes
	first chan struct{}
	over  chan struct{} // its output has ended
	gone  chan struct{} // it has ended
	long  atomic.Bool   // it wrote a line beyond all bounds

	mu      sync.Mutex
	asked   map[string]chan Outcome
	garbage int // lines that are no outcome
}

// greeted waits for the first line.
func (l *lines) greeted(ctx context.Context) error {
	t := time.NewTimer(helloTimeout)
	defer t.Stop()
	var why string
	select {
	case <-l.first:
		if why = l.bad; why == "" {
			return nil
		}
	case <-l.over:
		select {
		case <-l.first:
			if why = l.bad; why == "" {
				return nil
			}
		default:
			why = "it ended before its first line"
		}
	case <-t.C:
		why = fmt.Sprintf("no first line came within %s", brief(helloTimeout))
	case <-ctx.Done():
		why = context.Cause(ctx).Error()
	}
	out := l.Close()
	return fmt.Errorf("%s; it must begin with a line such as {\"name\":\"…\",\"claims\":[\"retry\"]}%s", why, quoted(out.Text))
}

// quoted is the end of what a client wrote, for a message.
func quoted(text string) string {
	text = string(bytes.TrimSpace([]byte(text)))
	if text == "" {
		return ""
	}
	if len(text) > 300 {
		text = "…" + text[len(text)-300:]
	}
	return "; it wrote: " + text
}

// read takes the output apart.
func (l *lines) read() {
	defer close(l.over)
	s := bufio.NewScanner(l.out)
	s.Buffer(nil, maxLine)
	greeting := true
	for s.Scan() {
		if l.family.wrote.Add(int64(len(s.Bytes()))+1) > mostOutput {
			l.family.kill()
			return
		}
		line := bytes.TrimSpace(s.Bytes())
		switch {
		case len(line) == 0:
		case greeting:
			greeting = false
			if err := json.Unmarshal(line, &l.hello); err != nil {
				l.bad = "its first line is no JSON object"
				_, _ = l.keep.Write(append(line, '\n')) // it never fails
			}
			close(l.first)
		default:
			l.take(line)
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) { // what follows could not be understood
		l.long.Store(true)
		l.family.kill()
		_, _ = io.Copy(flood{l.family, l.keep}, l.out) // until its end
	}
}

// take hands an outcome to who waits for it.
func (l *lines) take(line []byte) {
	var o Outcome
	err := json.Unmarshal(line, &o)
	l.mu.Lock()
	defer l.mu.Unlock()
	waits, ok := l.asked[o.ID]
	if err != nil || !ok {
		if l.garbage++; l.garbage == mostGarbage {
			l.family.kill()
		}
		_, _ = l.keep.Write(append(line, '\n')) // it never fails
		return
	}
	delete(l.asked, o.ID)
	waits <- o
}

// Do writes a task and waits for its outcome.
func (l *lines) Do(ctx context.Context, t Task) Outcome {
	line, err := json.Marshal(t)
	if err != nil {
		return Outcome{Broken: err.Error()}
	}
	answer := make(chan Outcome, 1)
	l.mu.Lock()
	l.asked[t.ID] = answer
	l.mu.Unlock()
	err = l.send(ctx, append(line, '\n'))
	switch {
	case ctx.Err() != nil:
		return Outcome{Broken: context.Cause(ctx).Error()}
	case err != nil:
		return l.ended(ctx, answer)
	}
	select {
	case o := <-answer:
		return o
	case <-l.over:
		return l.ended(ctx, answer)
	case <-ctx.Done():
		return Outcome{Broken: context.Cause(ctx).Error()}
	}
}

// send writes a line, for as long as ctx lasts: a client need not read.
func (l *lines) send(ctx context.Context, line []byte) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	stop := context.AfterFunc(ctx, func() { _ = l.in.SetWriteDeadline(time.Unix(1, 0)) }) // the session is over then
	defer stop()
	_, err := l.in.Write(line)
	return err
}

// ended is the outcome of an operation during which the client ended, or closed
// what it is spoken to by.
func (l *lines) ended(ctx context.Context, answer chan Outcome) Outcome {
	select {
	case o := <-answer:
		return o
	default:
	}
	moment := time.NewTimer(300 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-l.gone:
	case <-ctx.Done():
	case <-moment.C:
	}
	select {
	case <-l.gone:
	default:
		return Outcome{Broken: "closed its input or its output, and did not end"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.long.Load():
		return Outcome{Broken: fmt.Sprintf("wrote a line of more than %d MiB", maxLine>>20)}
	case l.family.flooded():
		return Outcome{Broken: fmt.Sprintf("wrote more than %d MiB", mostOutput>>20)}
	case l.garbage > 0:
		return Outcome{Broken: fmt.Sprintf("wrote %s that are no outcome and ended with status %d", count(l.garbage, "line"), l.status)}
	}
	return Outcome{Broken: fmt.Sprintf("ended with status %d in the middle of an operation", l.status)}
}

// Close ends the input, gives the program a moment, and ends all of it.
func (l *lines) Close() Output {
	_ = l.in.Close()
	moment := time.NewTimer(500 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-l.gone:
	case <-moment.C:
		l.family.kill()
	}
	l.ends.Wait()
	_ = l.out.Close()
	out := l.keep.told()
	out.Bytes = l.family.wrote.Load()
	out.Left = l.family.left
	return out
}
