package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// maxRescue bounds how many lost leases one Claim takes back.
const maxRescue = 256

// Claim implements queue.Feed.
func (s *Store) Claim(ctx context.Context, now time.Time, ask queue.Ask) (queue.Batch, error) {
	var batch queue.Batch
	err := s.do(ctx, func(b *book) error {
		b.rescue(now)
		batch = b.claim(now, ask)
		return nil
	})
	if err != nil {
		return queue.Batch{}, err
	}
	return batch, nil
}

// rescue takes the leases back that have run out.
func (b *book) rescue(now time.Time) {
	for _, seq := range b.seqs(b.q.lost, nanos(now), maxRescue) {
		r, _ := b.open(seq)
		if r == nil {
			return
		}
		o := queue.Rescue(&r.Facts)
		b.settle(now, r, &o)
	}
}

// open reads one call with its sealed request.
func (b *book) open(seq int64) (*row, []byte) {
	r := &row{}
	var sealed []byte
	if !b.row(b.q.bySeq, append(r.fields(), &r.trail, &sealed), seq) {
		return nil, nil
	}
	return b.facts(r), sealed
}

// head is a call that is due.
type head struct {
	seq  int64
	rank int64
}

// line is what one gate may give.
type line struct {
	*gate
	heads []head
	all   bool // nothing else of the gate is due
}

func (b *book) claim(now time.Time, ask queue.Ask) queue.Batch {
	var batch queue.Batch
	at := nanos(now)
	next := int64(math.MaxInt64)
	lines := b.lines(at, ask, &next)
	for len(batch.Claims) < ask.Max && len(lines) > 0 {
		kept := lines[:0]
		for _, l := range lines { // one of each gate in turn
			if len(batch.Claims) == ask.Max {
				kept = append(kept, l)
				continue
			}
			if c, ok := b.lease(now, l.heads[0].seq, ask.Lease); ok {
				batch.Claims = append(batch.Claims, c)
			}
			l.served = at
			b.served[l.gate] = true
			if l.heads = l.heads[1:]; len(l.heads) > 0 {
				kept = append(kept, l)
			} else if l.all {
				next = min(next, b.rest(l.gate, at))
			}
		}
		lines = kept
	}
	if len(lines) > 0 {
		next = at
	}
	if next < math.MaxInt64 {
		batch.Next = instant(next)
	}
	return batch
}

// lines finds the gates that may give something, the one served longest ago
// first, and when another one may.
func (b *book) lines(at int64, ask queue.Ask, next *int64) []line {
	var ready []*gate
	for _, g := range b.gates {
		open, held := g.openAt()
		switch {
		case g.queued == 0 || held || g.room(ask) <= 0:
		case max(open, g.idle) > at:
			*next = min(*next, max(open, g.idle))
		default:
			ready = append(ready, g)
		}
	}
	slices.SortFunc(ready, func(a, b *gate) int { return cmp.Or(cmp.Compare(a.served, b.served), cmp.Compare(a.id, b.id)) })
	var lines []line
	for _, g := range ready {
		if len(lines) >= ask.Max {
			*next = at // those behind have their turn at the next claim
			break
		}
		n := min(g.room(ask), ask.Max)
		l := line{gate: g, heads: b.due(g, at, n)}
		l.all = len(l.heads) < n
		if len(l.heads) > 0 {
			lines = append(lines, l)
		} else {
			*next = min(*next, b.rest(g, at))
		}
	}
	return lines
}

// rest finds when a gate of which nothing is due will have something.
func (b *book) rest(g *gate, at int64) int64 {
	var soonest *int64
	b.row(b.q.upcoming, []any{&soonest}, g.id, at)
	g.idle = math.MaxInt64
	if soonest != nil {
		g.idle = *soonest
	}
	b.undo = append(b.undo, func() { g.idle = 0 })
	return g.idle
}

// openAt is when the gate opens, and whether it is held until somebody says so.
func (g *gate) openAt() (at int64, held bool) {
	if g.all != nil && g.all != g {
		return max(g.closed, g.all.closed), g.paused || g.all.paused
	}
	return g.closed, g.paused
}

// room is how many more calls of the gate may run.
func (g *gate) room(ask queue.Ask) int {
	n := ask.Max
	if ask.Share > 0 {
		n = min(n, ask.Share-g.running)
	}
	if g.most > 0 {
		n = min(n, g.most-g.running)
	}
	return n
}

// due returns up to n due calls of a gate in the order in which they go.
func (b *book) due(g *gate, at int64, n int) []head {
	var heads []head
	b.rows(b.q.heads, func(scan func(...any) error) error {
		var h head
		var priority int
		var due int64
		err := scan(&h.seq, &priority, &due)
		h.rank = queue.Rank(time.Unix(0, due), priority)
		heads = append(heads, h)
		return err
	}, g.id, at, n)
	slices.SortFunc(heads, func(a, b head) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq)) })
	return heads[:min(n, len(heads))]
}

// lease hands one call out. A call that has expired, or that cannot be
// unsealed, ends here.
func (b *book) lease(now time.Time, seq int64, last time.Duration) (queue.Claim, bool) {
	r, sealed := b.open(seq)
	if r == nil {
		return queue.Claim{}, false
	}
	if !r.Expires.IsZero() && !r.Expires.After(now) {
		b.settle(now, r, &queue.Outcome{State: queue.Dead, Reason: queue.ReasonExpired})
		return queue.Claim{}, false
	}
	said, err := b.s.keys.OpenRequest(&r.Facts, sealed)
	if err != nil {
		b.settle(now, r, &queue.Outcome{State: queue.Dead, Reason: queue.ReasonUnreadable})
		return queue.Claim{}, false
	}
	b.token++
	l := queue.Lease{Token: b.token, Epoch: b.s.epoch, Until: now.Add(last)}
	b.exec(b.q.lease, l.Token, l.Epoch, nanos(l.Until), seq)
	g := b.byID[r.gate]
	b.move(g, queue.Queued, "", -1)
	b.move(g, queue.Running, "", 1)
	r.State = queue.Running
	return queue.Claim{Call: queue.Call{Facts: r.Facts, Request: said}, Lease: l}, true
}
