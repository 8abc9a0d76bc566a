package sim

import (
	"fmt"
	"strings"
	"time"
)

const (
	maxRepeat = 1_000_000
	maxScript = 64 << 10
)

// StepsError is what is wrong with a script, and where. Line and Column are
// counted from 1; a column is a character.
type StepsError struct {
	Line, Column    int
	Message, Remedy string
}

// Error implements error.
func (e *StepsError) Error() string {
	return fmt.Sprintf("steps: line %d, column %d: %s; %s", e.Line, e.Column, e.Message, e.Remedy)
}

// Steps is a script that was parsed.
type Steps struct{ rules []rule }

// rule is one line: what an operation answers at first.
type rule struct {
	method  string // * for any
	pattern pattern
	steps   []step
	total   int // steps with their repeats
}

// step is one misbehaviour, a number of times.
type step struct {
	text   string // as the journal tells it
	status int
	waits  map[string]time.Duration
	counts map[string]int
	fault  *fault // nil: ok
	repeat int
}

// ParseSteps reads a script, one operation per line:
//
//	GET /v1/bibs/*: 503 x2, 429(after=1s), ok   # then as usual
//
// A line begins with a method or *, and a path in which * stands for one
// segment and ** for the rest. {name} and {name...} do the same, but with a
// list of steps for each text that they match. After a colon and a space
// follow the steps: ok, a status from 200 to 599, or one of
// reset, commit-then-reset, truncate, envelope, empty, html, stale, slow and
// hang; in parentheses what it takes, as in 429(after=1s) or
// 429(remaining=0, reset=30s); and how often. A # after a space ends the
// line. Of several lines that match a request the first one counts. Every
// caller goes through a list on its own, once.
func ParseSteps(text string) (Steps, error) {
	var s Steps
	if len(text) > maxScript {
		return s, &StepsError{1, 1, "the script is too long", fmt.Sprintf("keep it under %d bytes", maxScript)}
	}
	for i, line := range strings.Split(text, "\n") {
		p := scanner{line: strings.TrimSuffix(line, "\r"), number: i + 1}
		p.cutComment()
		p.space()
		if p.done() {
			continue
		}
		r, err := p.rule()
		if err != nil {
			return Steps{}, err
		}
		s.rules = append(s.rules, r)
	}
	return s, nil
}

// String writes the script in its one standard form.
func (s Steps) String() string {
	var b strings.Builder
	for _, r := range s.rules {
		b.WriteString(r.name() + ":")
		for i, st := range r.steps {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(" " + st.text)
			if st.repeat > 1 {
				fmt.Fprintf(&b, " x%d", st.repeat)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// find returns the first rule that matches and what it counts apart by.
func (s Steps) find(method, path string) (i int, apart string, ok bool) {
	for i, r := range s.rules {
		if r.method != "*" && r.method != method {
			continue
		}
		if apart, ok := r.pattern.match(path); ok {
			return i, apart, true
		}
	}
	return 0, "", false
}

func (r rule) name() string { return r.method + " " + r.pattern.text }

// at returns the n-th step, counted from 0.
func (r rule) at(n int) (step, bool) {
	for _, s := range r.steps {
		if n < s.repeat {
			return s, true
		}
		n -= s.repeat
	}
	return step{}, false
}
