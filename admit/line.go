package admit

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/policy"
)

// Line orders the callers of one quota key in this process: the higher
// priority first, then tenants in turn, then the older call. Only the ticket
// at the front asks the Keeper; the others sleep until they are woken, so that
// a thousand waiters cost one timer.
type Line struct {
	keeper Keeper
	p      *policy.Policy
	plain  bool // nothing but the keeper decides while nobody waits
	// busy is set before the keeper is asked on behalf of somebody who may
	// have to wait. Whoever changes the state of the keeper looks at it
	// afterwards, so that no wake is lost, and needs no lock while it is clear.
	busy atomic.Bool

	mu      sync.Mutex
	rng     *rand.Rand
	queues  []queue // one for requests without a path group, then one per group
	waiting int     // in all queues
	resting map[*Ticket]struct{}
	closed  Answer // the last answer that held for everyone
	virtual float64
	tenants map[string]*tenant
	asked   uint64 // tickets so far
	begun   time.Time
}

type queue struct {
	tickets
	blocked bool // its path group is full; a Release clears it
}

// tenant is what fairness knows of one tenant.
type tenant struct {
	tag      float64 // of its last ticket
	waiting  int
	inFlight int // counted only where TenantShare bounds it
}

// Ticket is one call in the line. A call keeps its ticket for all its
// attempts, and with it its place by age.
type Ticket struct {
	Priority int // 0 to 9, 9 first
	Tenant   string
	Group    int // index into policy.Limits.Groups, or -1
	First    bool
	Attempt  int       // the number of the one it asks for; only Waiting tells it
	Deadline time.Time // zero: none
	Info     any       // whatever Waiting should bring back

	*place // nil until it has had to wait
	tag    float64
	age    uint64 // order of the first asking, among those with the same tag
	rests  bool
	spread bool // its stagger has been drawn
}

// place is what a ticket needs once it has to wait.
type place struct {
	wake   chan struct{}
	since  time.Time
	until  time.Time
	source policy.WaitSource
	index  int // in its queue, from 1; 0: not there
	queue  int
	shut   Answer // of the breaker that ended its rest; zero: none did
}

func (t *Ticket) needPlace() {
	if t.place == nil {
		t.place = &place{wake: make(chan struct{}, 1)}
	}
}

// Stood tells whether t has ever had to wait, so that Waiting may have told it.
func (t *Ticket) Stood() bool { return t.place != nil }

// queued tells whether t stands in a queue.
func (t *Ticket) queued() bool { return t.place != nil && t.index != 0 }

// Wake is signalled when the ticket should ask again before its instant.
func (t *Ticket) Wake() <-chan struct{} {
	if t.place == nil {
		return nil
	}
	return t.wake
}

// NewLine returns the line in front of keeper. rng seeds the stagger.
func NewLine(keeper Keeper, p *policy.Policy, rng *rand.Rand) *Line {
	return &Line{
		keeper: keeper, p: p, rng: rng, queues: make([]queue, 1+len(p.Limits.Groups)),
		plain: p.Limits.Stagger == 0 && p.Limits.TenantShare >= 1,
	}
}

// Ask wants to send the next attempt of t now. With Wait, t has a place in the
// line: ask again at the instant, or when woken, or Leave. An Answer without
// an instant comes before anything is known; Deadline is the caller's to watch.
func (l *Line) Ask(now time.Time, t *Ticket) Answer {
	if l.plain && !l.busy.Load() && !t.rests {
		if a := l.keeper.Admit(now, Ask{Group: t.Group, First: t.First}); a.Kind == Go {
			return a
		}
	}
	l.mu.Lock()
	defer l.unlock()
	l.busy.Store(true)
	if t.age == 0 {
		l.asked++
		t.age = l.asked
	}
	if t.rests {
		delete(l.resting, t)
		t.rests = false
	}
	if at := l.stagger(now, t); now.Before(at) {
		a := Answer{At: at, Source: policy.WaitPace}
		l.rest(now, t, a)
		return a
	}
	if l.waiting > 0 || l.p.Limits.TenantShare < 1 {
		if front := l.front(); front != nil && (!t.queued() && !l.sooner(t, front) || t.queued() && front != t) {
			return l.stand(now, t)
		}
	}
	a := l.keeper.Admit(now, Ask{Group: t.Group, First: t.First, Waiting: l.others(t)})
	switch a.Kind {
	case Go:
		l.leave(t)
		l.serve(t)
	case No:
		l.leave(t)
		l.forget(t.Tenant)
	case Wait:
		l.enter(now, t, a)
		if a.Everyone {
			l.closed = a
		} else if a.Source == policy.WaitConcurrency {
			l.queues[t.queue].blocked = true
		}
	}
	l.wakeFront(t)
	return a
}

