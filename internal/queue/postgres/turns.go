package postgres

import "sync"

// turns remembers which lane of each gate had the last turn. Each gateway
// counts for itself: what several of them take is spread all the same. The zero
// value is ready.
type turns struct {
	mu   sync.Mutex
	lane map[int64]int
}

func (t *turns) last(gate int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lane[gate]
}

// took says what was claimed, in order.
func (t *turns) took(picks []head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lane == nil {
		t.lane = map[int64]int{}
	}
	for _, h := range picks {
		t.lane[h.gate] = h.Lane()
	}
}
