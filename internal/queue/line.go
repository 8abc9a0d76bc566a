package queue

import "hash/fnv"

// Line is where a queued call stands within its gate: those of one line go in
// the order in which they are due. It is made of the lane of the call's tenant
// and of its priority, so that an index of due calls by line holds both. (Callers
// that wait in this process have a Line of package admit.)
type Line int16

const (
	// Lanes is how many lanes a gate has. Tenants are spread over them by a hash
	// of their name, so that a store keeps nothing about a tenant; two that
	// share a lane share its turns (stochastic fairness queueing, McKenney 1990).
	Lanes = 32
	// Priorities is how many priorities there are: 0 to 9.
	Priorities = 10
	// Lines is how many lines a gate has.
	Lines = Lanes * Priorities
)

// LineOf returns the line of a call.
func LineOf(tenant string, priority int) Line {
	h := fnv.New32a()
	h.Write([]byte(tenant))
	return Line(int(h.Sum32()%Lanes)*Priorities + priority)
}

// Lane is whose turn it is: that of the call's tenant.
func (l Line) Lane() int { return int(l) / Priorities }

// Priority is that of the call.
func (l Line) Priority() int { return int(l) % Priorities }

// Turns puts due calls of a gate into the order in which they go: the lanes in
// turn, from the one behind last, which had its turn before; in a lane as they
// stand in heads, which is by Rank.
func Turns[H interface{ Lane() int }](heads []H, last int) []H {
	if len(heads) < 2 {
		return heads
	}
	var lanes [Lanes][]H
	for _, h := range heads {
		lanes[h.Lane()] = append(lanes[h.Lane()], h)
	}
	if len(lanes[heads[0].Lane()]) == len(heads) {
		return heads
	}
	turns := make([]H, 0, len(heads))
	for n := 0; len(turns) < len(heads); n++ {
		for i := range Lanes {
			if lane := lanes[(last+1+i)%Lanes]; n < len(lane) {
				turns = append(turns, lane[n])
			}
		}
	}
	return turns
}