// stand keeps t in the line behind others. What is known to hold for everyone
// is told, so that a call whose deadline lies before it need not wait.
func (l *Line) stand(now time.Time, t *Ticket) Answer {
	a := Answer{Source: policy.WaitPace}
	if front := l.front(); front != nil && front.source != "" {
		a.Source = front.source
	}
	if l.closed.At.After(now) {
		a.At, a.Source, a.Everyone, a.Breaker = l.closed.At, l.closed.Source, true, l.closed.Breaker
	}
	l.enter(now, t, a)
	return a
}

func (l *Line) others(t *Ticket) int {
	if t.queued() {
		return l.waiting - 1
	}
	return l.waiting
}

// stagger draws, once per call, when the first attempt of a call leaves that
// comes within the window after start-up.
func (l *Line) stagger(now time.Time, t *Ticket) time.Time {
	if l.begun.IsZero() {
		l.begun = now
	}
	w := l.p.Limits.Stagger
	if w <= 0 || !t.First || t.spread {
		return now
	}
	t.spread = true
	if rest := l.begun.Add(w).Sub(now); rest > 0 {
		return now.Add(time.Duration(l.rng.Float64() * float64(rest)))
	}
	return now
}

// enter puts t into its queue, or renews what it waits for.
func (l *Line) enter(now time.Time, t *Ticket, a Answer) {
	t.needPlace()
	if t.since.IsZero() || t.source != a.Source {
		t.since = now
	}
	t.until, t.source = a.At, a.Source
	if t.queued() {
		return
	}
	l.tag(t)
	t.queue = t.Group + 1
	heap.Push(&l.queues[t.queue], t)
	l.waiting++
	l.tenant(t.Tenant).waiting++
}

// tag gives t its place among the tenants: start-time fair queueing with
// equal weights (Goyal, Vin and Cheng 1996).
func (l *Line) tag(t *Ticket) {
	if t.tag != 0 {
		return
	}
	if !t.First { // a call that has been served comes before those that have not
		t.tag = l.virtual + 1e-9
		return
	}
	who := l.tenant(t.Tenant)
	who.tag = max(l.virtual, who.tag) + 1
	t.tag = who.tag
}

func (l *Line) tenant(name string) *tenant {
	who := l.tenants[name]
	if who == nil {
		if l.tenants == nil {
			l.tenants = map[string]*tenant{}
		}
		who = &tenant{}
		l.tenants[name] = who
	}
	return who
}

// leave takes t out of its queue.
func (l *Line) leave(t *Ticket) {
	if !t.queued() {
		return
	}
	heap.Remove(&l.queues[t.queue], t.index-1)
	l.waiting--
	t.since, t.until, t.source = time.Time{}, time.Time{}, ""
	if l.waiting == 0 {
		l.closed = Answer{}
	}
	l.tenant(t.Tenant).waiting--
	l.forget(t.Tenant)
}

// forget drops a tenant that has nothing in the line or on its way, so that
// memory is bounded, and so that tickets that were given up count for nothing.
func (l *Line) forget(name string) {
	if who := l.tenants[name]; who != nil && who.waiting == 0 && who.inFlight == 0 {
		delete(l.tenants, name)
	}
}

// serve notes that t is sent.
func (l *Line) serve(t *Ticket) {
	l.virtual = max(l.virtual, t.tag)
	if l.p.Limits.TenantShare < 1 {
		l.tenant(t.Tenant).inFlight++
	}
	l.forget(t.Tenant)
}

// Leave gives the place of t up.
func (l *Line) Leave(t *Ticket) {
	l.mu.Lock()
	defer l.unlock()
	if t.rests {
		delete(l.resting, t)
		t.rests = false
	}
	l.leave(t)
	l.wakeFront(nil)
}

// Rest notes that t waits for something of its own, not in the line, until it
// asks again.
func (l *Line) Rest(now time.Time, t *Ticket, until time.Time, source policy.WaitSource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest(now, t, Answer{At: until, Source: source})
}

// Shut tells whether a breaker that lets calls fail has opened while t rested,
// and when asking again makes sense.
func (l *Line) Shut(t *Ticket) (a Answer, shut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.place == nil || t.shut.Breaker == Closed {
		return Answer{}, false
	}
	a, t.shut = t.shut, Answer{}
	return a, true
}

func (l *Line) rest(now time.Time, t *Ticket, a Answer) {
	if l.resting == nil {
		l.resting = map[*Ticket]struct{}{}
	}
	t.needPlace()
	t.since, t.until, t.source, t.rests = now, a.At, a.Source, true
	l.resting[t] = struct{}{}
}

