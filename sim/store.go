package sim

import "iter"

// maxRows bounds the memory that one table takes.
const maxRows = 50_000

// Table holds the resources of one kind in one case. Of more than 50,000 the
// oldest are forgotten.
type Table[T any] struct {
	rows  map[string]T
	order []string // as they were put; "" where one was deleted
	first int      // index in order of the oldest that may be there
}

// Rows returns the table of x's pack and case called kind. It is made when it
// is first asked for. Ask for it with the same T every time.
func Rows[T any](x *Exchange, kind string) *Table[T] {
	tables := x.own.tables[x.pack.index]
	if tables == nil {
		tables = map[string]any{}
		x.own.tables[x.pack.index] = tables
	}
	if t, ok := tables[kind].(*Table[T]); ok {
		return t
	}
	t := &Table[T]{rows: map[string]T{}}
	tables[kind] = t
	return t
}

// Get returns the resource with this id.
func (t *Table[T]) Get(id string) (T, bool) {
	v, ok := t.rows[id]
	return v, ok
}

// Put keeps a resource, new or changed.
func (t *Table[T]) Put(id string, v T) {
	if _, ok := t.rows[id]; !ok {
		for len(t.rows) >= maxRows {
			delete(t.rows, t.order[t.first])
			t.first++
		}
		if t.first > maxRows {
			t.order, t.first = append([]string(nil), t.order[t.first:]...), 0
		}
		t.order = append(t.order, id)
	}
	t.rows[id] = v
}

// Delete forgets a resource and tells whether it was there.
func (t *Table[T]) Delete(id string) bool {
	if _, ok := t.rows[id]; !ok {
		return false
	}
	delete(t.rows, id)
	for i := len(t.order) - 1; i >= t.first; i-- {
		if t.order[i] == id {
			t.order[i] = ""
			break
		}
	}
	return true
}

// Len is how many there are.
func (t *Table[T]) Len() int { return len(t.rows) }

// All yields ids and resources, the oldest first.
func (t *Table[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, id := range t.order[t.first:] {
			if v, ok := t.rows[id]; ok && id != "" && !yield(id, v) {
				return
			}
		}
	}
}

// Newest yields ids and resources, the newest first.
func (t *Table[T]) Newest() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for i := len(t.order) - 1; i >= t.first; i-- {
			id := t.order[i]
			if v, ok := t.rows[id]; ok && id != "" && !yield(id, v) {
				return
			}
		}
	}
}
