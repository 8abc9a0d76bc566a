// Package sheet reads a document into Go values by one table of fields, the
// same table that yields its JSON Schema and the way back to a document.
//
// A table is a Block: names, sentences and bound values. Read walks a tree of
// Nodes (a parser of YAML makes it) along the Block: an unknown key, a value
// of the wrong kind, a missing one are Problems, and all are collected, each
// with the place it stands at. A value that is not in the document keeps what
// it was bound with, so defaults are filled in before reading and a second
// document overlays the first.
//
// No problem quotes a value that could be a secret: Text does not quote, and
// what parses a value says so in its own words.
package sheet

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what a Node is.
type Kind uint8

// The kinds.
const (
	Scalar Kind = iota
	Mapping
	Sequence
)

// String returns the word used in problems.
func (k Kind) String() string { return [...]string{"a value", "a mapping", "a list"}[k] }

// Node is one place of a document.
type Node struct {
	Kind    Kind
	Text    string // of a Scalar
	Plain   bool   // a Scalar without quotes
	Members []Member
	Items   []*Node
	// Line and Column count from 1. 0: not from a document.
	Line, Column int
	// Comment is told beside a Scalar when the node is written.
	Comment string
}

// Member is one entry of a Mapping.
type Member struct {
	Key   *Node
	Value *Node
}

// IsNull tells that nothing was written where a value could be.
func (n *Node) IsNull() bool {
	return n.Kind == Scalar && n.Plain && slices.Contains([]string{"", "~", "null", "Null", "NULL"}, n.Text)
}

// Get returns the value of the member called name, or nil.
func (n *Node) Get(name string) *Node {
	for _, m := range n.Members {
		if m.Key.Text == name {
			return m.Value
		}
	}
	return nil
}

// Problem is one thing that is wrong with a document. Remedy says what to
// write instead.
type Problem struct {
	File         string
	Line, Column int // 0: nowhere in particular
	Path         string
	Message      string
	Remedy       string
}

// String tells it in one line: file:line:column: path: message; remedy.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// Value is something of a document that is bound to a Go value.
type Value interface {
	// Read sets the Go value from n, which stands at path.
	Read(r *Reader, n *Node, path string)
	// Write returns the Go value as a Node, nil when there is nothing to tell.
	Write() *Node
	// Schema returns the JSON Schema of what Read takes.
	Schema() map[string]any
}

// Field is one key of a Block.
type Field struct {
	Name  string
	Doc   string // one or two sentences, for the schema
	Value Value
	// Required fields may not be left out.
	Required bool
}

// Block is a mapping with known keys.
type Block struct {
	Fields []Field
	// Check, when set, is called after the fields were read.
	Check func(m Read)
}

// Read is a Block that was just read.
type Read struct {
	*Reader
	Node *Node
	Path string
}

// Has tells whether name is written in the document.
func (m Read) Has(name string) bool { return m.Node.Get(name) != nil }

// Bad reports a problem with the field called name, or, where it is not
// written, with the block.
func (m Read) Bad(name, remedy, format string, args ...any) {
	at := m.Node
	if v := m.Node.Get(name); v != nil {
		at = v
	}
	m.Problem(at, Join(m.Path, name), remedy, format, args...)
}

// Reader collects what is found while reading.
type Reader struct {
	File     string
	Problems []Problem
	places   map[string]*Node
	told     map[spot]bool
}

// spot is what one problem is told of.
type spot struct {
	line int
	path string
}

// Join appends name to path.
func Join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

// Problem reports that something is wrong with n at path. What follows from a
// problem that was told of the same value is not told.
func (r *Reader) Problem(n *Node, path, remedy, format string, args ...any) {
	if r.told == nil {
		r.told = make(map[spot]bool)
		for _, p := range r.Problems {
			r.told[spot{p.Line, p.Path}] = true
		}
	}
	if at := (spot{n.Line, path}); path != "" {
		if r.told[at] {
			return
		}
		r.told[at] = true
	}
	r.Problems = append(r.Problems, Problem{
		File: r.File, Line: n.Line, Column: n.Column, Path: path,
		Message: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

// Place returns the node that was read at path, or at the nearest path above
// it, and whether it was path itself. It is never nil.
func (r *Reader) Place(path string) (n *Node, exact bool) {
	if n, ok := r.places[path]; ok {
		return n, true
	}
	for path != "" {
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		if n, ok := r.places[path]; ok {
			return n, false
		}
	}
	return &Node{}, false
}

// Listed is path as it was written where a list of one stands for the one: who
// looks at the value that was read cannot tell, and names it without its [0].
func (r *Reader) Listed(path string) string {
	if _, exact := r.Place(path); exact {
		return path
	}
	for i, c := range path {
		if c != '.' || i == 0 || path[i-1] == ']' {
			continue
		}
		if _, list := r.Place(path[:i] + "[0]"); list {
			if _, more := r.Place(path[:i] + "[1]"); !more {
				return path[:i] + "[0]" + path[i:]
			}
		}
	}
	return path
}

func (r *Reader) note(n *Node, path string) {
	if r.places == nil {
		r.places = make(map[string]*Node)
	}
	r.places[path] = n
}

// Read implements Value.
func (b Block) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	if n.IsNull() {
		n = &Node{Kind: Mapping, Line: n.Line, Column: n.Column}
	}
	if n.Kind != Mapping {
		r.Problem(n, path, "write keys and values below it: "+list(b.names()), "%s stands where a mapping belongs", n.Kind)
		return
	}
	for _, m := range n.Members {
		at := Join(path, m.Key.Text)
		if f := b.field(m.Key.Text); f != nil {
			r.note(m.Key, at)
			f.Value.Read(r, m.Value, at)
		} else {
			r.Problem(m.Key, Join(path, short(m.Key.Text)), b.remedyFor(m.Key.Text), "the key is not known here")
		}
	}
	for _, f := range b.Fields {
		if f.Required && n.Get(f.Name) == nil {
			r.Problem(n, Join(path, f.Name), "add it: "+f.Doc, "%s is missing", f.Name)
		}
	}
	if b.Check != nil {
		b.Check(Read{r, n, path})
	}
}

// remedyFor says what was meant by an unknown key: a value, or a key like it.
func (b Block) remedyFor(key string) string {
	for _, f := range b.Fields {
		if c, ok := f.Value.(interface{ words() []string }); ok && slices.Contains(c.words(), key) {
			return "did you mean " + f.Name + ": " + key + "?"
		}
	}
	return remedyFor(key, b.names())
}

func (b Block) field(name string) *Field {
	for i := range b.Fields {
		if b.Fields[i].Name == name {
			return &b.Fields[i]
		}
	}
	return nil
}

func (b Block) names() []string {
	names := make([]string, len(b.Fields))
	for i, f := range b.Fields {
		names[i] = f.Name
	}
	return names
}

// Write implements Value.
func (b Block) Write() *Node {
	n := &Node{Kind: Mapping}
	for _, f := range b.Fields {
		if v := f.Value.Write(); v != nil {
			n.Members = append(n.Members, Member{&Node{Text: f.Name, Plain: true}, v})
		}
	}
	if len(n.Members) == 0 {
		return nil
	}
	return n
}

// Schema implements Value.
func (b Block) Schema() map[string]any {
	properties := make(map[string]any, len(b.Fields))
	var required []string
	for _, f := range b.Fields {
		s := f.Value.Schema()
		s["description"] = f.Doc
		properties[f.Name] = s
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		s["required"] = required
	}
	return s
}
