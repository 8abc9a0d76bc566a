package sim

// shelf keeps the newest values by key and forgets the oldest, so that a
// simulator that runs for days does not grow.
type shelf[V any] struct {
	size  int
	items map[string]V
	order []string // a ring, the oldest key at next once it is full
	next  int
}

func newShelf[V any](size int) shelf[V] {
	return shelf[V]{size: size, items: map[string]V{}}
}

func (s *shelf[V]) get(key string) (V, bool) {
	v, ok := s.items[key]
	return v, ok
}

func (s *shelf[V]) put(key string, v V) {
	if _, ok := s.items[key]; !ok {
		if len(s.order) < s.size {
			s.order = append(s.order, key)
		} else {
			delete(s.items, s.order[s.next])
			s.order[s.next] = key
			s.next = (s.next + 1) % s.size
		}
	}
	s.items[key] = v
}
