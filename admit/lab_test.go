package admit

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/heedproject/heed/backoff"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// A laboratory: workers call a server through a gate for hours of virtual time.

// trial is what is run in it.
type trial struct {
	workers int
	latency time.Duration // of an answer, from half as much to half as much again
	slow429 bool          // a 429 takes as long as an answer
	length  time.Duration
	server  func() *provider
	policy  func(*policy.Policy)
	oracle  bool // no gate: each request leaves when the server takes it
}

// outcome is what came of a trial.
type outcome struct {
	minutes []int // answers, by the minute
	// idle is the longest time in which nothing left although somebody waited,
	// the server would have taken it, and it had not asked to wait.
	idle time.Duration
	// in the second half
	sent, refused int
}

// moment is when something happens.
type moment struct {
	at    time.Duration
	order int
	what  func()
}

// agenda is a heap of moments.
type agenda struct {
	events []moment
	order  int
}

func (a *agenda) Len() int { return len(a.events) }
func (a *agenda) Less(i, j int) bool {
	x, y := &a.events[i], &a.events[j]
	return x.at < y.at || x.at == y.at && x.order < y.order
}
func (a *agenda) Swap(i, j int) { a.events[i], a.events[j] = a.events[j], a.events[i] }
func (a *agenda) Push(x any)    { a.events = append(a.events, x.(moment)) }
func (a *agenda) Pop() any {
	last := a.events[len(a.events)-1]
	a.events = a.events[:len(a.events)-1]
	return last
}

// lab is a trial that runs.
type lab struct {
	trial
	agenda
	outcome
	now    time.Duration
	rng    *rand.Rand
	gate   *Gate
	p      *policy.Policy
	server *provider
	line   []*worker
	asks   time.Duration // the next time that the front asks
	begun  time.Duration // since when somebody waits or the last one left
	asked  time.Duration // until when the server said to wait
}

type worker struct {
	pass    Pass
	retries int
	verdict classify.Verdict
	hint    hint.Hint
}

// late tells that the second half has begun.
func (l *lab) late() bool { return l.now > l.length/2 }

// at does what at t.
func (l *lab) at(t time.Duration, what func()) {
	l.order++
	heap.Push(&l.agenda, moment{max(t, l.now), l.order, what})
}

func run(t trial, seed uint64) outcome {
	rng := seeded(seed)
	l := &lab{trial: t, rng: rng, p: agreed(func(p *policy.Policy) {
		p.Limits.Learn = policy.Learn{}
		if t.policy != nil {
			t.policy(p)
		}
	})}
	l.gate = NewGate(l.p, seeded(seed+1000))
	l.server = t.server()
	l.minutes = make([]int, (t.length+time.Minute-1)/time.Minute)
	for range t.workers {
		w := &worker{}
		l.at(0, func() { l.stand(w) })
	}
	for _, c := range l.server.change {
		l.at(c.at, func() { l.server.scale(l.now, c.by) })
	}
	if l.server.other > 0 {
		l.at(l.server.share.from, l.visit)
	}
	for l.Len() > 0 {
		e := heap.Pop(&l.agenda).(moment)
		if e.at > t.length {
			break
		}
		l.now = e.at
		e.what()
		l.pump()
	}
	return l.outcome
}

// visit is a request of the other client.
func (l *lab) visit() {
	l.server.take(l.now)
	if l.now < l.server.share.to {
		l.at(l.now+seconds((0.5+l.rng.Float64())/l.server.other), l.visit)
	}
}

func (l *lab) stand(w *worker) {
	if len(l.line) == 0 {
		l.begun = l.now
	}
	l.line = append(l.line, w)
}

// pump lets the front of the line ask.
func (l *lab) pump() {
	for len(l.line) > 0 {
		w := l.line[0]
		kind, at := l.ask(w)
		if kind == No {
			panic("a gate said no")
		}
		if kind == Wait {
			if !at.IsZero() {
				d := at.Sub(start)
				if d <= l.now {
					panic("a gate told to wait until an instant that is past")
				}
				if l.asks <= l.now || d < l.asks {
					l.asks = d
					l.at(d, func() {})
				}
			}
			return
		}
		l.line = l.line[1:]
		l.depart(w)
	}
}

func (l *lab) ask(w *worker) (Kind, time.Time) {
	if l.oracle {
		if o, is := l.server.down(l.now); is {
			return Wait, start.Add(o.to)
		}
		if at := l.server.opens(l.now); at > l.now {
			return Wait, start.Add(at)
		}
		return Go, time.Time{}
	}
	a := l.gate.Admit(start.Add(l.now), Ask{Group: -1, First: w.retries == 0, Waiting: len(l.line) - 1})
	w.pass = a.Pass
	return a.Kind, a.At
}

