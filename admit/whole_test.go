package admit

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// world drives a gate by chance, and knows what must hold of it.
type world struct {
	t    *testing.T
	rng  *rand.Rand
	g    *Gate
	now  time.Time
	out  []Pass    // sent, not observed
	held []Pass    // not released
	open time.Time // the latest instant that a hint named
}

func (w *world) admit() {
	group := w.rng.IntN(3) - 1
	a := w.g.Admit(w.now, Ask{Group: group, First: w.rng.IntN(2) == 0, Waiting: w.rng.IntN(3)})
	if a.Kind != Go {
		if a.Source == policy.NoWait {
			w.t.Fatalf("a wait for nothing: %+v", a)
		}
		if !a.At.IsZero() && !a.At.After(w.now) {
			w.t.Fatalf("a wait for %s that is over: asking again would never end", a.Source)
		}
		return
	}
	if w.now.Before(w.open) {
		w.t.Fatalf("let through %v before the hint was over (probe %v)", w.open.Sub(w.now), a.Pass.Probe)
	}
	w.out, w.held = append(w.out, a.Pass), append(w.held, a.Pass)
}

// pull takes one of passes by chance.
func (w *world) pull(passes *[]Pass) (p Pass, ok bool) {
	if len(*passes) == 0 {
		return p, false
	}
	i := w.rng.IntN(len(*passes))
	p = (*passes)[i]
	(*passes)[i] = (*passes)[len(*passes)-1]
	*passes = (*passes)[:len(*passes)-1]
	return p, true
}

func (w *world) observe() {
	p, found := w.pull(&w.out)
	if !found {
		return
	}
	r := Result{Pass: p, Status: 200, Retry: w.rng.IntN(2) == 0, Paid: w.rng.IntN(15)}
	switch w.rng.IntN(8) {
	case 0:
		r.Verdict, r.Status = throttle, 429
	case 1:
		r.Verdict, r.Status = overload, 503
	case 2:
		r.Verdict, r.Status = failed, 500
	case 3:
		r.Failure, r.Status = classify.Canceled, 0
	default:
		r.Verdict = ok
	}
	if w.rng.IntN(3) == 0 && (r.Status == 429 || r.Status == 503) {
		wait := time.Duration(w.rng.Int64N(int64(5 * time.Second)))
		r.Hint = hint.Hint{Wait: wait, HasWait: true}
		if at := w.now.Add(wait); at.After(w.open) {
			w.open = at
		}
	}
	if w.rng.IntN(3) == 0 {
		r.Hint.Remaining, r.Hint.HasRemaining = w.rng.Int64N(20), true
		r.Hint.Limit, r.Hint.HasLimit = 20, w.rng.IntN(2) == 0
		r.Hint.Reset, r.Hint.HasReset = time.Duration(w.rng.Int64N(int64(3*time.Second))), w.rng.IntN(2) == 0
	}
	if told := w.g.Observe(w.now, r); told.Until.Before(w.open) && w.now.Before(w.open) {
		w.t.Fatalf("told until %v, want the hint of %v", told.Until.Sub(w.now), w.open.Sub(w.now))
	}
}

func (w *world) check() {
	permits := map[int]int{}
	for _, p := range w.held {
		if !p.Probe {
			permits[-2]++
			permits[p.Group]++
		}
	}
	g := w.g
	if g.inFlight != permits[-2] || g.inFlight < 0 || g.inFlight > 6 {
		w.t.Fatalf("got %d in flight, want the %d that hold permits, and 6 at most", g.inFlight, permits[-2])
	}
	if g.groups[0] != permits[0] || g.groups[1] != permits[1] || g.groups[0] > 2 {
		w.t.Fatalf("got %v in the groups, want %d and %d", g.groups, permits[0], permits[1])
	}
	if g.budget < 0 || g.budget > g.p.Retry.Tokens.Capacity {
		w.t.Fatalf("got %d retry tokens, want within [0, %d]", g.budget, g.p.Retry.Tokens.Capacity)
	}
	if g.pace.rate < 0 || g.pace.rate != g.pace.rate {
		w.t.Fatalf("got a rate of %v/s", g.pace.rate)
	}
}

