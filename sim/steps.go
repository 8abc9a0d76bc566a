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

// Steps is a script that was parsed.
type Steps struct{ rules []rule }

// hookWord begins a line that tells of webhooks.
const hookWord = "webhook"

// rule is one line: what an operation answers at first.
type rule struct {
	method  string // * for any
	pattern pattern
	named   string // the logical name of an operation, in place of both
	event   string // or the name of an event, for webhooks
	steps   []step

	line, column int
	known        bool // its beginning could be read
}

// step is one misbehaviour, a number of times.
type step struct {
	text   string // as the journal tells it
	status int
	waits  map[string]time.Duration
	counts map[string]int
	said   string // the text in parentheses
	fault  *fault // nil: ok
	repeat int
	column int
}

// ParseSteps reads a script, one operation per line:
//
//	GET /v1/bibs/*: 503 x2, 429(after=1s), ok   # then as usual
//
// A line begins with a method or *, and a path in which * stands for one
// segment and ** for the rest. {name} and {name...} do the same, but with a
// list of steps for each text that they match. The path is the one within the
// pack. In place of both a line may begin with the logical name of an
// operation, such as charges.create, or with webhook and the name of an event,
// in which * stands for any text. After a colon and a space follow the
// steps: ok, a status from 200 to 599, or a word; in parentheses what it
// takes; and how often. A # after a space ends the line. Of several lines that
// match a request the first one counts. Every caller goes through a list on
// its own, once. The words:
//
//	429(after=1s)  429(date=1s)  429(remaining=0, reset=30s)   a status, with what the header tells
//	throttle(after=1s)       the provider's own way to throttle, which may be no 429
//	expire                   the credential has expired early
//	reset  close  hang(for=1h)      no answer: RST, FIN, silence
//	commit-then-reset  commit-then-500  commit-then-504  commit-then-hang(for=1h)   the work is done
//	slow(for=1s, upto=3s)  slow(median=200ms, p99=2s)   latency, fixed or by chance
//	stall(at=10, for=5s)  drip(bytes=1, every=100ms)    after the header
//	truncate  cut(at=100)           less than Content-Length says
//	cut-clean(at=100)  cut-valid    less, with a Content-Length that agrees; so that it still parses
//	malformed  wrong-type(text/plain)  empty  envelope  html  stale(age=1h)   a 200 that is none
//	redirect(http://other.example/)    to another host
//	golden(an expired token)           the answer of a golden exchange of the provider
//
// and of lines that begin with webhook, where every receiver goes through the
// list with the messages for it:
//
//	lost  late(for=1m)  twice(after=0s)  reorder(for=1m)   never, later, again, after the next one
//	forged  stale(age=1h)                                  signed by somebody else, or long ago
//
// An error is an *Error with every problem of the script.
func ParseSteps(text string) (Steps, error) {
	s, bad := readSteps(text)
	if err := failed(under("steps", bad)); err != nil {
		return Steps{}, err
	}
	return s, nil
}

// readSteps reads the lines that can be read, and says what is wrong with the
// others.
func readSteps(text string) (s Steps, bad []Problem) {
	if len(text) > maxScript {
		return s, []Problem{{Line: 1, Column: 1, Message: "the script is too long", Remedy: fmt.Sprintf("keep it under %d bytes", maxScript)}}
	}
	for i, line := range strings.Split(text, "\n") {
		p := scanner{line: strings.TrimSuffix(line, "\r"), number: i + 1}
		p.cutComment()
		p.space()
		if p.done() {
			continue
		}
		if r := p.rule(); r.known { // what it names is looked up even where its steps are wrong
			s.rules = append(s.rules, r)
		}
		bad = append(bad, p.problems...)
	}
	return s, bad
}

// String writes the script in its one standard form.
func (s Steps) String() string {
	var b strings.Builder
	for i := range s.rules {
		r := &s.rules[i]
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
func (s *Steps) find(x *Exchange) (i int, apart string, ok bool) {
	var v values
	for i := range s.rules {
		r := &s.rules[i]
		switch {
		case r.event != "":
		case r.named != "":
			if x.operation != nil && x.operation.Name == r.named {
				return i, "", true
			}
		case r.method != "*" && r.method != x.Request.Method:
		case r.pattern.match(x.Path, &v):
			return i, v.apart(), true
		}
	}
	return 0, "", false
}

func (r *rule) name() string {
	switch {
	case r.named != "":
		return r.named
	case r.event != "":
		return hookWord + " " + r.event
	}
	return r.method + " " + r.pattern.text
}

// at returns the n-th step, counted from 0.
func (r *rule) at(n int) (*step, bool) {
	for i := range r.steps {
		s := &r.steps[i]
		if n < s.repeat {
			return s, true
		}
		n -= s.repeat
	}
	return nil, false
}
