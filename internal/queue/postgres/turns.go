package postgres

import (
	"maps"
	"sync"

	"github.com/heedproject/heed/internal/queue"
)

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

// mostTurns is how many gates may be remembered before those are forgotten in
// which nothing waits.
const mostTurns = 1024

// keep forgets, when there are many, the turns of gates in which nothing waits:
// whoever comes first there next has the turn.
func (t *turns) keep(waiting map[int64]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lane) > max(mostTurns, 2*len(waiting)) {
		maps.DeleteFunc(t.lane, func(gate int64, _ int) bool { return !waiting[gate] })
	}
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

// part is what is read of a gate: of the lanes whose turn it may be, as many
// calls as there may be turns.
type part struct {
	lines []queue.Line
	each  int   // calls of a line
	rest  bool  // other lanes have calls that are due
	soon  int64 // when a line goes on of which nothing is due; 0: none does
}

// part finds it for so many turns. A lane has a second one when all others had
// theirs.
func (v *view) part(now int64, room, last int) part {
	var p part
	var due [queue.Lanes][]queue.Line
	lanes := 0
	for _, l := range v.lines {
		switch lane := &due[l.line.Lane()]; {
		case l.due <= 0: // its calls were taken, or have expired
		case l.due > now:
			p.wait(l.due)
		default:
			if *lane = append(*lane, l.line); len(*lane) == 1 {
				lanes++
			}
		}
	}
	p.each, p.rest = max(room-lanes+1, 1), lanes > room
	for i := 0; i < queue.Lanes && room > 0; i++ {
		if lane := due[(last+1+i)%queue.Lanes]; len(lane) > 0 {
			p.lines = append(p.lines, lane...)
			room--
		}
	}
	return p
}

func (p *part) wait(until int64) {
	if p.soon == 0 || until < p.soon {
		p.soon = until
	}
}
