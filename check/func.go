package check

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Program is a client that is written in Go and runs in this process: what
// tests are made of.
type Program struct {
	Says Hello
	// Begin makes what does the operations of one session. log takes what the
	// program would write to its outputs.
	Begin func(s Setting, log func(string)) func(context.Context, Task) Outcome
}

// Hello returns what the program says of itself.
func (p Program) Hello(context.Context) (Hello, error) { return p.Says, nil }

// Open begins a session.
func (p Program) Open(ctx context.Context, s Setting) (Session, error) {
	one := &scene{}
	one.life, one.cancel = context.WithCancel(context.WithoutCancel(ctx))
	one.do = p.Begin(s, one.write)
	return one, nil
}

// scene is a session of a Program.
type scene struct {
	do     func(context.Context, Task) Outcome
	life   context.Context
	cancel context.CancelFunc

	mu  sync.Mutex
	out strings.Builder
}

func (s *scene) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.WriteString(text + "\n")
}

// Do runs beside the case, so that a program that ignores the end of its
// context does not hang the check.
func (s *scene) Do(ctx context.Context, t Task) Outcome {
	ended := make(chan Outcome, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				ended <- Outcome{Broken: fmt.Sprintf("panicked: %v", fault)}
			}
		}()
		ended <- s.do(s.life, t)
	}()
	select {
	case o := <-ended:
		return o
	case <-ctx.Done():
		return Outcome{Broken: context.Cause(ctx).Error()}
	}
}

// Close ends what is still running.
func (s *scene) Close() Output {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Output{Text: s.out.String(), Bytes: int64(s.out.Len())}
}
