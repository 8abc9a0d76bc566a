package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
)

// What an endpoint must show over a window to be well again.
const (
	wellWindow    = time.Minute
	wellAttempts  = 10
	wellThrottled = 0.01 // at most this share of 429
	wellRemaining = 0.3  // at least this share of the quota, where it is told
)

// unlimited stands for the concurrency of an endpoint that has no limit, of
// which a recovery takes a quarter.
const unlimited = 16

// drainTime is how long a recovery waits for the calls in flight.
const drainTime = 30 * time.Second

// recoveries are the endpoints that are being brought back to normal.
type recoveries struct {
	any    atomic.Bool // for events, which rarely meet one
	mu     sync.Mutex
	m      map[string]*recovery
	window time.Duration // 0: wellWindow
	// changed is when something was last done about each here: what the queue
	// said before is no news.
	changed map[string]time.Time
}

// recovery is one of them. What it sees is kept by the second.
type recovery struct {
	phase   string
	since   time.Time // of the phase
	unit    *unit     // with less of everything
	joined  bool      // another gateway began it, or this one before a restart
	before  gateway.Hold
	left    chan struct{} // closed when its endpoint is gone
	policy  policy.Policy
	problem string
	seconds []second // of the window, oldest first
	quota   float64  // share left, as last told
	told    bool
}

// second is what was seen in one second.
type second struct {
	at                  int64
	attempts, throttled int
}

const (
	phaseDraining = "draining"
	phaseSlow     = "slow"
)

func (rs *recoveries) span() time.Duration {
	if rs.window > 0 {
		return rs.window
	}
	return wellWindow
}

