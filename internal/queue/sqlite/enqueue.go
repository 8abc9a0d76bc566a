package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// parcel is a call that is ready to be written: what takes time was done
// before it reached the writer.
type parcel struct {
	*queue.Call
	id     string
	given  bool // the id came with the call
	sealed []byte
	prints []queue.Print
}

// Enqueue implements queue.Intake.
func (s *Store) Enqueue(ctx context.Context, now time.Time, calls []queue.Call) ([]queue.Receipt, error) {
	parcels := make([]parcel, len(calls))
	for i := range calls {
		p := &parcels[i]
		p.Call, p.id, p.given = &calls[i], calls[i].ID, calls[i].ID != ""
		if err := p.Check(); err != nil {
			return nil, err
		}
		if !p.given {
			p.id = queue.NewID(now)
		}
		var err error
		if p.sealed, err = s.keys.SealRequest(&queue.Facts{ID: p.id, Endpoint: p.Endpoint}, &p.Request); err != nil {
			return nil, fmt.Errorf("enqueue a call to %s: %w", p.Endpoint, err)
		}
		p.prints = s.keys.Prints(p.Call)
	}
	receipts := make([]queue.Receipt, len(calls))
	err := s.do(ctx, func(b *book) error {
		for i := range parcels {
			receipts[i] = b.enqueue(now, &parcels[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

func (b *book) enqueue(now time.Time, p *parcel) queue.Receipt {
	if r, known := b.known(now, p); known {
		return r
	}
	if b.s.most > 0 && b.live >= b.s.most {
		return queue.Receipt{Admission: queue.Full}
	}
	g := b.gate(p.Endpoint, p.Gate)
	due := now
	if p.NotBefore.After(now) {
		due = p.NotBefore
	}
	seq := b.insert(b.q.insert, p.id, g.id, p.Method, p.Template, p.Tenant, p.Priority, p.CorrelationID, p.TraceParent,
		p.Repeatable, nanos(p.NotBefore), nanos(p.Expires), nanos(now), len(p.Body), nanos(due))
	b.exec(b.q.keep, seq, p.sealed)
	if len(p.prints) > 0 {
		window := p.KeyWindow
		if window <= 0 {
			window = queue.DefaultKeyWindow
		}
		d := &p.prints[0]
		b.exec(b.q.take, d.Key, d.Body, d.By, p.id, nanos(now.Add(window)))
	}
	b.move(g, queue.Queued, "", 1)
	g.idle = min(g.idle, nanos(due))
	return queue.Receipt{Admission: queue.New, ID: p.id}
}

// known tells whether the call is here already, by its id or its key.
func (b *book) known(now time.Time, p *parcel) (queue.Receipt, bool) {
	var state queue.State
	if p.given && b.row(b.q.known, []any{&state}, p.id) {
		return queue.Receipt{Admission: queue.Duplicate, ID: p.id, State: state}, true
	}
	for _, d := range p.prints {
		var body []byte
		var id string
		if !b.row(b.q.taken, []any{&body, &id}, d.Key, nanos(now)) {
			continue
		}
		r := queue.Receipt{Admission: queue.Duplicate, ID: id, State: queue.Done}
		if !bytes.Equal(body, d.Body) {
			r.Admission = queue.Conflict
		}
		b.row(b.q.known, []any{&r.State}, id)
		return r, true
	}
	return queue.Receipt{}, false
}

// gate returns the gate of a quota key and makes it if there is none.
func (b *book) gate(endpoint, key string) *gate {
	k := gateKey{endpoint, key}
	if g := b.gates[k]; g != nil {
		return g
	}
	g := &gate{gateKey: k, all: b.gates[gateKey{endpoint, ""}]}
	b.row(b.q.newGate, []any{&g.id}, endpoint, key)
	b.gates[k], b.byID[g.id] = g, g
	b.undo = append(b.undo, func() {
		delete(b.gates, k)
		delete(b.byID, g.id)
	})
	if key == "" {
		b.shadow(endpoint, g)
	}
	return g
}

// shadow makes all the gate of the whole endpoint.
func (b *book) shadow(endpoint string, all *gate) {
	for k, g := range b.gates {
		if k.endpoint == endpoint {
			g.all = all
			b.undo = append(b.undo, func() { g.all = nil })
		}
	}
}
