// Package admit decides whether an attempt may leave now.
//
// A Gate is the state of one quota key: breaker, rate, quota, concurrency and
// retry budget, shared by all callers of the key. What one caller learns from
// an answer, all know. A Line in front of it orders the callers of this
// process: by priority, then fairly by tenant, then by age.
//
// The life of an attempt: Line.Ask until the answer is Go or No; the attempt;
// Line.Observe with what came of it; Line.Release when its body is closed.
// Whoever asks does the waiting (the Transport sleeps, a queue stores the
// instant, a planner jumps there): nothing here reads a clock.
//
// Limits: a gate knows this process only. A store that shares the state of a
// key between processes implements Keeper and takes the place of Gate.
package admit

import (
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// Kind is the answer to "may I send?".
type Kind uint8

// The answers.
const (
	Wait Kind = iota // not before Answer.At; zero At: until woken
	Go
	No // not at all; Answer.At says when asking again makes sense
)

// State is the state of a breaker.
type State uint8

// The states.
const (
	Closed State = iota
	Open
	HalfOpen // open, with a probe on its way or due
)

// String returns the word used in logs.
func (s State) String() string { return [...]string{"closed", "open", "half_open"}[s] }

// Ask is what a caller says when it wants to send.
type Ask struct {
	Group   int  // index into policy.Limits.Groups, or -1
	First   bool // the first attempt of its call
	Waiting int  // how many others wait: demand, for learning
}

// Pass is the permission to send one attempt. It goes back with Observe and Release.
type Pass struct {
	At    time.Time
	Seq   uint64 // how many were let through before it
	Gen   uint32 // of the breaker
	Group int
	Probe bool // it finds out whether the dependency is back
	// Crowded tells that more than half of the slots were taken with it: one
	// that is never given back would be missed.
	Crowded bool
}

// Answer is what a Keeper says to an Ask.
type Answer struct {
	Kind   Kind
	At     time.Time
	Source policy.WaitSource
	// Everyone tells that At holds for all callers of the key, not only for
	// the one who asked.
	Everyone bool
	Breaker  State
	Pass     Pass // with Go
}

// Result is what came of an attempt.
type Result struct {
	Pass    Pass
	Verdict classify.Verdict
	Hint    hint.Hint
	Status  int // 0: no answer
	// Failure is why there was no answer.
	Failure classify.Failure
	// Retry tells that the call wants another attempt.
	Retry bool
	// Late tells that the Pass was observed before: the body was cut after
	// its head had looked well, or the retry that was paid for was given up.
	Late bool
	// Paid is what the last retry of the call took of the retry budget; a
	// success gives it back.
	Paid int
}

// Told is what the gate made of a Result.
type Told struct {
	Retry   bool // the retry budget allows the attempt that was asked for
	Cost    int  // and this is what it took
	Breaker State
	// Changed tells that Breaker is new.
	Changed bool
	// Until is when the key opens again, if it is closed for everyone now.
	Until time.Time
	// Source says why it is closed.
	Source policy.WaitSource
}

// Keeper keeps the state of one quota key. Each method is one atomic step.
type Keeper interface {
	// Admit decides about one attempt and, with Go, takes what it needs.
	Admit(now time.Time, a Ask) Answer
	// Observe learns from one attempt. It is called once for each Pass,
	// and again, with Late, when the body was cut.
	Observe(now time.Time, r Result) Told
	// Release gives the concurrency permit back when the body is closed.
	Release(now time.Time, p Pass)
}
