package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// The index of due calls has a place for each gate, so that a call that enters
// it costs a page of its own. The latest calls are therefore kept in order in
// memory, and entered many at a time; one that is sent before that never is.
// All queued calls up to a seq are in the index, all later ones in memory.

// arrival is a queued call that is not in the index.
type arrival struct {
	head
	at       int64 // not before
	priority int
}

func newArrival(seq, at int64, priority int) arrival {
	return arrival{head: head{seq: seq, rank: queue.Rank(time.Unix(0, at), priority)}, at: at, priority: priority}
}

// order is the order in which calls of a gate go.
func (h head) order(other head) int {
	return cmp.Or(cmp.Compare(h.rank, other.rank), cmp.Compare(h.seq, other.seq))
}

func (g *gate) add(a arrival) {
	i, _ := slices.BinarySearchFunc(g.fresh, a, func(x, a arrival) int { return x.order(a.head) })
	g.fresh = slices.Insert(g.fresh, i, a)
	g.idle = min(g.idle, a.at)
}

// remove takes a call out; most are near the front.
func (g *gate) remove(seq int64) (a arrival, found bool) {
	i := slices.IndexFunc(g.fresh, func(a arrival) bool { return a.seq == seq })
	if i < 0 {
		return a, false
	}
	a = g.fresh[i]
	copy(g.fresh[1:], g.fresh[:i])
	g.fresh = g.fresh[1:]
	return a, true
}

// enter notes that a call is queued.
func (b *book) enter(g *gate, a arrival) {
	if a.seq <= b.listed {
		g.wait(a.priority, a.at)
		return
	}
	g.add(a)
	b.undo = append(b.undo, func() { g.remove(a.seq) })
}

// leave notes that a call is queued no longer.
func (b *book) leave(g *gate, seq int64) {
	if seq <= b.listed {
		return
	}
	if a, found := g.remove(seq); found {
		b.undo = append(b.undo, func() { g.add(a) })
	}
}

// list enters the oldest arrivals into the index when there are many.
func (b *book) list() {
	few := b.s.few
	if b.seq-b.listed < few.fresh+few.step || b.broken != nil {
		return
	}
	was, to := b.listed, b.seq-few.fresh // a step, or as many as came at once
	b.exec(b.q.list, was, to)
	b.exec(b.q.listedTo, to)
	b.listed = to
	b.undo = append(b.undo, func() { b.listed = was })
	for _, g := range b.gates {
		b.refresh(g, slices.DeleteFunc(slices.Clone(g.fresh), func(a arrival) bool {
			if a.seq <= to {
				g.none &^= 1 << a.priority
			}
			return a.seq <= to
		}))
	}
}

// refresh replaces the arrivals of a gate.
func (b *book) refresh(g *gate, fresh []arrival) {
	if was := g.fresh; len(was) > 0 || len(fresh) > 0 {
		g.fresh = fresh
		b.undo = append(b.undo, func() { g.fresh = was })
	}
}

// arrivals reads the queued calls that are not in the index.
func (b *book) arrivals(ctx context.Context, c *sql.Conn) (map[*gate][]arrival, error) {
	all := map[*gate][]arrival{}
	text := fmt.Sprintf(`SELECT seq, gate, CAST(priority AS INTEGER), CAST(next_at AS INTEGER) FROM calls
		WHERE seq > %d AND state = 0`, b.listed)
	err := each(ctx, c, text, func(r *sql.Rows) error {
		var seq, gate, at int64
		var priority int
		err := r.Scan(&seq, &gate, &priority, &at)
		if g := b.byID[gate]; g != nil {
			all[g] = append(all[g], newArrival(seq, at, min(max(priority, 0), priorities-1)))
		}
		return err
	})
	for _, line := range all {
		slices.SortFunc(line, func(a, b arrival) int { return a.order(b.head) })
	}
	return all, err
}

// readFresh fills the memory from the file.
func (b *book) readFresh(ctx context.Context, c *sql.Conn) error {
	all, err := b.arrivals(ctx, c)
	for g, line := range all {
		g.fresh = line
	}
	return err
}
