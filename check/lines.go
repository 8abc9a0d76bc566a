package check

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	s, err := l.open(ctx, Setting{BaseURL: "http://127.0.0.1:9", id: rand.Text()})
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
	asked   map[string]chan Outcome // nil: it has answered
	fault   string                  // how it broke the protocol
	garbage int                     // lines that are no outcome
	stray   string                  // the first of them
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
	return fmt.Errorf("%s; it must begin with a line such as {\"name\":\"…\",\"claims\":[\"retry\"]}%s", why, quoted(hide(out.Text, l.keep.sought)))
}

// quoted is the end of what a client wrote, for a message.
func quoted(text string) string {
	const most = 300
	if over := len(text) - 4*most; over > 0 { // no character has more bytes
		text = text[over:]
	}
	all := []rune(strings.Join(strings.Fields(plainly(text, len(text))), " "))
	switch {
	case len(all) == 0:
		return ""
	case len(all) > most:
		return "; it wrote: …" + string(all[len(all)-most:])
	}
	return "; it wrote: " + string(all)
}

// read takes the output apart.
func (l *lines) read() {
	defer close(l.over)
	s := bufio.NewScanner(l.out)
	s.Buffer(nil, maxLine)
	greeting := true
	for at := 1; s.Scan(); at++ {
		if l.family.wrote.Add(int64(len(s.Bytes()))+1) > mostOutput {
			l.family.kill()
			return
		}
		line := bytes.TrimSpace(s.Bytes())
		switch {
		case len(line) == 0:
		case greeting:
			greeting = false
			if err := parsed(line, &l.hello); err != nil {
				if l.bad = "in its first line " + err.Error(); errors.Is(err, errStray) {
					l.bad = "its first line is no JSON object"
				}
				_, _ = l.keep.Write(append(line, '\n')) // it never fails
			}
			close(l.first)
		default:
			l.take(at, line)
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) { // what follows could not be understood
		l.long.Store(true)
		l.family.kill()
		_, _ = io.Copy(flood{l.family, l.keep}, l.out) // until its end
	}
}

// take hands an outcome to who waits for it.
func (l *lines) take(at int, line []byte) {
	r, err := replied(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != "" {
		return
	}
	waits, known := l.asked[filled(r.ID)]
	switch {
	case errors.Is(err, errStray):
		if l.garbage++; l.garbage == 1 {
			l.stray = fmt.Sprintf("line %d: %s", at, hide(string(line), l.keep.sought))
		}
		if l.garbage == mostGarbage {
			l.family.kill()
		}
		_, _ = l.keep.Write(append(line, '\n')) // it never fails
		return
	case err != nil:
	case r.ID == nil:
		err = errors.New("id is missing; it must be that of the operation")
	case !known:
		err = fmt.Errorf("it answered id %q, which nobody asked for", plainly(*r.ID, 80))
	case waits == nil:
		err = fmt.Errorf("it answered id %q a second time", plainly(*r.ID, 80))
	}
	if err != nil { // what it meant could only be guessed
		l.fault = fmt.Sprintf("line %d: %s", at, err)
		l.family.kill()
		return
	}
	l.asked[*r.ID] = nil
	waits <- r.outcome()
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
	l.mu.Lock()
	fault := l.fault
	l.mu.Unlock()
	if fault != "" {
		return Outcome{Broken: "broke the protocol: " + fault}
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
	out.Fault, out.Stray, out.FirstStray = l.fault, l.garbage, l.stray // its reader has ended
	return out
}
