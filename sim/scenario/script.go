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
	steps *string       // the script in the language of sim.ParseSteps
	lines []*sheet.Node // where its lines come from
	mark  string
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
		at := sheet.Join(path, m.Key.Text)
		steps, ok := s.list(r, m.Value, at)
		if !ok {
			continue
		}
		line := m.Key.Text + ": " + steps
		if _, err := sim.ParseSteps(line); err != nil {
			tell(r, m, at, err)
			continue
		}
		lines = append(lines, line)
		s.lines = append(s.lines, m.Key)
	}
	*s.steps = strings.Join(lines, "\n")
}

// tell puts a problem of the line where it stands in the file: the operation
// and the steps of a line are two places there.
func tell(r *sheet.Reader, m sheet.Member, path string, err error) {
	bad, ok := errors.AsType[*sim.StepsError](err)
	if !ok {
		r.Problem(m.Key, path, "see the sentence", "%s", err)
		return
	}
	at := *m.Key
	if begin := len([]rune(m.Key.Text)) + 2; bad.Column > begin {
		at = *m.Value
		if at.Kind == sheet.Scalar && at.Plain {
			at.Column += bad.Column - begin - 1
		}
	} else if at.Plain {
		at.Column += bad.Column - 1
	}
	r.Problem(&at, path, bad.Remedy, "%s", bad.Message)
}

// list returns the steps of one operation as text.
func (s *script) list(r *sheet.Reader, n *sheet.Node, path string) (string, bool) {
	switch n.Kind {
	case sheet.Scalar:
		return n.Text, true
	case sheet.Mapping:
		return s.one(r, n, path)
	}
	var all []string
	whole := true
	for i, item := range n.Items {
		at := path + "[" + strconv.Itoa(i) + "]"
		text, ok := item.Text, true
		if item.Kind != sheet.Scalar {
			text, ok = s.one(r, item, at)
		}
		if all = append(all, text); !ok {
			whole = false
		}
	}
	return strings.Join(all, ", "), whole
}

// one returns a step of the long form as text: {step: 429, after: 2s, times: 3}.
func (s *script) one(r *sheet.Reader, n *sheet.Node, path string) (string, bool) {
	if n.Kind != sheet.Mapping || n.Get("step") == nil {
		r.Problem(n, path, "write {step: 503} or {step: 429, after: 2s, times: 3}", "the step is missing")
		return "", false
	}
	var word, text, times string
	var arguments []string
	for _, m := range n.Members {
		if m.Value.Kind != sheet.Scalar {
			r.Problem(m.Value, sheet.Join(path, m.Key.Text), "write one value", "%s stands where a single value belongs", m.Value.Kind)
			return "", false
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
