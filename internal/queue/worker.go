package queue

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrStopping is the cause with which the context of a Send ends when the
// worker stops and has waited long enough.
var ErrStopping = errors.New("the worker of the queue is stopping")

// ErrLeaseLost is the cause with which the context of a Send ends when the
// call is no longer this worker's: what comes of it is not stored.
var ErrLeaseLost = errors.New("the lease of the call was lost")

// Worker claims calls that are due, hands each to Send, and stores what came
// of it. Set the fields before Start.
type Worker struct {
	Feed Feed
	// Send makes one attempt and says what came of it. It may wait for less
	// than a second; a longer wait is an Outcome. It returns soon after its
	// context ends, and then says of a call that was not begun Queued with
	// ReasonHandedBack, and of one that may have been sent what Rescue says.
	Send func(context.Context, Call) Outcome
	// Begins tells that Send calls Begin before anything of a call leaves: then
	// a write that was claimed, and not begun, is not unknown after a crash.
	Begins bool
	// Name tells this worker from others that share the store.
	Name string
	// Slots is how many calls are under way at once. 0: 64.
	Slots int
	// Share is how many of them may be of one gate: what the gate lets
	// through is sent, and the rest of a backlog waits on disk. 0: 8.
	Share int
	// Lease is how long a claim lasts unless it is renewed, which is done
	// after a sixth of it. 0: 30 s.
	Lease time.Duration
	// Poll is the longest time between two looks at the store: how late this
	// worker may notice what another process enqueued. 0: 1 s.
	Poll time.Duration
	// StopWithin is how long Stop waits for calls under way before it ends
	// their contexts. 0: 10 s.
	StopWithin time.Duration
	// Settled is told what is on disk: it may wake those who wait for a call.
	// It must not block. Nil: nobody.
	Settled func([]Settlement)
	// Failed is told that the store failed; the worker keeps what it has and
	// tries again. It must not block. Nil: nobody.
	Failed func(error)

	wake chan struct{}
	stop context.CancelFunc
	wg   sync.WaitGroup
	once sync.Once
}

func (w *Worker) init() {
	w.once.Do(func() {
		w.wake = make(chan struct{}, 1)
		w.Slots, w.Share = orInt(w.Slots, 64), orInt(w.Share, 8)
		w.Lease, w.Poll = orTime(w.Lease, 30*time.Second), orTime(w.Poll, time.Second)
		w.StopWithin = orTime(w.StopWithin, 10*time.Second)
	})
}

func orInt(n, other int) int {
	if n > 0 {
		return n
	}
	return other
}

func orTime(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}

// Start begins to work, until Stop or the end of ctx.
func (w *Worker) Start(ctx context.Context) {
	w.init()
	ctx, w.stop = context.WithCancel(ctx)
	w.wg.Go(func() { newDesk(w, ctx).run(ctx) })
}

// Stop claims nothing more, waits for the calls under way, stores what came of
// them and returns.
func (w *Worker) Stop() {
	if w.stop != nil {
		w.stop()
	}
	w.wg.Wait()
}

