package scenario

import (
	"errors"
	"strconv"
	"strings"

	"github.com/heedproject/heed/provider/sheet"
	"github.com/heedproject/heed/sim"
)

// script is the steps of one world or case: a mapping from an operation to
// its steps, in the order of the file, because the first that matches counts.
type script struct {
	steps *string // the script in the language of sim.ParseSteps
	lines []line  // where its lines come from
}

// line is where the parts of one line stand in the file.
type line struct {
	key   *sheet.Node
	path  string
	parts []part
}

// part is one value of the list of steps, or all of them.
type part struct {
	column int // in the line of the script, where it begins
	node   *sheet.Node
	path   string
}

// Read implements sheet.Value.
func (s *script) Read(r *sheet.Reader, n *sheet.Node, path string) {
	if n.Kind != sheet.Mapping {
		r.Problem(n, path, "write operations and their steps below it, such as GET /v1/bibs/*: 503 x2, ok",
			"%s stands where a mapping belongs", n.Kind)
		return
	}
	var lines []string
	for _, m := range n.Members {
		l := line{key: m.Key, path: sheet.Join(path, m.Key.Text)}
		text, whole := l.read(r, m)
		if !tellAll(r, l, text) || !whole {
			text = m.Key.Text + ": ok" // so that what it names is looked up
			if _, err := sim.ParseSteps(text); err != nil {
				continue
			}
		}
		lines = append(lines, text)
		s.lines = append(s.lines, l)
	}
	*s.steps = strings.Join(lines, "\n")
}

// tellAll tells what is wrong with one line by itself, and whether nothing is.
func tellAll(r *sheet.Reader, l line, text string) bool {
	_, err := sim.ParseSteps(text)
	bad, ok := errors.AsType[*sim.Error](err)
	if !ok {
		return true
	}
	for _, p := range bad.Problems {
		l.tell(r, p)
	}
	return false
}

// tell puts a problem of the script where its line stands in the file.
func (s *script) tell(r *sheet.Reader, p sim.Problem) {
	if p.Line <= len(s.lines) {
		s.lines[p.Line-1].tell(r, p)
	}
}

// tell puts a problem of the line where it stands in the file: the operation
// and each value of its list are places of their own there.
func (l line) tell(r *sheet.Reader, p sim.Problem) {
	at, path := *l.key, l.path
	begin := 1
	for _, one := range l.parts {
		if p.Column >= one.column {
			at, path, begin = *one.node, one.path, one.column
		}
	}
	if at.Kind == sheet.Scalar && at.Plain {
		at.Column += p.Column - begin
	}
	// Not by r.Problem, which tells one problem of a value and no more.
	r.Problems = append(r.Problems, sheet.Problem{File: r.File, Line: at.Line, Column: at.Column, Path: path, Message: p.Message, Remedy: p.Remedy})
}

// read returns the line as text, and whether all of it could be read.
func (l *line) read(r *sheet.Reader, m sheet.Member) (text string, whole bool) {
	text, whole = m.Key.Text+": ", true
	add := func(n *sheet.Node, path string) {
		l.parts = append(l.parts, part{len([]rune(text)) + 1, n, path})
		if n.Kind == sheet.Scalar {
			text += n.Text
			return
		}
		one, ok := l.one(r, n, path)
		text, whole = text+one, whole && ok
	}
	if m.Value.Kind != sheet.Sequence {
		add(m.Value, l.path)
		return text, whole
	}
	for i, item := range m.Value.Items {
		if i > 0 {
			text += ", "
		}
		add(item, l.path+"["+strconv.Itoa(i)+"]")
	}
	return text, whole
}

// one returns a step of the long form as text: {step: 429, after: 2s, times: 3}.
func (l *line) one(r *sheet.Reader, n *sheet.Node, path string) (string, bool) {
	if n.Kind != sheet.Mapping || n.Get("step") == nil {
		r.Problem(n, path, "write {step: 503} or {step: 429, after: 2s, times: 3}", "the step is missing")
		return "ok", false // so that the others are read
	}
	var word, text, times string
	var arguments []string
	for _, m := range n.Members {
		if m.Value.Kind != sheet.Scalar {
			r.Problem(m.Value, sheet.Join(path, m.Key.Text), "write one value", "%s stands where a single value belongs", m.Value.Kind)
			return "ok", false
		}
		switch v := m.Value.Text; m.Key.Text {
		case "step":
			word = v
		case "text":
			text = v
		case "times":
			times = " x" + v
		default:
			arguments = append(arguments, m.Key.Text+"="+v)
		}
	}
	if text != "" {
		arguments = append([]string{text}, arguments...)
	}
	if arguments != nil {
		word += "(" + strings.Join(arguments, ", ") + ")"
	}
	return word + times, true
}

// Write implements sheet.Value.
func (s *script) Write() *sheet.Node {
	n := &sheet.Node{Kind: sheet.Mapping}
	for line := range strings.Lines(*s.steps) {
		if name, steps, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			n.Members = append(n.Members, sheet.Member{Key: &sheet.Node{Text: name}, Value: &sheet.Node{Text: steps}})
		}
	}
	if n.Members == nil {
		return nil
	}
	return n
}

// Schema implements sheet.Value.
func (s *script) Schema() map[string]any {
	short := map[string]any{"type": []string{"string", "number"}, "examples": []string{"503 x2, 429(after=1s), ok"}}
	scalar := []string{"string", "number"}
	long := map[string]any{
		"type": "object", "required": []string{"step"}, "additionalProperties": map[string]any{"type": scalar},
		"properties": map[string]any{
			"step":  map[string]any{"type": scalar, "description": "A status, ok, or a word of the steps language."},
			"times": map[string]any{"type": "integer", "minimum": 1, "description": "How often."},
			"text":  map[string]any{"type": "string", "description": "What stands in parentheses without a name."},
		},
	}
	list := map[string]any{"type": "array", "items": map[string]any{"oneOf": []any{short, long}}}
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"oneOf": []any{short, long, list}}}
}
