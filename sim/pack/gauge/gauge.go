// Package gauge lets a pack tell what is left of a limit where Dialect.Quota
// cannot: as an instant, which needs the clock of the case; in a body; or only
// to some callers.
//
// The API counts, refuses and keeps the journal as ever. A gauge is a second
// meter of the same limit beside it, which the pack feeds: whatever reaches an
// operation was let through, so that the operation takes its cost. What a step
// brings about without asking the limits is counted here alone, so that a gauge
// may tell less than there is, never more.
//
// A gauge lies in the rows of the case. Do, CostOf and Authorize may read it,
// and so may Refuse for a refusal that has a Limit, which comes from counting.
package gauge

import (
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Gauge is one meter, at one instant.
type Gauge struct {
	Limit *rate.Limit
	meter *rate.Meter
	now   time.Time
}

// Of returns the gauge of the caller of x for the limit of this name: of the
// world, if it replaces limits, and else of the pack's own. There is none where
// the limit is not.
func Of(x *sim.Exchange, own []rate.Limit, name string) (Gauge, bool) {
	w := x.World()
	all := own
	if w.Limits != nil || w.Rate != 0 {
		all = w.Limits
	}
	for i := range all {
		if all[i].Name != name {
			continue
		}
		key := name + " of " + x.Credential()
		if all[i].Scope == rate.Everyone {
			key = name
		}
		meters := sim.Rows[*rate.Meter](x, "gauges")
		m, ok := meters.Get(key)
		if !ok {
			m = new(rate.Meter)
			meters.Put(key, m)
		}
		return Gauge{&all[i], m, x.Now()}, true
	}
	return Gauge{}, false
}

// Take counts what was let through.
func (g Gauge) Take(cost float64) { g.meter.Spend(g.Limit, g.now, cost) }

// Wait is how long a request of this cost would have to wait, 0 if it need
// not.
func (g Gauge) Wait(cost float64) time.Duration { return g.meter.Ask(g.Limit, g.now, cost) }

// Told is what may be told; ok is false where the limit is one that tells
// nothing.
func (g Gauge) Told() (t rate.Told, ok bool) { return g.meter.Told(g.Limit, g.now) }

// Reset is the instant when t is whole again, in whole seconds, rounded up.
func (g Gauge) Reset(t rate.Told) time.Time {
	return g.now.Add(t.Reset + time.Second - 1).Truncate(time.Second)
}
