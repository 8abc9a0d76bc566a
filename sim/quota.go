package sim

import (
	"math"
	"time"

	"github.com/heedproject/heed/sim/rate"
)

// admit asks every limit that counts x, and notes what is left of them for the
// header of the answer. It returns the refusal of the narrowest.
func (x *Exchange) admit() *Refusal {
	if len(x.pack.limits) == 0 {
		return nil
	}
	x.own.mu.Lock()
	defer x.own.mu.Unlock()
	now := x.own.clock.now()
	r := x.count(now)
	if r != nil {
		if r.Wait > 0 {
			x.caller.close(now, r.Wait)
		}
		x.entry.throttled, x.entry.limit = true, r.Limit
	}
	x.counted = r == nil
	x.tell(now)
	return r
}

// count takes the cost from all limits, or refuses and takes it from none.
func (x *Exchange) count(now time.Time) *Refusal {
	var worst *Refusal
	for i := range x.pack.limits {
		l := &x.pack.limits[i]
		if !l.applies(x.Request.Method, x.Path) {
			continue
		}
		m := x.own.meter(x, i)
		wait := m.Ask(&l.Limit, now, x.cost(l))
		if wait == 0 {
			continue
		}
		r := Refusal{Kind: Throttled, Limit: &l.Limit, Wait: m.Refuse(&l.Limit, now, wait)}
		r.Detail = "too many requests with this credential; wait as long as Retry-After says"
		if _, banned := m.Blocked(now); banned {
			r.Kind, r.Detail = Banned, "shut out: too many requests came before the time that was told"
		}
		if l.Kind == rate.Concurrency && wait == 1 {
			r.Wait, r.Detail = 0, "too many requests at the same time"
		}
		if worst == nil || r.Wait > worst.Wait {
			worst = &r
		}
	}
	if worst != nil {
		if worst.Wait == math.MaxInt64 {
			worst.Wait, worst.Detail = 0, "this request costs more than the limit "+worst.Limit.Name+" ever holds; ask for less"
		}
		known := worst.Wait > 0
		worst.Wait = worst.Limit.Hint.Of(worst.Wait)
		worst.Now = known && worst.Wait == 0 && worst.Limit.Hint == rate.ShortHint
		return worst
	}
	for i := range x.pack.limits {
		l := &x.pack.limits[i]
		if !l.applies(x.Request.Method, x.Path) {
			continue
		}
		x.own.meter(x, i).Spend(&l.Limit, now, x.cost(l))
		if l.Kind == rate.Concurrency {
			x.running = append(x.running, i)
		}
	}
	return nil
}

func (x *Exchange) cost(l *limit) float64 {
	switch {
	case !l.Weighted:
		return 1
	case x.operation.CostOf != nil:
		return x.operation.CostOf(x)
	}
	return x.operation.Cost
}

// tell notes what headers say of the limits, in place of what it noted before.
func (x *Exchange) tell(now time.Time) {
	x.least, x.quota = rate.Told{}, nil
	var told []rate.Told
	dialect := x.pack.Dialect.Quota
	if f := x.pack.Dialect.Tell; f != nil {
		dialect = func(an *Answer, told []rate.Told) { f(x, an, told) }
	}
	for i := range x.pack.limits {
		l := &x.pack.limits[i]
		if !l.applies(x.Request.Method, x.Path) {
			continue
		}
		t, ok := x.own.meter(x, i).Told(&l.Limit, now)
		switch {
		case !ok:
		case dialect != nil:
			told = append(told, t)
		case x.least.Limit == nil || narrower(&t, &x.least):
			x.least = t
		}
	}
	if len(told) > 0 {
		var an Answer
		dialect(&an, told)
		x.quota = an.Fields
	}
}

// narrower tells whether less is left of t, or as little for longer.
func narrower(t, o *rate.Told) bool {
	mine, other := t.Remaining*o.Capacity, o.Remaining*t.Capacity
	return mine < other || mine == other && t.Reset > o.Reset
}