// unlock leaves the line as busy as it is.
func (l *Line) unlock() {
	l.busy.Store(l.waiting > 0 || !l.closed.At.IsZero() || len(l.resting) > 0)
	l.mu.Unlock()
}

// Quiet tells that nobody waits.
func (l *Line) Quiet() bool { return !l.busy.Load() }

// Observe passes r to the Keeper. Waiters whose deadline lies before the
// instant at which the key opens are woken, so that they can end at once.
func (l *Line) Observe(now time.Time, r Result) Told {
	told := l.keeper.Observe(now, r)
	if told.Until.IsZero() && !l.busy.Load() {
		return told
	}
	l.mu.Lock()
	defer l.unlock()
	if told.Until.After(now) {
		l.closed = Answer{At: told.Until, Source: told.Source, Everyone: true, Breaker: told.Breaker}
		l.wakeHopeless(told.Until)
	} else {
		l.closed = Answer{}
	}
	l.wakeFront(nil)
	return told
}

func (l *Line) wakeHopeless(until time.Time) {
	failFast := l.closed.Breaker != Closed && l.p.Breaker.OnOpen == policy.OnOpenFail
	for t := range l.resting {
		if failFast {
			t.shut = l.closed
			t.poke()
		}
	}
	for i := range l.queues {
		for _, t := range l.queues[i].tickets {
			if failFast || !t.Deadline.IsZero() && t.Deadline.Before(until) {
				t.poke()
			}
		}
	}
}

// Release passes p to the Keeper and lets the next one ask.
func (l *Line) Release(now time.Time, p Pass, t *Ticket) {
	l.keeper.Release(now, p)
	if l.plain && !l.busy.Load() {
		return
	}
	l.mu.Lock()
	defer l.unlock()
	if l.p.Limits.TenantShare < 1 {
		if who := l.tenants[t.Tenant]; who != nil {
			who.inFlight--
			l.forget(t.Tenant)
		}
	}
	l.queues[p.Group+1].blocked = false
	l.wakeFront(nil)
}

// front is the ticket whose turn it is: the first of the queues whose path
// group is not full.
func (l *Line) front() *Ticket {
	var best *Ticket
	for i := range l.queues {
		q := &l.queues[i]
		if len(q.tickets) == 0 || q.blocked {
			continue
		}
		if t := l.pick(q); best == nil || l.sooner(t, best) {
			best = t
		}
	}
	return best
}

// pick is the first ticket of q, passing over tenants that hold more than
// their share while another tenant waits.
func (l *Line) pick(q *queue) *Ticket {
	best := q.tickets[0]
	if !l.overShare(best) {
		return best
	}
	for _, t := range q.tickets {
		if l.sooner(t, best) {
			best = t
		}
	}
	return best
}

// sooner tells whether it is the turn of a rather than of b.
func (l *Line) sooner(a, b *Ticket) bool {
	if over := l.overShare(a); over != l.overShare(b) {
		return !over
	}
	return l.before(a, b)
}

func (l *Line) overShare(t *Ticket) bool {
	limits := &l.p.Limits
	if limits.TenantShare >= 1 || limits.Concurrency <= 0 {
		return false
	}
	who := l.tenants[t.Tenant]
	return who != nil && float64(who.inFlight+1) > limits.TenantShare*float64(limits.Concurrency)
}

// before tells whether a goes before b. A ticket that has no tag yet is judged
// by the one it would get.
func (l *Line) before(a, b *Ticket) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	l.tag(a)
	l.tag(b)
	return a.tag < b.tag || a.tag == b.tag && a.age < b.age
}

// wakeFront lets the front ask; asker is awake already.
func (l *Line) wakeFront(asker *Ticket) {
	if l.waiting == 0 {
		return
	}
	if t := l.front(); t != nil && t != asker {
		t.poke()
	}
}

func (t *Ticket) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Waiting is one ticket that waits.
type Waiting struct {
	Ticket  *Ticket // its Info, Tenant and Priority may be read
	Attempt int
	For     policy.WaitSource
	Since   time.Time
	Until   time.Time // zero: not known
	Ahead   int
}

// Waiting lists who waits, in order.
func (l *Line) Waiting() []Waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var queued []*Ticket
	for i := range l.queues {
		queued = append(queued, l.queues[i].tickets...)
	}
	slices.SortFunc(queued, func(a, b *Ticket) int {
		if l.before(a, b) {
			return -1
		}
		return 1
	})
	list := make([]Waiting, 0, len(queued)+len(l.resting))
	for i, t := range queued {
		list = append(list, Waiting{t, t.Attempt, t.source, t.since, t.until, i})
	}
	for t := range l.resting {
		list = append(list, Waiting{t, t.Attempt, t.source, t.since, t.until, 0})
	}
	return list
}
