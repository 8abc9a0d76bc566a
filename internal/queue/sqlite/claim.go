package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// maxRescue bounds how many lost leases one Claim takes back.
const maxRescue = 256

// Claim implements queue.Feed.
func (s *Store) Claim(ctx context.Context, now time.Time, ask queue.Ask) (queue.Batch, error) {
	var h hand
	// A lease that a crash takes back was free anyway; but a call that counts
	// as begun from now on must not be forgotten.
	err := s.hand(ctx, &op{loose: func() bool { return !h.begun }, do: func(b *book) error {
		b.clock(now)
		b.rescue(now)
		h = b.claim(now, ask)
		return nil
	}})
	if err != nil {
		return queue.Batch{}, err
	}
	return s.unseal(ctx, now, &h)
}

// hand is what a claim hands out, still sealed.
type hand struct {
	batch  queue.Batch
	sealed [][]byte
	left   int  // bytes that it may carry
	full   bool // the next call has more
	late   bool // it met calls that had expired
	begun  bool // a write among them counts as begun
}

// unseal opens the requests of claims, while the writer goes on. A call that
// cannot be read ends here.
func (s *Store) unseal(ctx context.Context, now time.Time, h *hand) (queue.Batch, error) {
	var dead []queue.Settlement
	all := h.batch.Claims
	h.batch.Claims = all[:0]
	for i := range all {
		c := all[i]
		var err error
		if c.Request, err = s.keys.OpenRequest(&c.Facts, h.sealed[i]); err != nil {
			dead = append(dead, queue.Settlement{ID: c.ID, Lease: c.Lease,
				Outcome: queue.Outcome{State: queue.Dead, Reason: queue.ReasonUnreadable}})
			continue
		}
		h.batch.Claims = append(h.batch.Claims, c)
	}
	if len(dead) > 0 {
		if _, err := s.Settle(context.WithoutCancel(ctx), now, dead); err != nil {
			return queue.Batch{}, err
		}
	}
	return h.batch, nil
}

// rescue takes the leases back that have run out.
func (b *book) rescue(now time.Time) {
	for _, r := range b.open(b.seqs(b.q.lost, nanos(now), maxRescue)) {
		o := queue.Rescue(&r.Facts)
		if r.begun == 0 && !r.damaged {
			o = queue.Unbegun(&r.Facts)
		}
		b.settle(now, r, &o)
	}
}

// open reads calls, in the order of seqs.
func (b *book) open(seqs []int64) []*row {
	if len(seqs) == 0 {
		return nil
	}
	all := make([]*row, 0, len(seqs))
	b.rows(b.q.bySeq, func(scan func(...any) error) error {
		r := &row{}
		err := r.scan(scan, &r.trail)
		all = append(all, r)
		return err
	}, array(seqs))
	return slices.DeleteFunc(all, func(r *row) bool { return !b.facts(r) })
}

// carry reads calls with their sealed requests, in the order of picks: as many
// as the claim may carry yet, or its first. It returns those behind as well.
func (b *book) carry(picks []pick, h *hand) (all []*row, behind []pick) {
	left, seqs := h.left, make([]int64, len(picks))
	for i, p := range picks {
		seqs[i] = p.seq
	}
	all = make([]*row, 0, len(seqs))
	b.rows(b.q.whole, func(scan func(...any) error) error {
		r := &row{}
		if err := r.scan(scan, &r.trail, &r.sealed); err != nil {
			return err
		}
		if left -= len(r.sealed); left < 0 && len(all)+len(h.sealed) > 0 {
			behind = picks[slices.Index(seqs, r.seq):]
			return errEnough
		}
		all = append(all, r)
		return nil
	}, array(seqs))
	return slices.DeleteFunc(all, func(r *row) bool { return !b.facts(r) }), behind
}

// array is what json_each takes.
func array(seqs []int64) string {
	text := append(make([]byte, 0, 12*len(seqs)+2), '[')
	for i, seq := range seqs {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, seq, 10)
	}
	return string(append(text, ']'))
}

