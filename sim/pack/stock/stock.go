// Package stock is what a provider has before anybody wrote to it: resources
// that are made from their number when they are asked for, and those that were
// written since, which lie over them.
//
// A case that nobody writes to takes no memory for its resources, however many
// there are. Of what is written, sim.Table keeps the newest.
package stock

import (
	"iter"

	"github.com/heedproject/heed/sim"
)

// Kind says what the resources of one kind are like at first.
type Kind[T any] struct {
	// Name is that of the table for what is written.
	Name string
	// Made is how many there are at first, with the numbers 1 to Made.
	Made int
	// ID is the id of a number, Number the number of an id: 0 for an id that is
	// not of this form.
	ID     func(n int) string
	Number func(id string) int
	// Make makes the resource with a number: the same one every time.
	Make func(n int) T
}

// Stock is the resources of one kind in one case.
type Stock[T any] struct {
	Kind[T]
	written *sim.Table[T]
	gone    *sim.Table[bool]
}

// Open returns the stock of x's case.
func Open[T any](x *sim.Exchange, k Kind[T]) Stock[T] {
	return Stock[T]{k, sim.Rows[T](x, k.Name), sim.Rows[bool](x, k.Name+" that are gone")}
}

// made is the number of an id that was there at first, 0 for another.
func (s Stock[T]) made(id string) int {
	if n := s.Number(id); n >= 1 && n <= s.Made && s.ID(n) == id {
		return n
	}
	return 0
}

// Get returns the resource with this id.
func (s Stock[T]) Get(id string) (v T, ok bool) {
	if v, ok = s.written.Get(id); ok {
		return v, true
	}
	n := s.made(id)
	if n == 0 {
		return v, false
	}
	if _, gone := s.gone.Get(id); gone {
		return v, false
	}
	return s.Make(n), true
}

// Put keeps a resource, new or changed.
func (s Stock[T]) Put(id string, v T) {
	s.gone.Delete(id)
	s.written.Put(id, v)
}

// Delete forgets a resource and tells whether it was there.
func (s Stock[T]) Delete(id string) bool {
	if _, ok := s.Get(id); !ok {
		return false
	}
	s.written.Delete(id)
	if s.made(id) > 0 {
		s.gone.Put(id, true)
	}
	return true
}

// Len is how many there are.
func (s Stock[T]) Len() int {
	n := s.Made - s.gone.Len()
	for id := range s.written.All() {
		if s.made(id) == 0 {
			n++
		}
	}
	return n
}

// IDs yields all ids: those of the numbers in order, then the others as they
// were written.
func (s Stock[T]) IDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := 1; n <= s.Made; n++ {
			id := s.ID(n)
			if _, gone := s.gone.Get(id); !gone && !yield(id) {
				return
			}
		}
		for id := range s.written.All() {
			if s.made(id) == 0 && !yield(id) {
				return
			}
		}
	}
}

// All yields ids and resources in the order of IDs.
func (s Stock[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for id := range s.IDs() {
			if v, ok := s.Get(id); ok && !yield(id, v) {
				return
			}
		}
	}
}

// Pick takes one of several texts, by the seed of the world, what it is for
// and a number: the same one every time.
func Pick(x *sim.Exchange, what string, n int, from []string) string {
	h := x.Seed()
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * 1099511628211 // FNV-1a
	}
	h += uint64(n) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // the finalizer of splitmix64, so that low bits vary too
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return from[(h^h>>31)%uint64(len(from))]
}
