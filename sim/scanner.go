package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// scanner reads one line.
type scanner struct {
	line   string
	number int
	pos    int // in bytes

	problems []Problem
}

func (p *scanner) cutComment() {
	for i := range p.line {
		if p.line[i] == '#' && (i == 0 || p.line[i-1] == ' ' || p.line[i-1] == '\t') {
			p.line = p.line[:i]
			return
		}
	}
}

func (p *scanner) done() bool { return p.pos >= len(p.line) }

func (p *scanner) space() {
	for !p.done() && (p.line[p.pos] == ' ' || p.line[p.pos] == '\t') {
		p.pos++
	}
}

// until reads up to the first byte of stop.
func (p *scanner) until(stop string) string {
	rest := p.line[p.pos:]
	if i := strings.IndexAny(rest, stop); i >= 0 {
		rest = rest[:i]
	}
	p.pos += len(rest)
	return rest
}

func (p *scanner) next(c byte) bool {
	if p.done() || p.line[p.pos] != c {
		return false
	}
	p.pos++
	return true
}

// bad notes that something is wrong at a byte of the line.
func (p *scanner) bad(pos int, remedy, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: p.number, Column: p.column(pos), Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (p *scanner) column(pos int) int { return utf8.RuneCountInString(p.line[:pos]) + 1 }

// rule reads the line. What can be read of it is read, so that all problems of
// a line are found.
func (p *scanner) rule() rule {
	var r rule
	begin := p.pos
	r.method = p.until(" \t:")
	r.line, r.column = p.number, p.column(begin)
	switch {
	case strings.Contains(r.method, ".") && p.next(':'): // a logical name such as charges.create
		r.named, r.method, r.known = r.method, "", true
		p.steps(&r, false)
	case r.method == hookWord:
		p.hook(&r)
	default:
		p.routed(&r, begin)
	}
	return r
}

// routed reads the rest of a line that begins with a method.
func (p *scanner) routed(r *rule, begin int) {
	isMethod := r.method == "*" || r.method != "" && strings.Trim(r.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	switch {
	case isMethod:
	case !strings.Contains(p.line, ": ") && !strings.HasSuffix(p.line, ":"): // steps alone
		p.bad(begin, "write what the steps are for before them, as in GET /v1/items/*: 503 x2, ok; or charges.create: 503; or * /**: 503 x2 for all requests",
			"a line of steps has a colon and a space, and this one has none")
		return
	default:
		p.bad(begin, "begin with a method such as GET, or *", "%q is no method", r.method)
	}
	p.space()
	begin = p.pos
	path, ok := p.path()
	r.pattern = newPattern(path)
	message, at := r.pattern.fault()
	switch {
	case message != "":
		if isMethod {
			p.bad(begin+at, "write a path such as /v1/bibs/*", "%q: %s", path, message)
		}
		if !ok {
			return // it may be no path at all
		}
	case !ok:
		p.bad(p.pos, "write a colon and a space, then the steps", "no steps follow the path")
		return
	}
	r.known = isMethod && message == ""
	p.steps(r, false)
}

// hook reads the rest of a line that tells of webhooks.
func (p *scanner) hook(r *rule) {
	p.space()
	begin := p.pos
	event, ok := p.path()
	switch {
	case event == "":
		p.bad(begin, "write webhook charge.succeeded: lost, or webhook *: twice", "the name of an event is missing")
	case !ok:
		p.bad(p.pos, "write a colon and a space, then the steps", "no steps follow the event")
		return
	}
	r.method, r.event, r.known = "", event, true
	p.steps(r, true)
}

// steps reads the list to the end of the line.
func (p *scanner) steps(r *rule, hook bool) {
	for {
		p.space()
		begin, found := p.pos, len(p.problems)
		s := p.step(hook)
		if len(p.problems) > found {
			p.pos = begin
			p.pass()
		}
		r.steps = append(r.steps, s)
		p.space()
		if !p.done() && p.line[p.pos] != ',' {
			p.bad(p.pos, "put a comma between two steps", "%q is not expected here", p.line[p.pos:])
			p.pass()
		}
		if !p.next(',') {
			return
		}
	}
}

// pass goes on to the comma that ends a step, or to the end of the line.
func (p *scanner) pass() {
	for depth := 0; !p.done(); p.pos++ {
		switch c := p.line[p.pos]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			return
		}
	}
}

// path reads up to a colon that a space follows, so that paths may have colons.
func (p *scanner) path() (string, bool) {
	begin := p.pos
	for ; !p.done() && p.line[p.pos] != ' ' && p.line[p.pos] != '\t'; p.pos++ {
		if p.line[p.pos] == ':' && (p.pos+1 == len(p.line) || p.line[p.pos+1] == ' ' || p.line[p.pos+1] == '\t') {
			p.pos++
			return p.line[begin : p.pos-1], true
		}
	}
	return p.line[begin:p.pos], false
}

func (p *scanner) step(hook bool) step {
	begin := p.pos
	word := p.until(" \t,()")
	s := step{text: word, repeat: 1, column: p.column(begin)}
	n, err := strconv.Atoi(word)
	switch {
	case word == "ok":
	case hook:
		if s.fault = faultOf(hookFaults, word); s.fault == nil {
			p.bad(begin, "use ok, "+wordsOf(hookFaults), "%q is no step of a webhook", word)
			return s
		}
	case err == nil && len(word) == 3 && n >= 200 && n <= 599:
		s.status, s.fault = n, &statusFault
	default:
		if s.fault = faultOf(faults, word); s.fault == nil {
			p.bad(begin, "use a status from 200 to 599, ok, "+wordsOf(faults), "%q is no step", word)
			return s
		}
	}
	if p.arguments(&s) {
		p.space()
		p.repeat(&s)
	}
	return s
}

// arguments reads what stands in parentheses, and tells whether they end.
func (p *scanner) arguments(s *step) bool {
	begin := p.pos
	if !p.next('(') {
		if s.fault != nil && s.fault.must {
			p.bad(p.pos, "write "+s.text+"(…)", "%s needs %s in parentheses", s.text, s.fault.text)
		}
		return true
	}
	if s.fault != nil && s.fault.text != "" {
		return p.said(s)
	}
	s.waits, s.counts = map[string]time.Duration{}, map[string]int{}
	for {
		if !p.argument(s) {
			p.until(",)")
		}
		if p.next(',') {
			continue
		}
		if !p.next(')') {
			p.bad(p.pos, "close it with )", "the parenthesis is open")
			return false
		}
		s.text += argumentText(p.line[begin:p.pos])
		return true
	}
}

// said reads a text up to the closing parenthesis.
func (p *scanner) said(s *step) bool {
	begin := p.pos
	s.said = strings.TrimSpace(p.until(")"))
	if s.said == "" {
		p.bad(begin, "write "+s.text+"(…)", "%s needs %s in parentheses", s.text, s.fault.text)
	} else if s.fault.fits != nil {
		if message, remedy := s.fault.fits(s.said); message != "" {
			p.bad(begin, remedy, "%s: %s", s.text, message)
		}
	}
	if !p.next(')') {
		p.bad(p.pos, "close it with )", "the parenthesis is open")
		return false
	}
	s.text += "(" + s.said + ")"
	return true
}

// argument reads name=value and tells whether it could.
func (p *scanner) argument(s *step) bool {
	p.space()
	at := p.pos
	name := strings.TrimSpace(p.until("=,()"))
	number := s.fault != nil && slices.Contains(s.fault.counts, name)
	_, twice := s.waits[name]
	_, counted := s.counts[name]
	switch {
	case !number && (s.fault == nil || !slices.Contains(s.fault.takes, name)):
		p.bad(at, s.fault.usage(), "%s takes no %q", s.text, name)
		return false
	case twice || counted:
		p.bad(at, "give it once", "%q is given twice", name)
		return false
	case !p.next('='):
		p.bad(p.pos, "write "+name+"= and a value", "%q has no value", name)
		return false
	}
	at = p.pos
	value := strings.TrimSpace(p.until(",()"))
	if number {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			p.bad(at, "give a number from 0 on", "%q is no number", value)
			return false
		}
		s.counts[name] = n
		return true
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > 24*time.Hour {
		p.bad(at, "give a duration from 0s to 24h, such as 1s or 250ms", "%q is no duration", value)
		return false
	}
	s.waits[name] = d
	return true
}

func argumentText(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' }), "")
}

func (p *scanner) repeat(s *step) {
	begin := p.pos
	if !p.next('x') {
		return
	}
	word := p.until(" \t,")
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > maxRepeat {
		p.bad(begin, fmt.Sprintf("write x1 to x%d", maxRepeat), "%q is no number of times", "x"+word)
		return
	}
	s.repeat = n
}

// parseStep reads one step, with nothing after it.
func parseStep(text string) (step, error) {
	p := scanner{line: text, number: 1}
	s := p.step(false)
	if len(p.problems) == 0 && !p.done() {
		p.bad(p.pos, "write one step", "%q is not expected here", p.line[p.pos:])
	}
	return s, failed(p.problems)
}
