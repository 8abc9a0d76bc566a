package sim

// shelf keeps the newest values by key and forgets the oldest, so that a
// simulator that runs for days does not grow. The zero value with a size is
// empty and takes no memory.
type shelf[K comparable, V any] struct {
	size  int
	items map[K]V
	order []K // a ring, the oldest key at next once it is full
	next  int
}

func newShelf[K comparable, V any](size int) shelf[K, V] { return shelf[K, V]{size: size} }

func (s *shelf[K, V]) get(key K) (V, bool) {
	v, ok := s.items[key]
	return v, ok
}

// put keeps v and tells which key was forgotten for it.
func (s *shelf[K, V]) put(key K, v V) (forgotten K, full bool) {
	if s.items == nil {
		s.items = map[K]V{}
	}
	if _, ok := s.items[key]; !ok {
		if len(s.order) < s.size {
			s.order = append(s.order, key)
		} else {
			forgotten, full = s.order[s.next], true
			delete(s.items, forgotten)
			s.order[s.next] = key
			s.next = (s.next + 1) % s.size
		}
	}
	s.items[key] = v
	return forgotten, full
}
