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
	"time"
)

const (
	maxLine      = 1 << 20
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
	cmd.Env = slices.Concat(l.Env, s.environ())
	one := &lines{keep: newTail(), asked: map[string]chan Outcome{}, first: make(chan struct{}), over: make(chan struct{})}
	var err error
	if one.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	one.family = newFamily(cmd)
	cmd.Stdout, cmd.Stderr = feed, flood{one.family, one.keep}
	err = cmd.Start()
	feed.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	one.out = out
	one.ends.Go(one.read)
	one.ends.Go(func() {
		one.status, _ = one.family.wait()
		time.AfterFunc(100*time.Millisecond, func() { out.Close() }) // children may hold the other end
	})
	return one, one.greeted(ctx)
}

// lines is a session of Lines.
type lines struct {
	family *family
	in     io.WriteCloser
	out    *os.File
	keep   *tail
	ends   sync.WaitGroup
	status int

	hello Hello
	bad   string // why its first line is none
	first chan struct{}
	over  chan struct{} // its output has ended

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
	if s.Err() != nil { // a line that is too long; what follows is not looked at
		_, _ = io.Copy(flood{l.family, l.keep}, l.out)
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
		l.garbage++
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
	_, err = l.in.Write(append(line, '\n'))
	l.mu.Unlock()
	if err != nil {
		return l.ended(answer)
	}
	select {
	case o := <-answer:
		return o
	case <-l.over:
		return l.ended(answer)
	case <-ctx.Done():
		return Outcome{Broken: context.Cause(ctx).Error()}
	}
}

// ended is the outcome of an operation during which the client ended.
func (l *lines) ended(answer chan Outcome) Outcome {
	select {
	case o := <-answer:
		return o
	default:
	}
	if l.family.flooded() {
		return Outcome{Broken: fmt.Sprintf("wrote more than %d MiB", mostOutput>>20)}
	}
	l.ends.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.garbage > 0 {
		return Outcome{Broken: fmt.Sprintf("wrote %s that are no outcome and ended with status %d", count(l.garbage, "line"), l.status)}
	}
	return Outcome{Broken: fmt.Sprintf("ended with status %d in the middle of an operation", l.status)}
}

// Close ends the input, gives the program a moment, and ends all of it.
func (l *lines) Close() Output {
	_ = l.in.Close()
	select {
	case <-l.over:
	case <-time.After(500 * time.Millisecond):
		l.family.kill()
	}
	l.ends.Wait()
	_ = l.out.Close()
	out := l.keep.told()
	out.Bytes = l.family.wrote.Load()
	out.Left = l.family.left
	return out
}
