package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
)

// A recovery is written down in the queue, where there is one: the gateways that
// share it join, and after a restart it goes on. Each of them begins slowly by
// itself; the first that finds the endpoint well ends it for all.

// drainSlack is how much longer than its draining the hold of a recovery may
// last, for when the process ends in the middle of it.
const drainSlack = 10 * time.Second

// hold says in the queue how an endpoint is held back.
func (k *keeper) hold(name string, h gateway.Hold) {
	if k == nil {
		return
	}
	now := time.Now()
	if err := k.store.SetGate(context.Background(), now, h.Closing(name, now)); err != nil {
		k.failed(err)
	}
	k.worker.Wake()
}

// phase says in the queue where the recovery of an endpoint is. Empty: it is
// over.
func (k *keeper) phase(name, phase string, since time.Time) {
	if k == nil {
		return
	}
	change := queue.GateChange{Endpoint: name, Key: gateway.RecoveryGate, Closed: &since, Source: phase}
	if err := k.store.SetGate(context.Background(), time.Now(), change); err != nil {
		k.failed(err)
	}
}

// follow takes up what the queue says of recoveries, as it was at an instant.
func (rs *recoveries) follow(a *App, gates []queue.Gate, at time.Time) {
	for i := range gates {
		g := &gates[i]
		if g.Key != gateway.RecoveryGate || !a.serves(g.Endpoint) {
			continue
		}
		rs.mu.Lock()
		r, older := rs.m[g.Endpoint], !rs.changed[g.Endpoint].Before(at)
		rs.mu.Unlock()
		switch {
		case older: // than what was done here
		case g.Source == "" && r != nil:
			a.normal(g.Endpoint, r)
		case g.Source != "" && r == nil:
			a.join(g.Endpoint, g.Source, g.Closed)
		}
	}
}

// serves tells whether there is an endpoint of that name.
func (a *App) serves(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.units[name] != nil
}

// join takes part in a recovery that was begun by another gateway, or by this
// one before it was started again.
func (a *App) join(name, phase string, since time.Time) {
	r := &recovery{phase: phaseDraining, since: time.Now(), joined: true, left: make(chan struct{})}
	if !a.healing.enter(name, r) {
		return
	}
	u, drained, err := a.renew(name, slower)
	if err != nil {
		a.healing.end(name, r)
		a.observe.Logger().Error("endpoint not slowed down", slog.String("endpoint", name), slog.String("error", mask.Error(err)),
			slog.String("advice", "it is being recovered, and this gateway goes on as before: heed recover "+name+" here too"))
		return
	}
	a.healing.runs(r, u)
	if phase == phaseDraining && time.Since(since) > drainTime+drainSlack { // whoever began it is gone
		a.queue.phase(name, phaseSlow, time.Now())
	}
	a.tasks.Go(func() { a.heal(name, r, drained) })
}

// enter begins a recovery, unless there is one.
func (rs *recoveries) enter(name string, r *recovery) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.m[name] != nil {
		return false
	}
	rs.note(name)
	rs.m[name] = r
	rs.any.Store(true)
	return true
}

// note keeps when something was last done here about the recovery of an endpoint.
func (rs *recoveries) note(name string) {
	if rs.m == nil {
		rs.m, rs.changed = map[string]*recovery{}, map[string]time.Time{}
	}
	rs.changed[name] = time.Now()
}

// runs notes the unit that a recovery is carried out on.
func (rs *recoveries) runs(r *recovery, u *unit) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.unit, r.policy = u, u.transport.Policy
}

// slows tells whether an endpoint has less of everything now.
func (rs *recoveries) slows(name string) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.m[name] != nil
}