func (b *book) claim(now time.Time, ask queue.Ask) hand {
	h := hand{left: ask.Carries()}
	at := nanos(now)
	next := int64(math.MaxInt64)
	offers := b.offers(at, ask, &next)
	for len(h.sealed) < ask.Max && len(offers) > 0 && !h.full { // again if some had expired
		var picks []pick
		picks, offers = b.draw(offers, ask.Max-len(h.sealed), &next)
		b.lease(now, picks, ask, &h)
	}
	if h.late { // there are more of them as a rule, before those that have not
		b.expire(now, maxRescue)
	}
	if len(offers) > 0 || h.full || h.late {
		next = at
	}
	if next < math.MaxInt64 {
		h.batch.Next = instant(next)
	}
	return h
}

// pick is a call that has its turn.
type pick struct {
	head
	gate *gate
}

// draw takes up to n calls, one of each gate in turn.
func (b *book) draw(offers []offer, n int, next *int64) (picks []pick, left []offer) {
	for len(picks) < n && len(offers) > 0 {
		kept := offers[:0]
		for _, o := range offers {
			if len(picks) == n {
				kept = append(kept, o)
				continue
			}
			picks = append(picks, pick{o.heads[0], o.gate})
			if o.heads = o.heads[1:]; len(o.heads) > 0 {
				kept = append(kept, o)
			} else if o.all {
				*next = min(*next, b.rest(&o))
			}
		}
		offers = kept
	}
	return picks, offers
}

// serve notes that calls had their turn. Those behind, which were too large to
// be carried with them, keep it, and their gates are not idle.
func (b *book) serve(at int64, picks, behind []pick) {
	for _, p := range picks[:len(picks)-len(behind)] {
		p.gate.served = at
		b.served[p.gate] = true
		b.turned(p.gate, p.Lane())
	}
	for _, p := range behind {
		p.gate.idle = 0
	}
}

// offers finds the gates that may give something, the one served longest ago
// first, and when another one may.
func (b *book) offers(at int64, ask queue.Ask, next *int64) []offer {
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
	var offers []offer
	for _, g := range ready {
		if len(offers) >= ask.Max {
			*next = at // those behind have their turn at the next claim
			break
		}
		if o := b.due(g, at, min(g.room(ask), ask.Max)); len(o.heads) > 0 {
			offers = append(offers, o)
		} else {
			*next = min(*next, b.rest(&o))
		}
	}
	return offers
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

// lease hands calls out, all under one token. One that has expired ends here,
// and one whose row is damaged.
func (b *book) lease(now time.Time, picks []pick, ask queue.Ask, h *hand) {
	var leased []int64
	b.token++
	l := queue.Lease{Token: b.token, Epoch: b.s.epoch, Until: now.Add(ask.Lease)}
	rows, behind := b.carry(picks, h)
	b.serve(nanos(now), picks, behind)
	h.full = len(behind) > 0
	for _, r := range rows {
		if r.damaged {
			b.settle(now, r, &queue.Outcome{State: queue.Dead, Reason: queue.ReasonUnreadable})
			continue
		}
		if !r.Expires.IsZero() && !r.Expires.After(now) {
			b.settle(now, r, &queue.Outcome{State: queue.Dead, Reason: queue.ReasonExpired})
			h.late = true
			continue
		}
		h.left -= len(r.sealed)
		h.sealed = append(h.sealed, r.sealed)
		b.handOut(r, l)
		leased = append(leased, r.seq)
		h.begun = h.begun || !r.Repeatable && !ask.Begins
		h.batch.Claims = append(h.batch.Claims, queue.Claim{Call: queue.Call{Facts: r.Facts}, Lease: l})
	}
	if len(leased) > 0 {
		begun := nanos(now)
		if ask.Begins {
			begun = 0
		}
		b.exec(b.q.lease, l.Token, l.Epoch, nanos(l.Until), begun, array(leased))
	}
}

// handOut keeps in mind that a call is out under a lease.
func (b *book) handOut(r *row, l queue.Lease) {
	g := b.byID[r.gate]
	b.leave(g, r)
	b.move(g, queue.Queued, "", -1)
	b.move(g, queue.Running, "", 1)
	r.State, r.token, r.epoch, r.sealed = queue.Running, l.Token, l.Epoch, nil
	r.Trail = slices.Clip(r.Trail) // the claim has it too
	b.out[r.ID] = r
	b.undo = append(b.undo, func() { delete(b.out, r.ID) })
}
