package postgres

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/heedproject/heed/internal/queue"
)

// ledger is what a transaction changes in gates and counts. Both are written
// last and in order, so that transactions which meet wait and do not lock each
// other out.
//
// Counts are spread over stripes, so that those who enqueue at once do not wait
// for one another. Calls that have not ended are counted by line, whether
// they run or not: so a claim counts nothing, and knows where it need not look.
// Those that arrive are counted in arrivals at first. What runs is counted by the
// rows of leases.
type ledger struct {
	stripe int
	counts map[tally]int
	gates  map[int64]*mark
}

type tally struct {
	state  queue.State
	gate   int64
	reason string // of what has not ended: its line
}

// mark is what changes in the row of a gate.
type mark struct {
	closed int64
	source string
}

// stripes is over how many rows each count is spread; their column is lane.
const stripes = 16

// live counts n calls of a gate more (or fewer) that have not ended.
func (l *ledger) live(gate int64, line queue.Line, n int) {
	l.count(tally{queue.Queued, gate, strconv.Itoa(int(line))}, n)
}

// move counts n calls like this one more (or fewer) in the state that it has.
func (l *ledger) move(r *row, s queue.State, reason string, n int) {
	if s.Ended() {
		l.count(tally{s, r.gate, reason}, n)
		return
	}
	l.live(r.gate, r.line(), n)
}

func (l *ledger) count(k tally, n int) {
	if l.counts == nil {
		l.counts = map[tally]int{}
	}
	l.counts[k] += n
}

// close keeps a gate closed for longer; what is told late does not open it.
func (l *ledger) close(gate, until int64, source string) {
	if m := l.mark(gate); until > m.closed {
		m.closed, m.source = until, source
	}
}

func (l *ledger) mark(gate int64) *mark {
	if l.gates == nil {
		l.gates = map[int64]*mark{}
	}
	m := l.gates[gate]
	if m == nil {
		m = &mark{}
		l.gates[gate] = m
	}
	return m
}

const closeGates = `UPDATE gates g SET source = u.source, closed = u.closed
	FROM unnest($1::bigint[], $2::bigint[], $3::text[]) u(gate, closed, source) WHERE g.gate = u.gate AND g.closed < u.closed`

const addTallies = `INSERT INTO tallies (state, gate, reason, lane, n)
	SELECT u.state, u.gate, u.reason, $5, u.n FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::bigint[]) u(state, gate, reason, n)
	ON CONFLICT (state, gate, reason, lane) DO UPDATE SET n = tallies.n + excluded.n`

// write queues the statements of the ledger.
func (l *ledger) write(t *tx) {
	if len(l.gates) > 0 {
		ids := slices.Sorted(maps.Keys(l.gates))
		closed, source := make([]int64, len(ids)), make([]string, len(ids))
		for i, id := range ids {
			m := l.gates[id]
			closed[i], source[i] = m.closed, m.source
		}
		t.queue(closeGates, ids, closed, source)
	}
	if keys := l.tallies(); len(keys) > 0 {
		states, gates, reasons, n := make([]int16, len(keys)), make([]int64, len(keys)), make([]string, len(keys)), make([]int64, len(keys))
		for i, k := range keys {
			states[i], gates[i], reasons[i], n[i] = int16(k.state), k.gate, k.reason, int64(l.counts[k])
		}
		t.queue(addTallies, states, gates, reasons, n, int16(l.stripe))
	}
}

// tallies lists the counts that change, in the order in which they are written.
func (l *ledger) tallies() []tally {
	maps.DeleteFunc(l.counts, func(_ tally, n int) bool { return n == 0 })
	return slices.SortedFunc(maps.Keys(l.counts), func(a, b tally) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.gate, b.gate), cmp.Compare(a.reason, b.reason))
	})
}