func (l *lab) depart(w *worker) {
	if _, is := l.server.down(l.now); !is {
		l.idle = max(l.idle, l.now-max(l.begun, l.server.well(l.now), l.asked))
	}
	l.begun = l.now
	if l.late() {
		l.sent++
	}
	whole := time.Duration((0.5 + l.rng.Float64()) * float64(l.latency))
	trip := min(whole/10, time.Duration((0.5+l.rng.Float64())*float64(20*time.Millisecond)))
	if l.oracle {
		w.verdict, w.hint = l.server.arrive(l.now)
		l.at(l.now+whole, func() { l.answered(w) })
		return
	}
	l.at(l.now+trip, func() {
		w.verdict, w.hint = l.server.arrive(l.now)
		back := whole - trip
		if w.verdict.Class != classify.OK && !l.slow429 {
			back = trip
		}
		l.at(l.now+back, func() { l.answered(w) })
	})
}

func (l *lab) answered(w *worker) {
	if s, is := l.server.limiter.(*seats); is && w.verdict.Class == classify.OK {
		s.leave(l.now)
	}
	r := Result{Pass: w.pass, Verdict: w.verdict, Hint: w.hint, Status: 200}
	switch w.verdict.Class {
	case classify.OK:
		l.minutes[min(int(l.now/time.Minute), len(l.minutes)-1)]++
	case classify.Throttled:
		r.Status, r.Retry = 429, true
		if l.late() {
			l.refused++
		}
	default:
		r.Status, r.Retry = 503, true
	}
	if l.oracle {
		l.stand(w)
		return
	}
	if w.hint.HasWait {
		l.asked = max(l.asked, l.now+w.hint.Wait+l.p.Hints.JitterMax)
	}
	now := start.Add(l.now)
	l.gate.Release(now, w.pass)
	told := l.gate.Observe(now, r)
	if !r.Retry || !told.Retry {
		w.retries = 0
		l.stand(w)
		return
	}
	wait := max(backoff.Wait(l.p.Backoff, w.retries, 0, l.rng), l.p.Retry.MinPause)
	if w.hint.HasWait && w.hint.Wait > 0 {
		wait = max(wait, w.hint.Wait) + l.p.Hints.Jitter(w.hint.Wait, l.rng)
	}
	w.retries++
	l.at(l.now+wait, func() { l.stand(w) })
}

// share is the part of the requests of the second half that was refused.
func (o *outcome) share() float64 { return float64(o.refused) / float64(max(o.sent, 1)) }

// reached is what of was answered in the minutes from to to, as a part of what
// was possible.
func (o *outcome) reached(possible outcome, from, to int) float64 {
	got, most := 0, 0
	for i := from; i < to; i++ {
		got += o.minutes[i]
		most += possible.minutes[i]
	}
	return float64(got) / float64(max(most, 1))
}

const perSecond = 20.0 // what the servers of the laboratory take

var limiters = map[string]func() limiter{
	"leaky bucket":               func() limiter { return newTank(perSecond, 1) },
	"bucket of a second":         func() limiter { return newTank(perSecond, perSecond) },
	"bucket of a minute":         func() limiter { return newTank(perSecond, 60*perSecond) },
	"window of a second":         func() limiter { return &calendar{limit: perSecond, length: time.Second, phase: 300 * time.Millisecond} },
	"window of a minute":         func() limiter { return &calendar{limit: 60 * perSecond, length: time.Minute, phase: 17 * time.Second} },
	"sliding window of a second": func() limiter { return &sliding{limit: perSecond, length: time.Second} },
	"sliding window of a minute": func() limiter { return &sliding{limit: 60 * perSecond, length: time.Minute} },
	"five at a time":             func() limiter { return &seats{limit: 5} },
}

var policies = map[string]func(*policy.Policy){
	"nothing told": nil,
	"a start":      func(p *policy.Policy) { p.Limits.Learn.Start = perSecond / 2 },
	"told":         func(p *policy.Policy) { p.Limits.Rate = perSecond },
	"told twice":   func(p *policy.Policy) { p.Limits.Rate = 2 * perSecond },
}

// each runs t for all policies and seeds, and lets check see what came of it
// beside what was possible.
func each(t *testing.T, seeds uint64, tr trial, check func(what string, o, possible outcome)) {
	t.Helper()
	if raced { // nothing here is concurrent, and it takes thirty times as long
		seeds = 1
	}
	ideal := tr
	ideal.oracle = true
	possible := run(ideal, 1)
	for name, p := range policies {
		for seed := range seeds {
			tr.policy = p
			check(fmt.Sprintf("%s, seed %d", name, seed), run(tr, seed), possible)
		}
	}
}

func TestEveryKindOfLimitIsUsedAndFewAreRefused(t *testing.T) {
	for kind, of := range limiters {
		for _, wait := range []func(time.Duration) hint.Hint{nil, roundedUp} {
			for _, workers := range []int{8, 64} {
				if raced && (wait == nil || workers == 8) {
					continue
				}
				tr := trial{
					workers: workers, latency: 200 * time.Millisecond, slow429: workers == 8, length: 4 * time.Minute,
					server: func() *provider { return &provider{limiter: of(), wait: wait} },
				}
				each(t, 2, tr, func(what string, o, possible outcome) {
					if got := o.reached(possible, 2, 4); got < 0.45 || o.share() > 0.12 {
						t.Errorf("%s, hint %v, %d workers, %s: got %.2f of what is possible, %.1f %% refused",
							kind, wait != nil, workers, what, got, 100*o.share())
					}
				})
			}
		}
	}
}

