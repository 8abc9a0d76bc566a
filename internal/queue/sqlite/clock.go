package sqlite

import (
	"context"
	"time"
)

// step is by how much an instant must lie before the latest one that was told
// for the clock of the machine to have been set back: operations that are told
// the time beside each other may come here in another order.
const step = 5 * time.Second

// byOperator marks a gate that was closed until an instant of the wall.
const byOperator = "operator"

// clock notes how late it is. If the clock was set back, what was due and open
// by then stays so: it has waited for as long as it had to, and would wait once
// more for as much as the clock went back. What a caller or an operator bound
// to an instant of the wall waits for that one.
func (b *book) clock(now time.Time) {
	at, was := nanos(now), b.latest
	if at > was-int64(step) {
		b.latest = max(at, was)
		return
	}
	b.exec(b.q.stillDue, at, was)
	fresh, err := b.arrivals(context.Background(), b.c)
	b.fail(err)
	b.rows(b.q.stillOpen, func(scan func(...any) error) error {
		var id int64
		if err := scan(&id); err != nil || b.byID[id] == nil {
			return err
		}
		g, closed := b.byID[id], b.byID[id].closed
		g.closed = at
		b.undo = append(b.undo, func() { g.closed = closed })
		return nil
	}, at, was, byOperator)
	for _, g := range b.gates {
		g.idle = 0 // not known any more
		b.refresh(g, fresh[g])
	}
	b.latest = at
	b.undo = append(b.undo, func() { b.latest = was })
}
