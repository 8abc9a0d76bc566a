package postgres

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heedproject/heed/internal/queue"
)

// ledger is what a transaction changes in gates and counts. Both are written
// last and in order, so that transactions which meet wait and do not lock each
// other out.
//
// The calls of a gate that run are counted in its row, which a claim locks:
// that is what the hard limit holds by. All other counts are spread over lanes,
// so that those who enqueue at once do not wait for one another.
type ledger struct {
	lane   int
	counts map[tally]int
	gates  map[int64]*mark
}

type tally struct {
	state  queue.State
	gate   int64
	reason string
}

// mark is what changes in the row of a gate.
type mark struct {
	running int
	closed  int64
	source  string
}

// lanes is over how many rows each count is spread.
const lanes = 16

// move counts n calls of a gate more (or fewer) in a state.
func (l *ledger) move(gate int64, s queue.State, reason string, n int) {
	if s == queue.Running {
		l.mark(gate).running += n
		return
	}
	if !s.Ended() {
		reason = "" // the reasons of waits are not counted
	}
	if l.counts == nil {
		l.counts = map[tally]int{}
	}
	l.counts[tally{s, gate, reason}] += n
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

const markGates = `UPDATE gates g SET running = g.running + u.running,
		source = CASE WHEN u.closed > g.closed THEN u.source ELSE g.source END, closed = greatest(g.closed, u.closed)
	FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[]) u(gate, running, closed, source)
	WHERE g.gate = u.gate`

const addTallies = `INSERT INTO tallies (state, gate, reason, lane, n)
	SELECT u.state, u.gate, u.reason, $5, u.n FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::bigint[]) u(state, gate, reason, n)
	ON CONFLICT (state, gate, reason, lane) DO UPDATE SET n = tallies.n + excluded.n`

// write queues the statements of the ledger.
func (l *ledger) write(t *tx) {
	if len(l.gates) > 0 {
		ids := slices.Sorted(maps.Keys(l.gates))
		running, closed, source := make([]int32, len(ids)), make([]int64, len(ids)), make([]string, len(ids))
		for i, id := range ids {
			m := l.gates[id]
			running[i], closed[i], source[i] = int32(m.running), m.closed, m.source
		}
		t.queue(markGates, ids, running, closed, source)
	}
	maps.DeleteFunc(l.counts, func(_ tally, n int) bool { return n == 0 })
	if len(l.counts) > 0 {
		keys := slices.SortedFunc(maps.Keys(l.counts), func(a, b tally) int {
			return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.gate, b.gate), cmp.Compare(a.reason, b.reason))
		})
		states, gates, reasons, n := make([]int16, len(keys)), make([]int64, len(keys)), make([]string, len(keys)), make([]int64, len(keys))
		for i, k := range keys {
			states[i], gates[i], reasons[i], n[i] = int16(k.state), k.gate, k.reason, int64(l.counts[k])
		}
		t.queue(addTallies, states, gates, reasons, n, int16(l.lane))
	}
}