// A refusal comes at once, a success after seconds: that none has come is no
// sign that the key is closed.
func TestSlowAnswersDoNotKeepAKeyClosed(t *testing.T) {
	for _, kind := range []string{"leaky bucket", "window of a second", "sliding window of a second", "bucket of a second"} {
		tr := trial{
			workers: 64, latency: 2 * time.Second, length: 6 * time.Minute,
			server: func() *provider { return &provider{limiter: limiters[kind]()} },
		}
		each(t, 3, tr, func(what string, o, possible outcome) {
			if got := o.reached(possible, 2, 6); got < 0.55 || o.idle > 3*time.Second {
				t.Errorf("%s, %s: got %.2f of what is possible, idle for %v", kind, what, got, o.idle)
			}
		})
	}
}

func TestASingleWorkerFindsTheRateToo(t *testing.T) {
	for _, kind := range []string{"leaky bucket", "window of a second", "bucket of a second"} {
		tr := trial{
			workers: 1, latency: 5 * time.Millisecond, length: 6 * time.Minute,
			server: func() *provider { return &provider{limiter: limiters[kind]()} },
		}
		each(t, 3, tr, func(what string, o, possible outcome) {
			if got := o.reached(possible, 3, 6); got < 0.6 {
				t.Errorf("%s, %s: got %.2f of what is possible", kind, what, got)
			}
		})
	}
}

func TestALimitThatIsRaisedIsFound(t *testing.T) {
	for _, kind := range []string{"bucket of a second", "window of a second"} {
		tr := trial{
			workers: 64, latency: 100 * time.Millisecond, length: 18 * time.Minute,
			server: func() *provider {
				return &provider{limiter: limiters[kind](), change: []step{{at: 6 * time.Minute, by: 2}}}
			},
		}
		possible := run(trial{workers: tr.workers, latency: tr.latency, length: tr.length, server: tr.server, oracle: true}, 1)
		for seed := range uint64(2) {
			o := run(tr, seed)
			if got := o.reached(possible, 15, 18); got < 0.8 {
				t.Errorf("%s, seed %d: got %.2f of what is possible 9 minutes after the limit was doubled", kind, seed, got)
			}
		}
	}
}

func TestAfterAnOutageTheServerIsUsedAgain(t *testing.T) {
	for _, out := range []time.Duration{3 * time.Second, 10 * time.Minute} {
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			tr := trial{
				workers: 64, latency: 200 * time.Millisecond, length: out + 5*time.Minute,
				server: func() *provider {
					return &provider{
						limiter: limiters["bucket of a second"](), wait: roundedUp,
						outages: []span{{from: 2 * time.Minute, to: 2*time.Minute + out, wait: wait}},
					}
				},
			}
			after := int(out/time.Minute) + 3
			each(t, 1, tr, func(what string, o, possible outcome) {
				if got := o.reached(possible, after, after+2); got < 0.7 || o.idle > 35*time.Second {
					t.Errorf("after %v, %s: got %.2f of what is possible, idle for %v", out, what, got, o.idle)
				}
			})
		}
	}
}

func TestWhenAnotherClientHasGoneItsHalfIsUsedAgain(t *testing.T) {
	tr := trial{
		workers: 64, latency: 200 * time.Millisecond, length: 10 * time.Minute,
		server: func() *provider {
			return &provider{
				limiter: limiters["bucket of a second"](), wait: roundedUp, headers: honest,
				other: perSecond / 2, share: span{from: 2 * time.Minute, to: 5 * time.Minute},
			}
		},
	}
	each(t, 3, tr, func(what string, o, possible outcome) {
		if got := o.reached(possible, 7, 10); got < 0.7 {
			t.Errorf("%s: got %.2f of what is possible two minutes later", what, got)
		}
	})
}

func TestAQuotaOfOneWithoutAResetIsNoWall(t *testing.T) {
	tr := trial{
		workers: 64, latency: 200 * time.Millisecond, length: 5 * time.Minute,
		server: func() *provider { return &provider{limiter: limiters["leaky bucket"](), headers: withoutReset} },
	}
	each(t, 3, tr, func(what string, o, possible outcome) {
		if got := o.reached(possible, 2, 5); got < 0.4 {
			t.Errorf("%s: got %.2f of what is possible", what, got)
		}
	})
}

func TestAServerThatPunishesKnocksIsNotKnockedAtForLong(t *testing.T) {
	tr := trial{
		workers: 64, latency: 200 * time.Millisecond, length: 6 * time.Minute,
		server: func() *provider {
			return &provider{limiter: limiters["bucket of a second"](), wait: roundedUp, penalty: time.Second}
		},
	}
	each(t, 3, tr, func(what string, o, possible outcome) {
		if got := o.reached(possible, 3, 6); got < 0.7 || o.share() > 0.02 {
			t.Errorf("%s: got %.2f of what is possible, %.1f %% refused", what, got, 100*o.share())
		}
	})
}
