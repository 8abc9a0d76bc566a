package sqlite

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// The index of due calls is in order within each line of a gate, so that a
// backlog is never sorted. Of the lines that a gate can have there are few, and
// only those are looked at.

// lines are some lines of a gate: of each lane, bit p is priority p.
type lines [queue.Lanes]uint16

func (s *lines) add(l queue.Line) { s[l.Lane()] |= 1 << l.Priority() }

func (s *lines) drop(l queue.Line) { s[l.Lane()] &^= 1 << l.Priority() }

func (s *lines) has(l queue.Line) bool { return s[l.Lane()]&(1<<l.Priority()) != 0 }

// What lies in the column line is read as one of the lines, and odd if it is
// another number or none.
var (
	sane = fmt.Sprintf("min(max(CAST(line AS INTEGER), 0), %d)", queue.Lines-1)
	odd  = fmt.Sprintf("(typeof(line) <> 'integer' OR line NOT BETWEEN 0 AND %d)", queue.Lines-1)
)

// minLine is a query for the first line in the index, of a gate and by what
// else is said of it: one step from line to line, however long they are.
func minLine(gate string) string {
	return "SELECT min(line) FROM calls INDEXED BY due WHERE state = 0 AND listed = 1 AND gate = " + gate
}

// learn finds out which lines of a gate are in the index, once. What a bad disk
// left as another number would never be looked for, and is mended.
func (b *book) learn(g *gate) {
	if g.learnt {
		return
	}
	var bad bool
	b.rows(b.q.lines, func(scan func(...any) error) error {
		var l queue.Line
		var isOdd bool
		err := scan(&l, &isOdd)
		g.index.add(l)
		bad = bad || isOdd
		return err
	}, g.id)
	if bad {
		b.exec(b.q.mend, g.id)
	}
	g.learnt = true
	b.undo = append(b.undo, func() { g.learnt = false })
}

// head is a call that is due.
type head struct {
	seq  int64
	rank int64
	queue.Line
}

// offer is what one gate may give.
type offer struct {
	*gate
	heads []head // in the order in which they go
	all   bool   // nothing else of the gate is due
	next  int64  // if so: when something will be
}

// due finds up to n due calls of a gate. Every lane is read as deep as its turns
// go: into n equal parts, and where some have less, deeper into the others.
func (b *book) due(g *gate, at int64, n int) offer {
	b.learn(g)
	o := offer{gate: g, next: math.MaxInt64}
	for lanes := g.lanes(); len(lanes) > 0 && len(o.heads) < n; {
		part := (n - len(o.heads) + len(lanes) - 1) / len(lanes)
		var top []head
		var deep []int
		for _, lane := range lanes {
			if heads, more := b.lane(&o, lane, at, part); more {
				top, deep = append(top, heads...), append(deep, lane)
			} else {
				o.heads = append(o.heads, heads...)
			}
			if part == 1 && len(o.heads)+len(top) == n {
				break // it is not the turn of those behind
			}
		}
		if len(o.heads)+len(top) >= n {
			o.heads = append(o.heads, top...)
		}
		lanes = deep
	}
	o.all = len(o.heads) < n
	o.heads = queue.Turns(o.heads, g.turn)
	o.heads = o.heads[:min(n, len(o.heads))]
	return o
}

// lanes lists those that may have something, by whose turn it is.
func (g *gate) lanes() []int {
	var all []int
	for i := range queue.Lanes {
		lane := (g.turn + 1 + i) % queue.Lanes
		if g.index[lane] != 0 || len(g.fresh[lane]) > 0 {
			all = append(all, lane)
		}
	}
	return all
}

// lane returns up to n due calls of a lane in order, and whether it may have
// more. Of what is not due the offer notes when it will be.
func (b *book) lane(o *offer, lane int, at int64, n int) (heads []head, more bool) {
	for p := range queue.Priorities {
		if l := queue.Line(lane*queue.Priorities + p); o.index.has(l) {
			due := b.line(o, l, at, n)
			heads, more = append(heads, due...), more || len(due) == n
		}
	}
	left := n
	for _, a := range o.fresh[lane] {
		if a.at > at {
			o.next = min(o.next, a.at)
			continue
		}
		if left == 0 {
			more = true
			break
		}
		heads, left = append(heads, a.head), left-1
	}
	slices.SortFunc(heads, head.order)
	return heads[:min(n, len(heads))], more || len(heads) > n
}

// line returns up to n due calls of a line that are in the index.
func (b *book) line(o *offer, l queue.Line, at int64, n int) []head {
	var heads []head
	empty := true
	b.rows(b.q.heads, func(scan func(...any) error) error {
		h := head{Line: l}
		var due int64
		err := scan(&h.seq, &due)
		if empty = false; due <= at {
			h.rank = queue.Rank(time.Unix(0, due), l.Priority())
			heads = append(heads, h)
		} else {
			o.next = min(o.next, due)
		}
		return err
	}, o.id, l, n)
	if g := o.gate; empty {
		g.index.drop(l)
		b.undo = append(b.undo, func() { g.index.add(l) })
	}
	return heads
}

// turned notes whose turn it was.
func (b *book) turned(g *gate, lane int) {
	if was := g.turn; was != lane {
		g.turn = lane
		b.undo = append(b.undo, func() { g.turn = was })
	}
}

// rest notes when a gate of which nothing is due will have something.
func (b *book) rest(o *offer) int64 {
	g := o.gate
	g.idle = o.next
	b.undo = append(b.undo, func() { g.idle = 0 })
	return g.idle
}
