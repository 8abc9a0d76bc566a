package sim

import (
	"iter"
	"time"
)

// maxRows bounds the memory that one table takes, maxVersions that of what
// resources were before.
const (
	maxRows     = 50_000
	maxVersions = 1024
)

// Table holds the resources of one kind in one case. Of more than 50,000 the
// oldest are forgotten.
type Table[T any] struct {
	rows  map[string]T
	order []string // as they were put; "" where one was deleted
	first int      // index in order of the oldest that may be there

	of     *Case
	before shelf[string, version[T]] // by id, of the newest writes
}

// version is what a resource was before its last write.
type version[T any] struct {
	value T
	was   bool      // it was there
	since time.Time // of the write
	turn  int       // of the request that wrote
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
	t := &Table[T]{rows: map[string]T{}, of: x.own, before: newShelf[string, version[T]](maxVersions)}
	tables[kind] = t
	return t
}

// Get returns the resource with this id.
func (t *Table[T]) Get(id string) (T, bool) {
	if t.of.past > 0 {
		if v, ok := t.undo(id); ok {
			return v.value, v.was
		}
	}
	v, ok := t.rows[id]
	return v, ok
}

// Put keeps a resource, new or changed.
func (t *Table[T]) Put(id string, v T) {
	if t.of.past > 0 {
		return // what is shown as it was is not changed
	}
	t.note(id)
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
	if _, ok := t.rows[id]; !ok || t.of.past > 0 {
		return ok
	}
	t.note(id)
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
func (t *Table[T]) Len() int {
	if t.of.past == 0 {
		return len(t.rows)
	}
	n := 0
	for range t.All() {
		n++
	}
	return n
}

// All yields ids and resources, the oldest first.
func (t *Table[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, id := range t.order[t.first:] {
			if _, ok := t.rows[id]; !ok || id == "" {
				continue
			}
			if v, ok := t.Get(id); ok && !yield(id, v) {
				return
			}
		}
		for _, id := range t.removed() {
			if v, ok := t.Get(id); ok && !yield(id, v) {
				return
			}
		}
	}
}

// Newest yields ids and resources, the newest first.
func (t *Table[T]) Newest() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, id := range t.removed() {
			if v, ok := t.Get(id); ok && !yield(id, v) {
				return
			}
		}
		for i := len(t.order) - 1; i >= t.first; i-- {
			id := t.order[i]
			if _, ok := t.rows[id]; !ok || id == "" {
				continue
			}
			if v, ok := t.Get(id); ok && !yield(id, v) {
				return
			}
		}
	}
}

// note keeps what the resource is before the request at work changes it.
func (t *Table[T]) note(id string) {
	c := t.of
	if c.playing {
		return // what a case begins with was always there
	}
	if v, ok := t.before.get(id); ok && v.turn == c.turn {
		return
	}
	old, was := t.rows[id]
	t.before.put(id, version[T]{old, was, c.clock.now(), c.turn})
}

// undo is what the resource was before its last write, if that is not longer
// ago than the past that is shown.
func (t *Table[T]) undo(id string) (version[T], bool) {
	v, ok := t.before.get(id)
	if !ok || t.of.clock.now().Sub(v.since) >= t.of.past {
		return version[T]{}, false
	}
	t.of.undone = true
	return v, true
}

// removed are the resources that are not there any more, but were in the past
// that is shown.
func (t *Table[T]) removed() (ids []string) {
	if t.of.past == 0 {
		return nil
	}
	for _, id := range t.before.order {
		if _, ok := t.rows[id]; !ok {
			ids = append(ids, id)
		}
	}
	return ids
}
