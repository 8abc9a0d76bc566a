package sheet

import (
	"fmt"
	"maps"
	"slices"
)

// List is a list of values, each bound by one. Reading replaces the whole list.
func List[T any](p *[]T, one func(*T) Value) Value { return sequence[T]{p, one, false} }

// Append is a List whose items are put before those that are there already.
func Append[T any](p *[]T, one func(*T) Value) Value { return sequence[T]{p, one, true} }

type sequence[T any] struct {
	p    *[]T
	one  func(*T) Value
	keep bool
}

func (s sequence[T]) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	if n.Kind != Sequence {
		r.Problem(n, path, "write a list, such as [a, b] or lines that begin with a dash",
			"%s stands where a list belongs", n.told())
		return
	}
	items := make([]T, len(n.Items))
	for i, item := range n.Items {
		s.one(&items[i]).Read(r, item, fmt.Sprintf("%s[%d]", path, i))
	}
	if s.keep {
		items = append(items, *s.p...)
	}
	*s.p = items
}

// told is what n is, for a problem.
func (n *Node) told() string {
	if n.IsNull() {
		return "nothing"
	}
	return n.Kind.String()
}

func (s sequence[T]) Write() *Node {
	n := &Node{Kind: Sequence}
	for i := range *s.p {
		if v := s.one(&(*s.p)[i]).Write(); v != nil {
			n.Items = append(n.Items, v)
		}
	}
	if len(n.Items) == 0 {
		return nil
	}
	return n
}

func (s sequence[T]) Schema() map[string]any {
	return map[string]any{"type": "array", "items": s.one(new(T)).Schema()}
}

// Texts is a list of texts.
func Texts(p *[]string) Value { return List(p, Text) }

// Map is a mapping with keys of the user's own. Name says what is wrong with a
// key; nil takes all. Reading adds to what is there and replaces equal keys.
type Map[T any] struct {
	P    *map[string]T
	Name func(key string) error
	One  func(*T) Value
	// Pattern of the keys, for the schema. Optional.
	Pattern string
}

// Read implements Value.
func (m Map[T]) Read(r *Reader, n *Node, path string) {
	r.note(n, path)
	if n.Kind != Mapping {
		r.Problem(n, path, "write keys and values below it", "%s stands where a mapping belongs", n.told())
		return
	}
	if *m.P == nil {
		*m.P = make(map[string]T, len(n.Members))
	}
	for _, member := range n.Members {
		at := Join(path, member.Key.Text)
		r.note(member.Key, at)
		if m.Name != nil {
			if err := m.Name(member.Key.Text); err != nil {
				r.Problem(member.Key, Join(path, short(member.Key.Text)), "choose another name", "%s", err)
				continue
			}
		}
		var v T
		m.One(&v).Read(r, member.Value, at)
		(*m.P)[member.Key.Text] = v
	}
}

// Write implements Value.
func (m Map[T]) Write() *Node {
	n := &Node{Kind: Mapping}
	for _, key := range slices.Sorted(maps.Keys(*m.P)) {
		v := (*m.P)[key]
		if w := m.One(&v).Write(); w != nil {
			n.Members = append(n.Members, Member{&Node{Text: key}, w})
		}
	}
	if len(n.Members) == 0 {
		return nil
	}
	return n
}

// Schema implements Value.
func (m Map[T]) Schema() map[string]any {
	one := m.One(new(T)).Schema()
	if m.Pattern == "" {
		return map[string]any{"type": "object", "additionalProperties": one}
	}
	return map[string]any{
		"type": "object", "additionalProperties": false, "patternProperties": map[string]any{m.Pattern: one},
	}
}

// Short is a block that may be written as one scalar instead.
type Short struct {
	Value       // the scalar
	Long  Block // the block
}

// Read implements Value.
func (s Short) Read(r *Reader, n *Node, path string) {
	if n.Kind == Scalar && !n.IsNull() {
		s.Value.Read(r, n, path)
		return
	}
	s.Long.Read(r, n, path)
}

// Write implements Value.
func (s Short) Write() *Node { return s.Long.Write() }

// Schema implements Value.
func (s Short) Schema() map[string]any {
	return map[string]any{"oneOf": []any{s.Value.Schema(), s.Long.Schema()}}
}

// If is a value that is not written back unless shown.
func If(shown bool, v Value) Value { return optional{v, shown} }

type optional struct {
	Value
	shown bool
}

// Write implements Value.
func (o optional) Write() *Node {
	if !o.shown {
		return nil
	}
	return o.Value.Write()
}

// Never is a number whose 0 means none, where a zero Go value means the
// default: it is kept as -1.
func Never[T ~int | ~float64](p *T, v Value) Value { return never[T]{v, p} }

type never[T ~int | ~float64] struct {
	Value
	p *T
}

// Read implements Value.
func (v never[T]) Read(r *Reader, n *Node, path string) {
	v.Value.Read(r, n, path)
	if *v.p == 0 {
		*v.p = -1
	}
}

// Write implements Value.
func (v never[T]) Write() *Node {
	if *v.p < 0 {
		return word("0")
	}
	return v.Value.Write()
}
