package sheet

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scalar reports whether n is a written scalar, and what is wrong otherwise.
func (r *Reader) scalar(n *Node, path, remedy string) bool {
	switch {
	case n.Kind != Scalar:
		r.Problem(n, path, remedy, "%s stands where a single value belongs", n.Kind)
	case n.IsNull():
		r.Problem(n, path, remedy+", or leave the key out", "nothing is written here")
	default:
		return true
	}
	return false
}

func word(text string) *Node { return &Node{Text: text, Plain: true} }

// Parsed is a scalar with a grammar of its own.
type Parsed struct {
	// Parse sets the Go value. Its error says what is wrong; the text is
	// quoted by it or not at all.
	Parse func(text string) error
	// Show returns the text; false: there is nothing to tell.
	Show func() (string, bool)
	// Remedy says what can be written.
	Remedy string
	// Pattern is the grammar as a regular expression, for the schema. Optional.
	Pattern string
	// Example is shown in the schema. Optional.
	Example string
	// Numeric texts may be written as a bare number too.
	Numeric bool
}

// Read implements Value.
func (p Parsed) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	if !r.scalar(n, path, p.Remedy) {
		return
	}
	if err := p.Parse(n.Text); err != nil {
		r.Problem(n, path, p.Remedy, "%s", err)
	}
}

// Write implements Value.
func (p Parsed) Write() *Node {
	if text, ok := p.Show(); ok {
		return &Node{Text: text}
	}
	return nil
}

// Schema implements Value.
func (p Parsed) Schema() map[string]any {
	s := map[string]any{"type": "string"}
	switch {
	case p.Numeric && p.Pattern == "": // a bare true is text as well
		s["type"] = []string{"string", "number", "boolean"}
	case p.Numeric:
		s["type"] = []string{"string", "number"}
	}
	if p.Pattern != "" {
		s["pattern"] = p.Pattern
	}
	if p.Example != "" {
		s["examples"] = []string{p.Example}
	}
	return s
}

// Text is free text. What is written is never quoted in a problem.
func Text(p *string) Value {
	return Parsed{
		Parse:   func(text string) error { *p = text; return nil },
		Show:    func() (string, bool) { return *p, *p != "" },
		Remedy:  "write text",
		Numeric: true,
	}
}

// Bool is true or false.
func Bool(p *bool) Value { return boolean{p} }

type boolean struct{ p *bool }

func (b boolean) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	const remedy = "write true or false"
	if !r.scalar(n, path, remedy) {
		return
	}
	switch {
	case n.Plain && strings.EqualFold(n.Text, "true"):
		*b.p = true
	case n.Plain && strings.EqualFold(n.Text, "false"):
		*b.p = false
	default:
		r.Problem(n, path, remedy, "%s is neither true nor false", quote(n.Text))
	}
}

func (b boolean) Write() *Node           { return word(strconv.FormatBool(*b.p)) }
func (b boolean) Schema() map[string]any { return map[string]any{"type": "boolean"} }

// Int is a whole number of at least low.
func Int[T ~int | ~int64](p *T, low int64) Value { return integer[T]{p, low} }

type integer[T ~int | ~int64] struct {
	p   *T
	low int64
}

func (i integer[T]) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	remedy := fmt.Sprintf("write a whole number of %d or more", i.low)
	if !r.scalar(n, path, remedy) {
		return
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case !n.Plain || err != nil && !errors.Is(err, strconv.ErrRange):
		r.Problem(n, path, remedy, "%s is not a whole number", quote(n.Text))
	case err != nil:
		r.Problem(n, path, remedy, "%s is out of range", quote(n.Text))
	case v < i.low:
		r.Problem(n, path, remedy, "%d is too small", v)
	default:
		*i.p = T(v)
	}
}

func (i integer[T]) Write() *Node { return word(strconv.FormatInt(int64(*i.p), 10)) }

func (i integer[T]) Schema() map[string]any {
	return map[string]any{"type": "integer", "minimum": i.low}
}

// Float is a number between low and high, both included.
func Float(p *float64, low, high float64) Value { return float{p, low, high} }

type float struct {
	p         *float64
	low, high float64
}

func (f float) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	remedy := fmt.Sprintf("write a number from %v to %v", f.low, f.high)
	if !r.scalar(n, path, remedy) {
		return
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case !n.Plain || err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		r.Problem(n, path, remedy, "%s is not a number", quote(n.Text))
	case v < f.low || v > f.high:
		r.Problem(n, path, remedy, "%v is out of range", v)
	default:
		*f.p = v
	}
}

func (f float) Write() *Node { return word(strconv.FormatFloat(*f.p, 'g', -1, 64)) }

func (f float) Schema() map[string]any {
	return map[string]any{"type": "number", "minimum": f.low, "maximum": f.high}
}

// OneOf is one of a closed set of words, as fmt.Sprint tells them. The zero
// value of a string type is no word: it is not written back.
func OneOf[T comparable](p *T, values ...T) Value { return choice[T]{p, values} }

type choice[T comparable] struct {
	p      *T
	values []T
}

func (c choice[T]) words() []string {
	words := make([]string, len(c.values))
	for i, v := range c.values {
		words[i] = fmt.Sprint(v)
	}
	return words
}

func (c choice[T]) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	words := c.words()
	if !r.scalar(n, path, "use one of "+list(words)) {
		return
	}
	for i, w := range words {
		if n.Text == w {
			*c.p = c.values[i]
			return
		}
	}
	r.Problem(n, path, remedyFor(n.Text, words), "%s is not known", quote(n.Text))
}

func (c choice[T]) Write() *Node {
	if text := fmt.Sprint(*c.p); text != "" {
		return word(text)
	}
	return nil
}

// Schema has a word that YAML takes for a bool or a number, when it stands
// there without quotes, in that form too.
func (c choice[T]) Schema() map[string]any {
	var bare []any
	words := c.words()
	for _, w := range words {
		if w == "true" || w == "false" {
			bare = append(bare, w == "true")
		} else if n, err := strconv.ParseInt(w, 10, 64); err == nil {
			bare = append(bare, n)
		}
	}
	if bare == nil {
		return map[string]any{"type": "string", "enum": words}
	}
	all := make([]any, len(words), len(words)+len(bare))
	for i, w := range words {
		all[i] = w
	}
	return map[string]any{"enum": append(all, bare...)}
}

// Switch is a bool that is written as one of two words.
func Switch(p *bool, no, yes string) Value { return toggle{p, no, yes} }

type toggle struct {
	p       *bool
	no, yes string
}

func (t toggle) word() string {
	if *t.p {
		return t.yes
	}
	return t.no
}

func (t toggle) Read(r *Reader, n *Node, path string) {
	text := t.word()
	OneOf(&text, t.no, t.yes).Read(r, n, path)
	*t.p = text == t.yes
}

func (t toggle) Write() *Node { return word(t.word()) }

func (t toggle) Schema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{t.no, t.yes}}
}

// quote shows a value of a closed grammar that did not fit, in a bearable length.
func quote(text string) string { return strconv.Quote(short(text)) }
