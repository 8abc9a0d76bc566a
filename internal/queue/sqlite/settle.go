package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// Settle implements queue.Feed.
func (s *Store) Settle(ctx context.Context, now time.Time, claims []queue.Settlement) ([]string, error) {
	for i := range claims {
		if c := &claims[i]; c.State == queue.Running {
			return nil, fmt.Errorf("settle call %s: running is no outcome: %w", c.ID, queue.ErrInvalid)
		}
	}
	var lost []string
	err := s.do(ctx, func(b *book) error {
		lost = nil
		for i := range claims {
			c := &claims[i]
			r := b.held(c.ID, c.Lease)
			if r == nil {
				lost = append(lost, c.ID)
				continue
			}
			moved := *r // the transaction may fail
			b.settle(now, &moved, &c.Outcome)
		}
		return nil
	})
	return lost, err
}

// settle moves a call that runs, or is about to, on by an outcome.
func (b *book) settle(now time.Time, r *row, o *queue.Outcome) {
	was, reason := r.State, r.Reason
	r.Apply(now, o, b.s.keep)
	b.save(r, was, reason)
	if o.State == queue.Queued && o.Scope == queue.ScopeGate && o.Until.After(now) {
		b.closeGate(b.byID[r.gate], nanos(o.Until), o.Source)
	}
	if o.State == queue.Done {
		b.erase = append(b.erase, r.seq)
	}
	if o.Answer != nil && o.State.Ended() {
		sealed, err := b.s.keys.SealAnswer(&r.Facts, o.Answer)
		b.fail(err)
		b.exec(b.q.answer, r.seq, sealed)
		b.written += len(sealed) >> 10
	}
}

// closeGate closes a gate for longer; what is told late does not open it.
func (b *book) closeGate(g *gate, until int64, source string) {
	if until <= g.closed {
		return
	}
	was := g.closed
	b.undo = append(b.undo, func() { g.closed = was })
	g.closed = until
	b.exec(b.q.closeGate, until, source, g.id)
}

// Begin implements queue.Beginner.
func (s *Store) Begin(ctx context.Context, claims []queue.Claim) ([]string, error) {
	var lost []string
	at := nanos(time.Now())
	err := s.do(ctx, func(b *book) error {
		lost = nil
		for i := range claims {
			if r := b.held(claims[i].ID, claims[i].Lease); r != nil {
				b.exec(b.q.begin, at, r.seq)
			} else {
				lost = append(lost, claims[i].ID)
			}
		}
		return nil
	})
	return lost, err
}

// held returns the call that is out under a lease; nil: the lease was lost.
func (b *book) held(id string, l queue.Lease) *row {
	r := b.out[id]
	if r == nil || r.token != l.Token || r.epoch != l.Epoch {
		return nil
	}
	return r
}

// Renew implements queue.Feed.
func (s *Store) Renew(ctx context.Context, until time.Time, claims []queue.Claim) ([]string, error) {
	var lost []string
	err := s.do(ctx, func(b *book) error {
		lost = nil
		for i := range claims {
			c := &claims[i]
			if r := b.held(c.ID, c.Lease); r != nil {
				b.exec(b.q.renew, nanos(until), r.seq)
			} else {
				lost = append(lost, c.ID)
			}
		}
		return nil
	})
	return lost, err
}

// SetGate implements queue.Gates.
func (s *Store) SetGate(ctx context.Context, now time.Time, change queue.GateChange) error {
	if change.Endpoint == "" {
		return fmt.Errorf("set a gate: no endpoint is named: %w", queue.ErrInvalid)
	}
	return s.do(ctx, func(b *book) error {
		g := b.gate(change.Endpoint, change.Key)
		was := *g
		b.undo = append(b.undo, func() { g.closed, g.paused, g.most = was.closed, was.paused, was.most })
		var source *string
		if change.Closed != nil {
			g.closed, source = nanos(*change.Closed), &change.Source
		}
		if change.Paused != nil {
			g.paused = *change.Paused
		}
		if change.Limit != nil {
			g.most = *change.Limit
		}
		b.exec(b.q.setGate, g.closed, source, g.paused, g.most, g.id)
		return nil
	})
}
