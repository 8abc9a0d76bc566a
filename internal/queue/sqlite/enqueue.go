package sqlite

import (
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
	prints []print
	until  int64 // when its key is free again
}

// Enqueue implements queue.Intake.
func (s *Store) Enqueue(ctx context.Context, now time.Time, calls []queue.Call) ([]queue.Receipt, error) {
	parcels := make([]parcel, len(calls))
	for i := range calls {
		if err := s.pack(now, &calls[i], &parcels[i]); err != nil {
			return nil, err
		}
	}
	receipts := make([]queue.Receipt, len(calls))
	err := s.do(ctx, func(b *book) error {
		b.latest = max(b.latest, nanos(now))
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

func (s *Store) pack(now time.Time, c *queue.Call, p *parcel) (err error) {
	p.Call, p.id, p.given = c, c.ID, c.ID != ""
	if err := c.Check(); err != nil {
		return err
	}
	if !p.given {
		p.id = queue.NewID(now)
	}
	if p.sealed, err = s.keys.SealRequest(&queue.Facts{ID: p.id, Endpoint: c.Endpoint}, &c.Request); err != nil {
		return fmt.Errorf("enqueue a call to %s: %w", c.Endpoint, err)
	}
	p.prints = prints(s.keys, c)
	window := c.KeyWindow
	if window <= 0 {
		window = queue.DefaultKeyWindow
	}
	p.until = nanos(now.Add(window))
	return nil
}

func (b *book) enqueue(now time.Time, p *parcel) queue.Receipt {
	if p.given {
		if r, known := b.known(p); known {
			return r
		}
	}
	full := b.s.most > 0 && b.live >= b.s.most
	if r, taken := b.before(now, p.prints, full); taken {
		return r
	}
	if full {
		return queue.Receipt{Admission: queue.Full}
	}
	g := b.gate(p.Endpoint, p.Gate)
	due := max(nanos(now), nanos(p.NotBefore))
	b.seq++
	if !b.insert(now, due, g, p) {
		r, _ := b.filed(now, &p.prints[0])
		return r
	}
	b.exec(b.q.keep, b.seq, p.sealed)
	b.written += len(p.sealed) >> 10
	b.move(g, queue.Queued, "", 1)
	b.enter(g, newArrival(b.seq, due, queue.LineOf(p.Tenant, p.Priority)))
	return queue.Receipt{Admission: queue.New, ID: p.id}
}

// insert writes the row of a call, unless its key is filed for another one.
func (b *book) insert(now time.Time, due int64, g *gate, p *parcel) bool {
	var key, body, by, until any // null: it has none
	if len(p.prints) > 0 {
		d := &p.prints[0]
		key, body, by, until = d.key, d.body, d.by, p.until
	}
	n := b.exec(b.q.insert, b.seq, p.id, g.id, p.Method, p.Template, p.Tenant, queue.LineOf(p.Tenant, p.Priority), p.CorrelationID, p.TraceParent,
		p.Repeatable, nanos(p.NotBefore), nanos(p.Expires), nanos(now), len(p.Body), due, key, body, by, until, key, nanos(now))
	if n == 0 && b.broken == nil {
		return false
	}
	if len(p.prints) > 0 {
		b.took(p.prints[0].key, b.seq, p.until)
	}
	return true
}

// known tells whether a call of this id is here. If what the caller handed in
// then is no longer kept, nothing is left to compare: it is a duplicate.
func (b *book) known(p *parcel) (queue.Receipt, bool) {
	k := row{Facts: queue.Facts{ID: p.id}}
	if !b.row(b.q.known, []any{&k.State, &k.seq, &k.gate, &k.Method}, p.id) {
		return queue.Receipt{}, false
	}
	if !b.facts(&k) {
		return queue.Receipt{}, false
	}
	r := queue.Receipt{Admission: queue.Duplicate, ID: p.id, State: k.State}
	if was := b.original(k.seq); was != nil && !b.s.keys.Same(&k.Facts, was, p.Call) {
		r.Admission = queue.Conflict
	}
	return r, true
}

// original reads what a call said when it was handed in. Nil: it is erased.
func (b *book) original(seq int64) []byte {
	var sealed []byte
	if !b.row(b.q.revision, []any{&sealed}, seq) {
		b.row(b.q.request, []any{&sealed}, seq)
	}
	return sealed
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
