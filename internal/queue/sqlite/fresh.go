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
	at int64 // not before
}

func newArrival(seq, at int64, line queue.Line) arrival {
	return arrival{head: head{seq: seq, rank: queue.Rank(time.Unix(0, at), line.Priority()), Line: line}, at: at}
}

// order is the order in which calls of a gate go.
func (h head) order(other head) int {
	return cmp.Or(cmp.Compare(h.rank, other.rank), cmp.Compare(h.seq, other.seq))
}

func (g *gate) add(a arrival) {
	if g.fresh == nil {
		g.fresh = map[int][]arrival{}
	}
	fresh := g.fresh[a.Lane()]
	i, _ := slices.BinarySearchFunc(fresh, a, func(x, a arrival) int { return x.order(a.head) })
	g.fresh[a.Lane()] = slices.Insert(fresh, i, a)
	g.idle = min(g.idle, a.at)
}

// remove takes a call out of a lane; most are near the front.
func (g *gate) remove(lane int, seq int64) (a arrival, found bool) {
	fresh := g.fresh[lane]
	i := slices.IndexFunc(fresh, func(a arrival) bool { return a.seq == seq })
	if i < 0 {
		return a, false
	}
	a = fresh[i]
	copy(fresh[1:], fresh[:i])
	if g.fresh[lane] = fresh[1:]; len(fresh) == 1 {
		delete(g.fresh, lane)
	}
	return a, true
}

// enter notes that a call is queued.
func (b *book) enter(g *gate, a arrival) {
	if a.seq <= b.listed {
		g.idle = min(g.idle, a.at)
		g.index.add(a.Line)
		return
	}
	g.add(a)
	b.undo = append(b.undo, func() { g.remove(a.Lane(), a.seq) })
}

// leave notes that a call is queued no longer.
func (b *book) leave(g *gate, r *row) {
	if r.seq <= b.listed {
		return
	}
	a, found := g.remove(queue.Line(r.line).Lane(), r.seq)
	for lane := range g.fresh {
		if found {
			break
		}
		a, found = g.remove(lane, r.seq) // its line in the file was damaged since
	}
	if found {
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
		b.refresh(g, g.after(to))
	}
}

// after returns the arrivals after one, and notes that the others are in the
// index.
func (g *gate) after(seq int64) map[int][]arrival {
	left := map[int][]arrival{}
	for lane, fresh := range g.fresh {
		for _, a := range fresh {
			if a.seq > seq {
				left[lane] = append(left[lane], a)
			} else {
				g.index.add(a.Line)
			}
		}
	}
	return left
}

// refresh replaces the arrivals of a gate.
func (b *book) refresh(g *gate, fresh map[int][]arrival) {
	if was := g.fresh; len(was) > 0 || len(fresh) > 0 {
		g.fresh = fresh
		b.undo = append(b.undo, func() { g.fresh = was })
	}
}

// arrivals reads the queued calls that are not in the index.
func (b *book) arrivals(ctx context.Context, c *sql.Conn) (map[*gate]map[int][]arrival, error) {
	all := map[*gate]map[int][]arrival{}
	text := fmt.Sprintf(`SELECT seq, gate, %s, CAST(next_at AS INTEGER) FROM calls WHERE seq > %d AND state = 0`, sane, b.listed)
	err := each(ctx, c, text, func(r *sql.Rows) error {
		var seq, gate, at int64
		var line queue.Line
		err := r.Scan(&seq, &gate, &line, &at)
		if g := b.byID[gate]; g != nil {
			if all[g] == nil {
				all[g] = map[int][]arrival{}
			}
			all[g][line.Lane()] = append(all[g][line.Lane()], newArrival(seq, at, line))
		}
		return err
	})
	for _, lanes := range all {
		for _, fresh := range lanes {
			slices.SortFunc(fresh, func(a, b arrival) int { return a.order(b.head) })
		}
	}
	return all, err
}

// readFresh fills the memory from the file.
func (b *book) readFresh(ctx context.Context, c *sql.Conn) error {
	all, err := b.arrivals(ctx, c)
	for g, fresh := range all {
		g.fresh = fresh
	}
	return err
}