// Wake says that something was enqueued, or a gate opened.
func (w *Worker) Wake() {
	w.init()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// desk is what the worker's goroutine keeps in mind.
type desk struct {
	*Worker
	under   context.Context // of the calls under way
	cut     context.CancelCauseFunc
	flights map[string]flight
	landed  chan Settlement
	pending []Settlement // not yet handed to the store
	claimAt time.Time
	renewAt time.Time
	until   time.Time // when the first lease runs out by the clock of the store; zero: none is known
	retryAt time.Time // after a failure of the store
	timer   *time.Timer
	closing bool          // nothing more is claimed
	over    chan struct{} // nobody looks at landed any more

	// Claim and Settle run beside each other, so that a store may put both
	// into one commit; news brings what came of them.
	news     chan func()
	claiming bool
	settling []Settlement
	refused  bool // the store did not take the last results
}

// flight is a call under way.
type flight struct {
	Claim
	cut context.CancelCauseFunc
}

func newDesk(w *Worker, ctx context.Context) *desk {
	d := &desk{Worker: w, flights: map[string]flight{}, landed: make(chan Settlement, w.Slots), timer: time.NewTimer(0),
		over: make(chan struct{}), news: make(chan func(), 2)}
	d.under, d.cut = context.WithCancelCause(context.WithoutCancel(ctx))
	d.renewAt = time.Now().Add(w.Lease / 6)
	return d
}

func (d *desk) run(ctx context.Context) {
	defer d.timer.Stop()
	defer close(d.over)
	defer d.cut(nil)
	for ctx.Err() == nil {
		d.step()
		d.wait(ctx.Done())
	}
	d.closing = true
	d.drain()
}

// step does what is due. Nothing is claimed while the store takes no results,
// or has not renewed what is due: a claim would take back leases of calls that
// are under way here, or whose results wait here, and have them sent twice.
func (d *desk) step() {
	now := time.Now()
	if now.Before(d.retryAt) {
		return
	}
	if (!now.Before(d.renewAt) || d.lapsed(now)) && !d.renew(now) {
		return
	}
	if len(d.pending) > 0 && d.settling == nil {
		d.settle(now)
	}
	if !d.closing && !d.claiming && !d.refused && !now.Before(d.claimAt) {
		d.claim(now)
	}
}

// lapsed tells that leases have run out although it was not time to renew them.
// That time goes by the monotonic clock, and leases by the wall clock, which may
// be set forward, or go on while this machine sleeps.
func (d *desk) lapsed(now time.Time) bool {
	return !d.until.IsZero() && !now.Round(0).Before(d.until)
}

// wait sleeps until something is to be done.
func (d *desk) wait(done <-chan struct{}) {
	at := d.renewAt
	if !d.closing && !d.claiming && !d.refused && len(d.flights) < d.Slots && d.claimAt.Before(at) {
		at = d.claimAt
	}
	if at.Before(d.retryAt) || len(d.pending) > 0 && d.settling == nil {
		at = d.retryAt
	}
	d.timer.Reset(time.Until(at))
	select {
	case s := <-d.landed:
		d.land(s)
		for len(d.landed) > 0 {
			d.land(<-d.landed)
		}
	case told := <-d.news:
		told()
	case <-d.wake:
		d.claimAt = time.Time{}
	case <-d.timer.C:
	case <-done:
	}
}

// land takes a result in. A slot is free; the gate has room when the result is
// on disk.
func (d *desk) land(s Settlement) {
	f, ok := d.flights[s.ID]
	if !ok || f.Lease != s.Lease {
		return // the lease was lost
	}
	f.cut(nil)
	delete(d.flights, s.ID)
	d.pending = append(d.pending, s)
}

func (d *desk) settle(now time.Time) {
	n := portion(d.pending)
	d.settling, d.pending = d.pending[:n:n], d.pending[n:]
	d.wg.Go(func() {
		lost, err := d.Feed.Settle(context.WithoutCancel(d.under), now, d.settling)
		d.news <- func() { d.settledAs(now, lost, err) }
	})
}

// maxAnswers bounds how many bytes of answers are stored in one step: those of
// all slots may be more than a store takes, and then it would never take them.
const maxAnswers = 16 << 20

// portion tells how many settlements make a step.
func portion(all []Settlement) int {
	bytes := 0
	for i := range all {
		if a := all[i].Answer; a != nil {
			bytes += len(a.Body)
		}
		if bytes > maxAnswers && i > 0 {
			return i
		}
	}
	return len(all)
}

func (d *desk) settledAs(now time.Time, lost []string, err error) {
	settled := d.settling
	d.settling = nil
	if d.refused = err != nil; d.refused {
		d.pending = append(settled, d.pending...)
		d.fail(now, err)
		return
	}
	d.claimAt = time.Time{}
	if len(lost) > 0 {
		settled = without(settled, lost)
	}
	if d.Settled != nil {
		d.Settled(settled)
	}
}

func without(all []Settlement, lost []string) []Settlement {
	gone := map[string]bool{}
	for _, id := range lost {
		gone[id] = true
	}
	kept := all[:0]
	for _, s := range all {
		if !gone[s.ID] {
			kept = append(kept, s)
		}
	}
	return kept
}

func (d *desk) claim(now time.Time) {
	free := d.Slots - len(d.flights)
	if free <= 0 {
		return
	}
	d.claiming, d.claimAt = true, now.Add(d.Poll)
	ask := Ask{Worker: d.Name, Max: free, Share: d.Share, Lease: d.Lease, Begins: d.Begins}
	d.wg.Go(func() {
		batch, err := d.Feed.Claim(d.under, now, ask)
		d.news <- func() { d.claimed(now, batch, err) }
	})
}

func (d *desk) claimed(now time.Time, batch Batch, err error) {
	d.claiming = false
	if err != nil {
		d.fail(now, err)
		return
	}
	if at := now.Add(batch.Next.Sub(now)); !batch.Next.IsZero() && at.Before(d.claimAt) {
		d.claimAt = at // by the monotonic clock: were the wall clock set back, nobody would look for as long
	}
	for _, c := range batch.Claims {
		if d.closing {
			d.pending = append(d.pending, Settlement{c.ID, c.Lease, Outcome{State: Queued, Reason: ReasonHandedBack}})
			continue
		}
		d.send(c)
	}
}

func (d *desk) send(c Claim) {
	d.lose(c.ID) // it was taken back while this machine slept
	ctx, cut := context.WithCancelCause(d.under)
	d.flights[c.ID] = flight{c, cut}
	if until := c.Lease.Until.Round(0); d.until.IsZero() || until.Before(d.until) {
		d.until = until
	}
	if b, ok := d.Feed.(Beginner); ok && d.Begins && !c.Repeatable {
		ctx = beginning(ctx, b, c)
	}
	d.wg.Go(func() {
		select {
		case d.landed <- Settlement{c.ID, c.Lease, d.Send(ctx, c.Call)}:
		case <-d.over: // the lease was lost before
		}
	})
}

// renew makes the leases last of what is under way, and of what came of it that
// waits to be stored, and tells whether that succeeded. If not, it is the first
// thing to be tried again.
func (d *desk) renew(now time.Time) bool {
	d.renewAt = now.Add(d.Lease / 6)
	if len(d.flights)+len(d.pending) == 0 {
		d.until = time.Time{}
		return true
	}
	claims := make([]Claim, 0, len(d.flights)+len(d.pending))
	for _, f := range d.flights {
		claims = append(claims, f.Claim)
	}
	for _, s := range d.pending {
		claims = append(claims, Claim{Call{Facts: Facts{ID: s.ID}}, s.Lease})
	}
	lost, err := d.Feed.Renew(context.WithoutCancel(d.under), now.Add(d.Lease), claims)
	if err != nil {
		d.renewAt = now
		d.fail(now, err)
		return false
	}
	d.until = now.Add(d.Lease).Round(0)
	for _, id := range lost {
		d.lose(id)
	}
	return true
}

// lose ends the sending of a call that is no longer this worker's.
func (d *desk) lose(id string) {
	if f, ok := d.flights[id]; ok {
		f.cut(ErrLeaseLost)
		delete(d.flights, id)
	}
}

// pause is how long the worker leaves a store alone that has failed.
const pause = time.Second

func (d *desk) fail(now time.Time, err error) {
	d.retryAt = now.Add(pause)
	if d.Failed != nil {
		d.Failed(err)
	}
}

// drain waits for what is under way, and then ends it.
func (d *desk) drain() {
	limit := time.AfterFunc(d.StopWithin, func() { d.cut(ErrStopping) })
	defer limit.Stop()
	for len(d.flights) > 0 || d.claiming || d.settling != nil {
		d.step()
		d.wait(nil)
	}
	for failed := 0; failed < 3 && len(d.pending) > 0; { // a store that fails now gives its leases back at the next start
		before := len(d.pending)
		d.retryAt = time.Time{}
		d.step()
		for d.settling != nil {
			d.wait(nil)
			d.step()
		}
		if len(d.pending) == before {
			failed++
		}
	}
}
