// Package graph reads GraphQL documents for the packs that are asked in them,
// and picks from plain values what a document asks for.
//
// Parse gives the operation with its variables filled in and its fragments
// laid open. Pick answers it from objects: a value of an object is plain, a
// list, another object, or a Resolver, which sees the arguments. There is no
// schema: what an object does not hold does not exist. Directives and
// subscriptions are not known.
package graph

import "fmt"

// Document is the one operation of a document.
type Document struct {
	Kind   string // query or mutation
	Name   string
	Fields []Field
}

// Field is one thing that is asked for.
type Field struct {
	Name  string
	Alias string // the name, if there is no other
	// Args are texts, int64, float64, bool, nil, lists and objects of these.
	Args   map[string]any
	Fields []Field // of the thing; none: it is plain
	At     Place
}

// Place is where something stands in a document, counted from 1.
type Place struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Object is something with fields.
type Object map[string]any

// Resolver gives the value of a field for its arguments.
type Resolver func(Field) any

// Missing is a field that does not exist.
type Missing struct {
	Type, Field string
	Path        []string
	At          Place
}

// Error implements error.
func (m *Missing) Error() string {
	return fmt.Sprintf("Field '%s' doesn't exist on type '%s'", m.Field, m.Type)
}

// Int is an argument that is a whole number, or d.
func (f Field) Int(name string, d int) int {
	switch v := f.Args[name].(type) {
	case int64:
		return int(v)
	case float64:
		return int(v)
	}
	return d
}

// Text is an argument that is a text, or "".
func (f Field) Text(name string) string {
	s, _ := f.Args[name].(string)
	return s
}

// Object is an argument that is an object; nil if it is none.
func (f Field) Object(name string) map[string]any {
	o, _ := f.Args[name].(map[string]any)
	return o
}

// Pick gives what fields ask of an object of the type.
func Pick(kind string, o Object, fields []Field) (map[string]any, error) {
	return pick(kind, o, fields, nil)
}

func pick(kind string, o Object, fields []Field, path []string) (map[string]any, error) {
	picked := make(map[string]any, len(fields))
	for _, f := range fields {
		at := append(path[:len(path):len(path)], f.Alias)
		v, ok := o[f.Name]
		switch {
		case f.Name == "__typename":
			picked[f.Alias] = kind
			continue
		case !ok:
			return nil, &Missing{kind, f.Name, at, f.At}
		}
		if r, ok := v.(Resolver); ok {
			v = r(f)
		}
		value, err := narrow(f, v, at)
		if err != nil {
			return nil, err
		}
		picked[f.Alias] = value
	}
	return picked, nil
}

// narrow picks within a value.
func narrow(f Field, v any, at []string) (any, error) {
	switch v := v.(type) {
	case Object:
		if v == nil {
			return nil, nil
		}
		return pick(f.Name, v, f.Fields, at)
	case []Object:
		all := make([]any, 0, len(v))
		for _, one := range v {
			p, err := pick(f.Name, one, f.Fields, at)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		return all, nil
	}
	if len(f.Fields) > 0 && v != nil {
		return nil, &Missing{f.Name, f.Fields[0].Name, at, f.Fields[0].At}
	}
	return v, nil
}

// Connection is a page of a list as Relay's convention has it: the first n
// after a cursor. Cursors are told by the caller.
func Connection(f Field, all []Object, cursor func(i int) string) Object {
	begin := 0
	if after := f.Text("after"); after != "" {
		begin = len(all)
		for i := range all {
			if cursor(i) == after {
				begin = i + 1
			}
		}
	}
	end := begin + min(max(f.Int("first", len(all)), 0), len(all)-begin)
	page := all[begin:end]
	edges := make([]Object, 0, len(page))
	var first, last any
	for i, one := range page {
		c := cursor(begin + i)
		if i == 0 {
			first = c
		}
		last = c
		edges = append(edges, Object{"cursor": c, "node": one})
	}
	return Object{
		"nodes": page, "edges": edges, "totalCount": len(all),
		"pageInfo": Object{"hasNextPage": end < len(all), "hasPreviousPage": begin > 0, "startCursor": first, "endCursor": last},
	}
}
