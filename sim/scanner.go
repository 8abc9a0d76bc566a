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

func (p *scanner) errorAt(pos int, remedy, format string, args ...any) error {
	return &StepsError{p.number, p.column(pos), fmt.Sprintf(format, args...), remedy}
}

func (p *scanner) column(pos int) int { return utf8.RuneCountInString(p.line[:pos]) + 1 }

func (p *scanner) rule() (rule, error) {
	var r rule
	begin := p.pos
	r.method = p.until(" \t:")
	r.line, r.column = p.number, p.column(begin)
	if strings.Contains(r.method, ".") && p.next(':') { // a logical name such as charges.create
		r.named, r.method = r.method, ""
		return r, p.steps(&r)
	}
	if r.method == hookWord {
		return r, p.hook(&r)
	}
	if r.method == "" || strings.Trim(r.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" && r.method != "*" {
		return r, p.errorAt(begin, "begin with a method such as GET, or *", "%q is no method", r.method)
	}
	p.space()
	begin = p.pos
	path, ok := p.path()
	r.pattern = newPattern(path)
	if message, at := r.pattern.fault(); message != "" {
		return r, p.errorAt(begin+at, "write a path such as /v1/bibs/*", "%q: %s", path, message)
	}
	if !ok {
		return r, p.errorAt(p.pos, "write a colon and a space, then the steps", "no steps follow the path")
	}
	return r, p.steps(&r)
}

// hook reads the rest of a line that tells of webhooks.
func (p *scanner) hook(r *rule) error {
	p.space()
	begin := p.pos
	event, ok := p.path()
	switch {
	case event == "":
		return p.errorAt(begin, "write webhook charge.succeeded: lost, or webhook *: twice", "the name of an event is missing")
	case !ok:
		return p.errorAt(p.pos, "write a colon and a space, then the steps", "no steps follow the event")
	}
	r.method, r.event = "", event
	return p.steps(r)
}

// steps reads the list to the end of the line.
func (p *scanner) steps(r *rule) error {
	for {
		p.space()
		s, err := p.step(r.event != "")
		if err != nil {
			return err
		}
		r.steps = append(r.steps, s)
		p.space()
		if p.done() {
			return nil
		}
		if !p.next(',') {
			return p.errorAt(p.pos, "put a comma between two steps", "%q is not expected here", p.line[p.pos:])
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

func (p *scanner) step(hook bool) (step, error) {
	begin := p.pos
	word := p.until(" \t,()")
	s := step{text: word, repeat: 1, column: p.column(begin)}
	n, err := strconv.Atoi(word)
	switch {
	case word == "ok":
	case hook:
		if s.fault = faultOf(hookFaults, word); s.fault == nil {
			return s, p.errorAt(begin, "use ok, "+wordsOf(hookFaults), "%q is no step of a webhook", word)
		}
	case err == nil && len(word) == 3 && n >= 200 && n <= 599:
		s.status, s.fault = n, &statusFault
	default:
		if s.fault = faultOf(faults, word); s.fault == nil {
			return s, p.errorAt(begin, "use a status from 200 to 599, ok, "+wordsOf(faults), "%q is no step", word)
		}
	}
	if err := p.arguments(&s); err != nil {
		return s, err
	}
	p.space()
	return s, p.repeat(&s)
}

func (p *scanner) arguments(s *step) error {
	begin := p.pos
	if !p.next('(') {
		if s.fault != nil && s.fault.must {
			return p.errorAt(p.pos, "write "+s.text+"(…)", "%s needs %s in parentheses", s.text, s.fault.text)
		}
		return nil
	}
	if s.fault != nil && s.fault.text != "" {
		return p.said(s)
	}
	s.waits, s.counts = map[string]time.Duration{}, map[string]int{}
	for {
		if err := p.argument(s); err != nil {
			return err
		}
		if p.next(',') {
			continue
		}
		if !p.next(')') {
			return p.errorAt(p.pos, "close it with )", "the parenthesis is open")
		}
		s.text += argumentText(p.line[begin:p.pos])
		return nil
	}
}

// said reads a text up to the closing parenthesis.
func (p *scanner) said(s *step) error {
	begin := p.pos
	s.said = strings.TrimSpace(p.until(")"))
	if s.said == "" {
		return p.errorAt(begin, "write "+s.text+"(…)", "%s needs %s in parentheses", s.text, s.fault.text)
	}
	if !p.next(')') {
		return p.errorAt(p.pos, "close it with )", "the parenthesis is open")
	}
	s.text += "(" + s.said + ")"
	return nil
}

// argument reads name=value.
func (p *scanner) argument(s *step) error {
	p.space()
	at := p.pos
	name := strings.TrimSpace(p.until("=,()"))
	number := s.fault != nil && slices.Contains(s.fault.counts, name)
	if !number && (s.fault == nil || !slices.Contains(s.fault.takes, name)) {
		return p.errorAt(at, s.fault.usage(), "%s takes no %q", s.text, name)
	}
	_, twice := s.waits[name]
	if _, counted := s.counts[name]; twice || counted {
		return p.errorAt(at, "give it once", "%q is given twice", name)
	}
	if !p.next('=') {
		return p.errorAt(p.pos, "write "+name+"= and a value", "%q has no value", name)
	}
	at = p.pos
	value := strings.TrimSpace(p.until(",()"))
	if number {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return p.errorAt(at, "give a number from 0 on", "%q is no number", value)
		}
		s.counts[name] = n
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > 24*time.Hour {
		return p.errorAt(at, "give a duration from 0s to 24h, such as 1s or 250ms", "%q is no duration", value)
	}
	s.waits[name] = d
	return nil
}

func argumentText(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' }), "")
}

func (p *scanner) repeat(s *step) error {
	begin := p.pos
	if !p.next('x') {
		return nil
	}
	word := p.until(" \t,")
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > maxRepeat {
		return p.errorAt(begin, fmt.Sprintf("write x1 to x%d", maxRepeat), "%q is no number of times", "x"+word)
	}
	s.repeat = n
	return nil
}

// parseStep reads one step, with nothing after it.
func parseStep(text string) (step, error) {
	p := scanner{line: text, number: 1}
	s, err := p.step(false)
	if err == nil && !p.done() {
		err = p.errorAt(p.pos, "write one step", "%q is not expected here", p.line[p.pos:])
	}
	return s, err
}