// see is told every step of every call.
func (rs *recoveries) see(e *heed.Event) {
	if !rs.any.Load() || e.Kind != heed.AttemptDone {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.m[e.Endpoint]; r != nil && r.phase == phaseSlow {
		r.note(e)
	}
}

func (r *recovery) note(e *heed.Event) {
	at := e.Time.Unix()
	if n := len(r.seconds); n == 0 || r.seconds[n-1].at < at {
		r.seconds = append(r.seconds, second{at: at})
	}
	s := &r.seconds[len(r.seconds)-1]
	s.attempts++
	if e.Class == classify.Throttled {
		s.throttled++
	}
	if e.HasRemain && e.HasLimit && e.Limit > 0 {
		r.quota, r.told = float64(e.Remaining)/float64(e.Limit), true
	}
}

// sum forgets what is older than the window and adds up the rest.
func (r *recovery) sum(now time.Time, window time.Duration) (attempts, throttled int) {
	edge := now.Add(-window).Unix()
	for len(r.seconds) > 0 && r.seconds[0].at < edge {
		r.seconds = r.seconds[1:]
	}
	for _, s := range r.seconds {
		attempts += s.attempts
		throttled += s.throttled
	}
	return attempts, throttled
}

// well tells whether the endpoint has been well for a whole window.
func (r *recovery) well(now time.Time, window time.Duration) bool {
	attempts, throttled := r.sum(now, window)
	return r.phase == phaseSlow && now.Sub(r.since) >= window && attempts >= wellAttempts &&
		float64(throttled) < wellThrottled*float64(attempts) && (!r.told || r.quota > wellRemaining)
}

// reloaded has the recoveries go on with what a new configuration made of their
// endpoints, which is slowed down as before. Those whose endpoints are gone are
// returned.
func (rs *recoveries) reloaded(units map[string]*unit) map[string]*recovery {
	gone := map[string]*recovery{}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for name, r := range rs.m {
		switch u := units[name]; {
		case u == nil:
			rs.note(name)
			delete(rs.m, name)
			close(r.left)
			gone[name] = r
		case u != r.unit:
			r.unit, r.policy = u, u.transport.Policy
		}
	}
	rs.any.Store(len(rs.m) > 0)
	return gone
}

// abandon lets go of endpoints that are gone while they recovered: one that gets
// the name later is another one, and is as it is configured. Other gateways that
// share the queue may still have it, and go on.
func (a *App) abandon(gone map[string]*recovery) {
	for name, r := range gone {
		alone := a.queue == nil || !a.queue.shared
		if r.phase == phaseDraining && (alone || !r.joined) {
			a.gateway.Hold(name, r.before)
			a.queue.hold(name, r.before)
		}
		switch {
		case alone:
			a.queue.phase(name, "", time.Time{})
		case r.phase == phaseDraining && !r.joined:
			a.queue.phase(name, phaseSlow, time.Now())
		}
	}
}

// Recovery implements gateway.Roads.
func (a *App) Recovery(name string) gateway.Recovery {
	rs := &a.healing
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.m[name]
	if r == nil {
		return gateway.Recovery{Phase: "normal"}
	}
	out := gateway.Recovery{
		Phase: r.phase, Since: r.since.UTC(), Base: r.policy.Backoff.Base.Seconds(), Concurrency: r.policy.Limits.Concurrency,
		Window: rs.span().Seconds(), Enough: wellAttempts, Most: wellThrottled, Least: wellRemaining, Problem: r.problem,
	}
	attempts, throttled := r.sum(time.Now(), rs.span())
	if out.Attempts = attempts; attempts > 0 {
		out.Throttled = float64(throttled) / float64(attempts)
	}
	if r.told {
		quota := r.quota
		out.Remaining = &quota
	}
	return out
}

// Renew implements gateway.Roads.
func (a *App) Renew(ctx context.Context, name string) error {
	change := func(*policy.Policy) {}
	if a.healing.slows(name) {
		change = slower
	}
	u, _, err := a.renew(name, change)
	if err == nil {
		a.healing.renewed(name, u)
	}
	return err
}

// renew puts a new unit in the place of that of an endpoint, with a policy that
// is changed; the channel is closed when the calls on the old one have ended.
func (a *App) renew(name string, change func(*policy.Policy)) (*unit, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == stopped {
		return nil, nil, errors.New("heed is stopping")
	}
	var e *config.Endpoint
	for i := range a.cfg.Endpoints {
		if a.cfg.Endpoints[i].Name == name {
			e = &a.cfg.Endpoints[i]
		}
	}
	if e == nil {
		return nil, nil, fmt.Errorf("there is no endpoint %q", name)
	}
	changed := *e
	change(&changed.Policy)
	u, err := a.maker(a.cfg).unit(&changed, nil)
	if err != nil {
		return nil, nil, err
	}
	u.spec.Endpoint = plain(*e) // a reload that changes nothing keeps it
	old := a.units
	a.units = maps.Clone(old)
	a.units[name] = u
	settings, units, err := a.settings(a.cfg, a.units)
	if err != nil {
		a.units = old
		u.close()
		return nil, nil, err
	}
	a.units = units
	drained := a.gateway.Swap(settings)
	a.releaseAfter(drained, old, units)
	return u, drained, nil
}

// slower is the policy of a recovery: a larger base, and a quarter of the
// concurrency.
func slower(p *policy.Policy) {
	full := p.WithDefaults()
	p.Backoff.Base = 2 * full.Backoff.Base
	p.Backoff.Cap = max(full.Backoff.Cap, p.Backoff.Base)
	most := full.Limits.Concurrency
	if most == 0 {
		most = unlimited
	}
	p.Limits.Concurrency = max(most/4, 1)
}

// Recover implements gateway.Roads: nothing is sent until the calls in flight
// have ended, what was learned is forgotten, a new credential fetched, and the
// endpoint goes on slowly until it has been well for a while.
func (a *App) Recover(ctx context.Context, name string) error {
	before, _ := a.gateway.Held(name)
	r := &recovery{phase: phaseDraining, since: time.Now(), before: before, left: make(chan struct{})}
	if !a.healing.enter(name, r) {
		return fmt.Errorf("endpoint %s: %w", name, gateway.ErrRecovering)
	}
	during := gateway.Hold{Mode: gateway.Recovering, Since: r.since.UTC(), Until: r.since.Add(drainTime + drainSlack)}
	a.gateway.Hold(name, during)
	u, drained, err := a.renew(name, slower)
	if err != nil {
		a.healing.end(name, r)
		a.gateway.Hold(name, before)
		return err
	}
	a.healing.runs(r, u)
	a.queue.hold(name, during)
	a.queue.phase(name, phaseDraining, r.since)
	a.tasks.Go(func() { a.heal(name, r, drained) })
	return nil
}

// renewed notes the unit that an operator put in the place of one.
func (rs *recoveries) renewed(name string, u *unit) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.m[name]; r != nil {
		r.unit, r.policy = u, u.transport.Policy
	}
}

