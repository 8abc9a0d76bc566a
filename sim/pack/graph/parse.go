package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxDepth = 40       // of selections, lists and objects
	maxText  = 64 << 10 // bytes of a document
)

// Parse reads a document. The operation called name is taken, or the only one.
// Variables stand in for what the document leaves open.
func Parse(text, name string, variables map[string]any) (Document, error) {
	if len(text) > maxText {
		return Document{}, fmt.Errorf("the document is longer than %d bytes", maxText)
	}
	p := parser{text: text, variables: variables, fragments: map[string][]selection{}}
	var operations []parsed
	for p.skip(); p.at < len(p.text); p.skip() {
		o, err := p.definition()
		if err != nil {
			return Document{}, err
		}
		if o != nil {
			operations = append(operations, *o)
		}
	}
	for _, o := range operations {
		if o.Name == name || name == "" && len(operations) == 1 {
			var err error
			o.Fields, err = p.lay(o.selections, 0)
			return o.Document, err
		}
	}
	return Document{}, errors.New("the document has no operation of that name, or several and none is named")
}

// parsed is an operation whose fragments are not laid open yet.
type parsed struct {
	Document
	selections []selection
}

// selection is a field, or a fragment that is named or stands in line.
type selection struct {
	field    Field
	children []selection
	fragment string
	inline   bool
}

// parser reads from at on.
type parser struct {
	text      string
	at        int
	variables map[string]any
	fragments map[string][]selection
	laid      int // fields, by all fragments together

	counted, line, column int // how far place has counted, and to what
}

func (p *parser) errorf(format string, args ...any) error {
	at := p.place()
	return fmt.Errorf("syntax error at [%d, %d]: %s", at.Line, at.Column, fmt.Sprintf(format, args...))
}

// place is where the parser is. It counts on from where it was asked last,
// because every field asks.
func (p *parser) place() Place {
	passed := p.text[p.counted:p.at]
	if n := strings.Count(passed, "\n"); n > 0 {
		p.line, p.column = p.line+n, 0
		passed = passed[strings.LastIndexByte(passed, '\n')+1:]
	}
	p.column += utf8.RuneCountInString(passed)
	p.counted = p.at
	return Place{1 + p.line, 1 + p.column}
}

// skip passes over what means nothing.
func (p *parser) skip() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		case strings.IndexByte(" \t\r\n,", c) >= 0:
			p.at++
		case strings.HasPrefix(p.text[p.at:], "\ufeff"):
			p.at += len("\ufeff")
		default:
			return
		}
	}
}

// take passes over a mark, if it is next.
func (p *parser) take(mark string) bool {
	p.skip()
	if !strings.HasPrefix(p.text[p.at:], mark) {
		return false
	}
	p.at += len(mark)
	return true
}

// word reads a name, "" if there is none.
func (p *parser) word() string {
	p.skip()
	begin := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (p.at == begin || c < '0' || c > '9') {
			break
		}
		p.at++
	}
	return p.text[begin:p.at]
}

// definition reads an operation, or a fragment, which it keeps.
func (p *parser) definition() (*parsed, error) {
	o := parsed{Document: Document{Kind: "query"}}
	if !p.take("{") {
		o.Kind = p.word()
		switch o.Kind {
		case "fragment":
			name := p.word()
			if p.word() != "on" || p.word() == "" || !p.take("{") {
				return nil, p.errorf("a fragment is written fragment Name on Type {…}")
			}
			fields, err := p.selections(0)
			p.fragments[name] = fields
			return nil, err
		case "query", "mutation":
			o.Name = p.word()
		default:
			return nil, p.errorf("a query, a mutation or a fragment is expected")
		}
		if p.take("(") {
			if err := p.defaults(); err != nil {
				return nil, err
			}
		}
		if !p.take("{") {
			return nil, p.errorf("{ is expected")
		}
	}
	var err error
	o.selections, err = p.selections(0)
	return &o, err
}

// defaults reads the variables of an operation; those that are not given get
// their default.
func (p *parser) defaults() error {
	filled := map[string]any{}
	for !p.take(")") {
		if !p.take("$") {
			return p.errorf("a variable is expected")
		}
		name := p.word()
		if name == "" || !p.take(":") {
			return p.errorf("a variable is written $name: Type")
		}
		for p.take("[") || p.word() != "" || p.take("]") || p.take("!") {
			continue // types are not checked
		}
		if p.take("=") {
			v, err := p.value(0)
			if err != nil {
				return err
			}
			filled[name] = v
		}
	}
	maps.Copy(filled, p.variables)
	p.variables = filled
	return nil
}