func TestWhateverHappensTheLimitsHold(t *testing.T) {
	for seed := range uint64(60) {
		rng := seeded(seed)
		g := gateOf(func(p *policy.Policy) {
			p.Limits.Concurrency = 6
			p.Limits.Groups = []policy.Group{{Name: "a", Concurrency: 2}, {Name: "b"}}
			p.Limits.Learn = policy.Learn{Off: seed%4 == 0, Start: float64(seed % 3 * 20)}
			if seed%5 == 0 {
				p.Limits.Rate, p.Limits.Burst = 50, 3
			}
			p.Breaker.Consecutive = 1 + int(seed%4)
			p.Retry.Tokens.Capacity = 60
		})
		w := &world{t: t, rng: rng, g: g, now: start}
		for range 1500 {
			switch rng.IntN(6) {
			case 0:
				w.now = w.now.Add(time.Duration(rng.Int64N(int64(400 * time.Millisecond))))
			case 1:
				w.observe()
			case 2:
				if p, found := w.pull(&w.held); found {
					g.Release(w.now, p)
				}
			default:
				w.admit()
			}
			w.check()
		}
	}
}

// caller sends attempts through l as the road does, until n have been sent.
func caller(l *Line, x *Ticket, n int, send func(Pass)) {
	for range n {
		for {
			a := l.Ask(time.Now(), x)
			if a.Kind == Go {
				send(a.Pass)
				l.Observe(time.Now(), Result{Pass: a.Pass, Verdict: ok, Status: 200})
				l.Release(time.Now(), a.Pass, x)
				x.First = false
				break
			}
			var due <-chan time.Time
			if !a.At.IsZero() {
				due = time.After(time.Until(a.At))
			}
			select {
			case <-due:
			case <-x.Wake():
			}
		}
	}
}

// A wake that is lost would leave a caller asleep for ever, which the bubble
// reports as a deadlock.
func TestNoCallerIsForgotten(t *testing.T) {
	for _, share := range []float64{1, 0.4} {
		synctest.Test(t, func(t *testing.T) {
			l := lineOf(func(p *policy.Policy) {
				p.Limits.Concurrency, p.Limits.TenantShare = 5, share
				p.Limits.Groups = []policy.Group{{Name: "a", Concurrency: 1}, {Name: "b", Concurrency: 2}}
			})
			var running, most, sent atomic.Int32
			var wg sync.WaitGroup
			for i := range 100 {
				x := &Ticket{Group: i%3 - 1, Tenant: string(rune('a' + i%4)), Priority: i % 2, First: true}
				wg.Go(func() {
					caller(l, x, 5, func(Pass) {
						most.Store(max(most.Load(), running.Add(1)))
						time.Sleep(10 * time.Millisecond)
						running.Add(-1)
						sent.Add(1)
					})
				})
			}
			wg.Wait()
			if sent.Load() != 500 || most.Load() > 5 {
				t.Errorf("share %v: got %d sent, %d at once, want 500 and 5 at most", share, sent.Load(), most.Load())
			}
			if l.waiting != 0 || len(l.tenants) != 0 {
				t.Errorf("share %v: got %d waiting and %d tenants at the end, want none", share, l.waiting, len(l.tenants))
			}
		})
	}
}

func TestCallersOfAPacedKeyAreServedAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lineOf(func(p *policy.Policy) { p.Limits.Rate = 100 })
		begun := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { caller(l, &Ticket{Group: -1, First: true}, 4, func(Pass) {}) })
		}
		wg.Wait()
		if took := time.Since(begun).Round(time.Microsecond); took != 199*10050*time.Microsecond {
			t.Errorf("200 attempts at 100/s took %v, want 1.99 s and half a percent", took)
		}
	})
}