// end forgets a recovery, and tells whether it still was the current one.
func (rs *recoveries) end(name string, r *recovery) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	current := rs.m[name] == r
	if current {
		rs.note(name)
		delete(rs.m, name)
	}
	rs.any.Store(len(rs.m) > 0)
	return current
}

// heal carries a recovery to its end.
func (a *App) heal(name string, r *recovery, drained <-chan struct{}) {
	patience := time.NewTimer(drainTime)
	defer patience.Stop()
	select {
	case <-drained:
	case <-patience.C:
	case <-r.left:
		return
	case <-a.life.Done():
		return
	}
	if !a.begin(name, r) {
		return
	}
	tick := time.NewTicker(a.healing.span() / 60)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			switch done, left := a.healing.look(name, r, now); {
			case left:
				return
			case done:
				if a.normal(name, r) {
					a.queue.phase(name, "", time.Time{})
				}
				return
			}
		case <-a.life.Done():
			return
		}
	}
}

// begin starts the slow phase, with a credential that nobody had before. It is
// false where the recovery was ended in the meantime.
func (a *App) begin(name string, r *recovery) bool {
	problem := ""
	if src := r.unit.transport.Token; src != nil {
		ctx, done := context.WithTimeout(a.life, 10*time.Second)
		defer done()
		if _, err := src.Current(ctx); err != nil {
			problem = "no new credential could be had yet: " + mask.Error(err)
		}
	}
	a.mu.Lock() // no reload in the middle of it, which may take the endpoint away
	defer a.mu.Unlock()
	if !a.healing.slow(name, r, problem) {
		return false
	}
	a.observe.Logger().Info("endpoint recovers", slog.String("endpoint", name), slog.String("phase", phaseSlow), slog.String("problem", problem))
	if !r.joined { // else the one that began it does so
		a.gateway.Hold(name, r.before)
		a.queue.hold(name, r.before)
		a.queue.phase(name, phaseSlow, r.since)
		a.queue.reopenFor(name)
	}
	return true
}

// slow notes that a recovery is in its slow phase, if it still is the current one.
func (rs *recoveries) slow(name string, r *recovery, problem string) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	current := rs.m[name] == r
	if current {
		r.phase, r.since, r.problem = phaseSlow, time.Now(), problem
	}
	return current
}

// look tells whether the endpoint is well, or its recovery was ended by others.
func (rs *recoveries) look(name string, r *recovery, now time.Time) (done, left bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return r.well(now, rs.span()), rs.m[name] != r
}

// normal ends a recovery, if it is still the current one: the endpoint has what
// it is configured with. Where its limit is learned, the learning goes on from
// what it just bore.
func (a *App) normal(name string, r *recovery) bool {
	rs := &a.healing
	rs.mu.Lock()
	attempts, _ := r.sum(time.Now(), rs.span())
	rate := float64(attempts) / rs.span().Seconds()
	rs.mu.Unlock()
	if !rs.end(name, r) {
		return false
	}
	_, _, err := a.renew(name, func(p *policy.Policy) {
		if l := &p.Limits; l.Rate == 0 && !l.Learn.Off && l.Learn.Start == 0 {
			l.Learn.Start = max(rate, 1)
		}
	})
	if err != nil {
		a.observe.Logger().Error("endpoint not brought back to normal", slog.String("endpoint", name), slog.String("error", mask.Error(err)),
			slog.String("advice", "reload the configuration, or restart heed"))
		return true
	}
	a.observe.Logger().Info("endpoint recovered", slog.String("endpoint", name), slog.String("phase", "normal"))
	return true
}

// reopenFor opens the gates of an endpoint in the queue again.
func (k *keeper) reopenFor(name string) {
	if k == nil {
		return
	}
	if err := k.open(name, true); err != nil {
		k.failed(err)
	}
}
