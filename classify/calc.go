package classify

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Calc is a formula over named numbers: + - * /, parentheses, min and max, and
// nothing else. ParseCalc makes it.
type Calc struct {
	text  string
	root  term
	names []string
}

// The bounds of a formula. A wait needs a dozen signs.
const (
	longestCalc = 500
	deepestCalc = 32
)

// ParseCalc reads a formula, such as (requested - available) / rate.
func ParseCalc(text string) (*Calc, error) {
	if len(text) > longestCalc {
		return nil, errors.New("the formula is too long")
	}
	p := calcParser{rest: text}
	root, err := p.sum(0)
	if p.peek(); err == nil && p.rest != "" {
		err = fmt.Errorf("%q stands where the formula should end or go on with + - * /", p.token())
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(p.names)
	return &Calc{text, root, slices.Compact(p.names)}, nil
}

// String returns the formula as it was written.
func (c *Calc) String() string { return c.text }

// Names lists the numbers it needs, sorted.
func (c *Calc) Names() []string { return slices.Clone(c.names) }

// Eval computes it. It fails where a number is missing, and where the outcome
// is no finite number.
func (c *Calc) Eval(number func(name string) (float64, bool)) (float64, bool) {
	v, ok := c.root.eval(number)
	return v, ok && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// term is a number, a name, or an operation on terms.
type term struct {
	op     string // + - * / min max, or "" for a number or a name
	name   string
	number float64
	args   []term
}

func (t *term) eval(number func(string) (float64, bool)) (float64, bool) {
	if t.op == "" {
		if t.name != "" {
			return number(t.name)
		}
		return t.number, true
	}
	v, ok := t.args[0].eval(number)
	for i := 1; ok && i < len(t.args); i++ {
		var w float64
		if w, ok = t.args[i].eval(number); !ok {
			break
		}
		switch t.op {
		case "+":
			v += w
		case "-":
			v -= w
		case "*":
			v *= w
		case "/":
			v /= w
		case "min":
			v = math.Min(v, w)
		case "max":
			v = math.Max(v, w)
		}
	}
	return v, ok
}

type calcParser struct {
	rest  string
	names []string
}

// peek returns the next sign, or 0 at the end.
func (p *calcParser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\n")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// token is what stands next, for people.
func (p *calcParser) token() string {
	p.peek()
	n := 1
	for n < len(p.rest) && isNamePart(p.rest[0]) && isNamePart(p.rest[n]) {
		n++
	}
	return p.rest[:min(n, len(p.rest))]
}

func isNamePart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) || c == '_'
}

func (p *calcParser) sum(depth int) (term, error) { return p.chain("+-", depth, p.product) }

func (p *calcParser) product(depth int) (term, error) { return p.chain("*/", depth, p.factor) }

// chain reads operands that one of ops stands between, from left to right.
func (p *calcParser) chain(ops string, depth int, operand func(int) (term, error)) (term, error) {
	left, err := operand(depth)
	for err == nil {
		c := p.peek()
		if c == 0 || strings.IndexByte(ops, c) < 0 {
			break
		}
		p.rest = p.rest[1:]
		var right term
		if right, err = operand(depth); err == nil {
			left = term{op: string(c), args: []term{left, right}}
		}
	}
	return left, err
}

func (p *calcParser) factor(depth int) (term, error) {
	if depth > deepestCalc {
		return term{}, errors.New("the formula is nested too deep")
	}
	switch c := p.peek(); {
	case c == 0:
		return term{}, errors.New("the formula ends where a number or a name is due")
	case c == '(':
		p.rest = p.rest[1:]
		t, err := p.sum(depth + 1)
		if err != nil {
			return t, err
		}
		return t, p.close()
	case c == '-':
		p.rest = p.rest[1:]
		t, err := p.factor(depth + 1)
		return term{op: "-", args: []term{{}, t}}, err
	case isDigit(c):
		return p.numeral()
	case isNamePart(c):
		return p.word(depth)
	}
	return term{}, fmt.Errorf("%q stands where a number or a name is due", p.token())
}

func (p *calcParser) close() error {
	if p.peek() != ')' {
		return errors.New("a ( is not closed")
	}
	p.rest = p.rest[1:]
	return nil
}

func (p *calcParser) numeral() (term, error) {
	n := 0
	for n < len(p.rest) && (isDigit(p.rest[n]) || p.rest[n] == '.') {
		n++
	}
	v, err := strconv.ParseFloat(p.rest[:n], 64)
	if err != nil {
		return term{}, fmt.Errorf("%q is not a number", p.rest[:n])
	}
	p.rest = p.rest[n:]
	return term{number: v}, nil
}

// word reads a name, or min or max with their arguments.
func (p *calcParser) word(depth int) (term, error) {
	name := p.token()
	p.rest = p.rest[len(name):]
	if name != "min" && name != "max" {
		p.names = append(p.names, name)
		return term{name: name}, nil
	}
	if p.peek() != '(' {
		return term{}, fmt.Errorf("%s needs ( and what it takes", name)
	}
	t := term{op: name}
	for {
		p.rest = p.rest[1:] // the ( or a comma
		arg, err := p.sum(depth + 1)
		if err != nil {
			return t, err
		}
		if t.args = append(t.args, arg); p.peek() != ',' {
			return t, p.close()
		}
	}
}

// numeric is a JSON value as a number, also where it is written as a text.
func numeric(v any) (float64, bool) {
	text := ""
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}