// selections reads up to the } that ends them.
func (p *parser) selections(depth int) ([]selection, error) {
	if depth > maxDepth {
		return nil, p.errorf("the document is nested too deeply")
	}
	var all []selection
	for !p.take("}") {
		s, err := p.selection(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, p.errorf("a selection is empty")
	}
	return all, nil
}

func (p *parser) selection(depth int) (s selection, err error) {
	if p.take("...") {
		if s.fragment = p.word(); s.fragment == "on" {
			s.fragment = ""
			p.word()
		}
		if s.fragment != "" {
			return s, nil
		}
		s.inline = true
	} else if s.field, err = p.field(); err != nil {
		return s, err
	}
	if p.take("{") {
		s.children, err = p.selections(depth + 1)
	} else if s.inline {
		err = p.errorf("{ is expected")
	}
	return s, err
}

// field reads alias, name and arguments.
func (p *parser) field() (f Field, err error) {
	p.skip()
	f.At = p.place()
	if f.Name = p.word(); f.Name == "" {
		return f, p.errorf("a field is expected")
	}
	if f.Alias = f.Name; p.take(":") {
		if f.Name = p.word(); f.Name == "" {
			return f, p.errorf("a field is expected after its alias")
		}
	}
	if p.take("(") {
		f.Args, err = p.members(")", 0)
	}
	return f, err
}

// members reads name: value up to the mark that ends them.
func (p *parser) members(end string, depth int) (map[string]any, error) {
	all := map[string]any{}
	for !p.take(end) {
		name := p.word()
		if name == "" || !p.take(":") {
			return nil, p.errorf("name: value is expected")
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all[name] = v
	}
	return all, nil
}

func (p *parser) value(depth int) (any, error) {
	p.skip()
	switch {
	case depth > maxDepth:
		return nil, p.errorf("the document is nested too deeply")
	case p.take("$"):
		return p.variables[p.word()], nil
	case p.take("{"):
		return p.members("}", depth)
	case p.take("["):
		all := []any{}
		for !p.take("]") {
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case strings.HasPrefix(p.text[p.at:], `"`):
		return p.quoted()
	}
	switch w := p.word(); w {
	case "":
		return p.number()
	case "true", "false":
		return w == "true", nil
	case "null":
		return nil, nil
	default:
		return w, nil // a word of an enumeration
	}
}

// quoted reads a text, in the quotes of JSON or in three.
func (p *parser) quoted() (any, error) {
	const block = `"""`
	rest := p.text[p.at:]
	if inner, ok := strings.CutPrefix(rest, block); ok {
		n := strings.Index(inner, block)
		if n < 0 {
			return nil, p.errorf("a text in three quotes is not ended")
		}
		p.at += n + 2*len(block)
		return strings.TrimSpace(inner[:n]), nil
	}
	end := 1
	for end < len(rest) && rest[end] != '"' {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	var plain string
	if end >= len(rest) || json.Unmarshal([]byte(rest[:end+1]), &plain) != nil {
		return nil, p.errorf("a text in quotes is not ended, or has an escape that is not known")
	}
	p.at += end + 1
	return plain, nil
}

func (p *parser) number() (any, error) {
	begin := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.at]) >= 0 {
		p.at++
	}
	text := p.text[begin:p.at]
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, p.errorf("a value is expected")
	}
	return f, nil
}

// lay opens the fragments.
func (p *parser) lay(all []selection, depth int) ([]Field, error) {
	if depth > maxDepth {
		return nil, errors.New("fragments are nested too deeply, or in a circle")
	}
	var fields []Field
	for _, s := range all {
		if p.laid++; p.laid > maxFields {
			return nil, errors.New("fragments ask for too much")
		}
		children := s.children
		if s.fragment != "" {
			if children = p.fragments[s.fragment]; children == nil {
				return nil, fmt.Errorf("there is no fragment %s", s.fragment)
			}
		}
		below, err := p.lay(children, depth+1)
		if err != nil {
			return nil, err
		}
		if s.fragment != "" || s.inline {
			fields = append(fields, below...)
			continue
		}
		s.field.Fields = below
		fields = append(fields, s.field)
	}
	return fields, nil
}

// maxFields bounds what fragments of fragments can grow to.
const maxFields = 10_000
