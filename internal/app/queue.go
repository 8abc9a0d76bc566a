package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/internal/observe"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
)

// keeper is the queue of a process: its store, and the worker that sends what
// is in it. The nil keeper is none.
type keeper struct {
	store  queue.Store
	worker *queue.Worker
	bell   queue.Bell
	shown  *gateway.Later
	log    *slog.Logger
	called *heed.Transport // of callbacks; nil: there are none

	tasks  sync.WaitGroup
	quit   chan struct{}
	ending chan struct{} // closed before quit, while the worker finishes
	end    sync.Once
	opens  chan string

	trouble trouble
	reserve *queue.Reserve // nil: the disk of the queue is another machine's
	most    int            // calls
	shared  bool           // other gateways have the store too
}

// openQueue opens the queue of cfg. The demo does without if it cannot have
// one: that somebody runs it twice is no reason not to show it.
func (a *App) openQueue(cfg *config.Config) (*keeper, error) {
	if cfg.Queue == nil {
		return nil, nil
	}
	k, err := a.keeper(cfg)
	if err != nil && cfg.File == "" {
		a.noQueue = err
		a.observe.Logger().Warn("the demo has no queue", slog.String("error", mask.Error(err)))
		return nil, nil
	}
	return k, err
}

// NoQueue is why the demo has no queue; nil: it has one.
func (a *App) NoQueue() error { return a.noQueue }

func (a *App) keeper(cfg *config.Config) (*keeper, error) {
	st := storage{cfg, a.opts, a.observe.Logger()}
	store, _, err := st.open(context.Background())
	if err != nil {
		return nil, err
	}
	return a.keep(cfg, store, st.reserve())
}

// keep is the keeper of an open store.
func (a *App) keep(cfg *config.Config, store queue.Store, reserve *queue.Reserve) (*keeper, error) {
	q := cfg.Queue
	k := &keeper{log: a.observe.Logger(), quit: make(chan struct{}), ending: make(chan struct{}), opens: make(chan string, 64),
		store: store, reserve: reserve, most: q.Max.Calls, shared: q.Store == config.QueuePostgres}
	k.trouble.log = k.log
	k.shown = &gateway.Later{
		Store: k.store, Bell: &k.bell, Body: q.Max.Body, Answer: q.Max.Answer, Window: q.Window,
		Wake: func() { k.worker.Wake() }, Ending: k.ending, Shared: k.shared, Reserve: reserve,
		Taken: k.trouble.taken, Trouble: k.trouble.words,
	}
	var err error
	k.worker = &queue.Worker{
		Begins: true, Feed: k.store, Name: workerName(), Slots: q.Workers, Share: max(1, q.Workers/2), Lease: q.Lease, StopWithin: a.opts.Grace,
		Send:    func(ctx context.Context, c queue.Call) queue.Outcome { return a.gateway.Send(ctx, c) },
		Settled: k.settled, Failed: k.failed,
	}
	if len(q.Callbacks.Hosts) > 0 {
		if k.shown.Callbacks, err = a.callbacks(cfg); err != nil {
			return nil, errors.Join(err, k.store.Close())
		}
		k.shown.Callbacks.Slots = k.worker.Share // they are one endpoint, whoever receives them
		k.called = k.shown.Callbacks.Transport
	}
	if err := a.observe.Queue(k.numbers); err != nil {
		return nil, errors.Join(err, k.store.Close())
	}
	return k, nil
}

// numbers is the queue for the metrics.
func (k *keeper) numbers() (n observe.QueueNumbers, err error) {
	for i, calls := range k.trouble.counts() {
		n.Refused = append(n.Refused, observe.QueueRefusal{Reason: troubles[i].reason, Calls: calls})
	}
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	counts, err := k.store.Counts(ctx)
	if err != nil {
		return n, err
	}
	gates, err := k.store.Gates(ctx)
	if err != nil {
		return n, err
	}
	for _, c := range counts {
		if gateway.Watchman(c.Endpoint, c.State) {
			continue
		}
		n.Counts = append(n.Counts, observe.QueueCount{Endpoint: c.Endpoint, State: c.State.String(), Reason: c.Reason, Calls: c.N})
	}
	now := time.Now()
	for _, g := range gates {
		if gateway.Internal(&g) {
			continue
		}
		n.Gates = append(n.Gates, observe.QueueGate{Endpoint: g.Endpoint, Gate: g.Key, Due: g.Due, Closed: g.Paused || g.Closed.After(now)})
	}
	return n, nil
}

// workerName tells this process from others that share a store.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "heed"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// callbacks makes the road of callbacks, with the guard that all roads have.
func (a *App) callbacks(cfg *config.Config) (*gateway.Callbacks, error) {
	c, m := &cfg.Queue.Callbacks, a.maker(cfg)
	secret, err := m.secret("queue.callbacks.secret", c.Secret)
	if err != nil {
		return nil, err
	}
	p := gateway.CallbackPolicy()
	base := a.base(&config.Endpoint{Name: p.Endpoint, Policy: p, Networks: append([]netip.Prefix(nil), c.Networks...)})
	return &gateway.Callbacks{
		Hosts: c.Hosts, Secret: secret,
		Transport: &heed.Transport{Base: base, Policy: p, Classifier: gateway.CallbackRules(), Observe: a.observe.Observe},
	}, nil
}

// later is the queue as the gateway sees it.
func (k *keeper) later() *gateway.Later {
	if k == nil {
		return nil
	}
	return k.shown
}

// start lets the worker work.
func (k *keeper) start(a *App) {
	if k == nil {
		return
	}
	a.follow(time.Now())
	k.worker.Start(context.Background())
	k.tasks.Go(func() { k.sweep(a.gateway) })
	k.tasks.Go(k.reopen)
	if k.shared {
		k.tasks.Go(a.followOn)
	}
}

// followEvery is how late a gateway knows what an operator did on another one.
const followEvery = time.Second

// followOn follows the gates of a queue that other gateways have too.
func (a *App) followOn() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			a.follow(now)
		case <-a.queue.quit:
			return
		}
	}
}

// follow takes up what the queue says of the endpoints: which of them an
// operator holds back, and which are being recovered.
func (a *App) follow(at time.Time) {
	gates, err := a.queue.store.Gates(context.Background())
	if err != nil {
		a.queue.failed(err)
		return
	}
	a.gateway.Follow(gates, at)
	a.healing.follow(a, gates, at)
}

// limit tells the store how many calls of an endpoint may run at once, in all
// processes that share it.
func (k *keeper) limit(cfg *config.Config) {
	if k == nil {
		return
	}
	for _, e := range cfg.Endpoints {
		most := e.Policy.Limits.Concurrency
		change := queue.GateChange{Endpoint: e.Name, Key: gateway.MainGate, Limit: &most}
		if err := k.store.SetGate(context.Background(), time.Now(), change); err != nil {
			k.failed(err)
			return
		}
	}
}

// sweepEvery is how late what has expired may be found.
const sweepEvery = 5 * time.Second

// sweep ends what has expired and erases what is no longer kept.
func (k *keeper) sweep(g *gateway.Gateway) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	var warned time.Time
	late, ends := map[string]bool{}, gateway.Ends{}
	for {
		k.look(time.Now(), late)
		k.mend(time.Now())
		if err := g.TellEnds(context.Background(), &ends); err != nil {
			k.failed(err)
		}
		if now := time.Now(); now.Sub(warned) >= warnEvery {
			warned = now
			k.warn(now)
		}
		for more := true; more; {
			swept, err := k.store.Sweep(context.Background(), time.Now(), 500)
			if err != nil {
				k.failed(err)
			}
			more = err == nil && swept.More
		}
		select {
		case <-tick.C:
		case <-k.quit:
			return
		}
	}
}

// probe is a write that changes nothing.
var probe = queue.GateChange{Endpoint: "_probe", Key: gateway.RecoveryGate, Limit: new(int)}

// mend looks whether what was wrong still is, and fills the reserve again.
func (k *keeper) mend(now time.Time) {
	ctx := context.Background()
	if k.trouble.quiet(now, gateway.RefusedStorage) && k.store.SetGate(ctx, now, probe) == nil {
		k.trouble.over(gateway.RefusedStorage)
	}
	if k.trouble.quiet(now, gateway.RefusedFull) {
		counts, err := k.store.Counts(ctx)
		live := 0
		for _, c := range counts {
			if !c.State.Ended() {
				live += c.N
			}
		}
		if err == nil && live < k.most {
			k.trouble.over(gateway.RefusedFull)
		}
	}
	k.reserve.Trim(ctx, now, k.store) // by what was sent: what is taken in looks at it
	_ = k.reserve.Fill()              // where there is no room yet, there is some later
}

// lateAfter is for how long a call may be due, with its gate open, before
// somebody is told: there are not enough workers, or the endpoint bears less
// than is asked of it.
const lateAfter = 10 * time.Minute

// look says which gates fall behind, once until they have caught up.
func (k *keeper) look(now time.Time, late map[string]bool) {
	gates, err := k.store.Gates(context.Background())
	if err != nil {
		k.failed(err)
		return
	}
	for _, g := range gates {
		name := g.Endpoint + " " + g.Key
		behind := !g.Paused && !g.Closed.After(now) && !g.Due.IsZero() && now.Sub(g.Due) > lateAfter
		if behind && !late[name] {
			k.log.Warn("the queue falls behind", slog.String("kind", "alert"), slog.String("alert", "queue_late"),
				slog.String("endpoint", g.Endpoint), slog.Int("queued", g.Queued), slog.Duration("late", now.Sub(g.Due)),
				slog.String("advice", "more is handed over than the endpoint bears: lower what is handed over, or raise limits or queue.workers if the provider allows more"))
		}
		late[name] = behind
	}
}

// How often, and how long before, it is told that broken calls will be erased.
const (
	warnEvery  = 6 * time.Hour
	warnBefore = 24 * time.Hour
)

// warn says that broken calls will soon be erased, so that somebody looks.
func (k *keeper) warn(now time.Time) {
	page, err := k.store.List(context.Background(), queue.Filter{
		States: []queue.State{queue.Dead, queue.Quarantined, queue.Unknown}, KeptBefore: now.Add(warnBefore), Limit: 1000,
	})
	if err != nil {
		k.failed(err)
		return
	}
	if n := len(page.Calls); n > 0 {
		k.log.Warn("calls that broke will be erased", slog.String("kind", "alert"), slog.String("alert", "queue_erases"),
			slog.Int("calls", n), slog.Bool("more", page.Next != ""), slog.Time("first", page.Calls[0].KeptUntil.UTC()),
			slog.String("advice", "look at them with heed calls list --state dead,quarantined,unknown, replay or export what is still wanted; queue.dead_ttl keeps them longer"))
	}
}

// see is told every step of every call. When a breaker closes, whoever waited
// for it in the queue need not wait for the instant that was told before.
func (k *keeper) see(e *heed.Event) {
	if k == nil || e.Kind != heed.BreakerChanged || e.Breaker != "closed" {
		return
	}
	select {
	case k.opens <- e.Endpoint:
	default: // the gates open at their instants
	}
}

// reopen opens the gates of endpoints whose breaker has closed, unless an
// operator closed them.
func (k *keeper) reopen() {
	for {
		select {
		case name := <-k.opens:
			if err := k.open(name, false); err != nil {
				k.failed(err)
			}
		case <-k.quit:
			return
		}
	}
}

// open opens the gates of an endpoint, those that an operator closed only with
// all; but the gate of the whole endpoint is the operator's alone.
func (k *keeper) open(name string, all bool) error {
	ctx, now := context.Background(), time.Now()
	gates, err := k.store.Gates(ctx)
	if err != nil {
		return err
	}
	for _, g := range gates {
		if g.Endpoint == name && g.Key != "" && g.Closed.After(now) && (all || g.Source != gateway.SourceOperator) {
			err = cmp.Or(err, k.store.SetGate(ctx, now, queue.GateChange{Endpoint: g.Endpoint, Key: g.Key, Closed: &now, Source: g.Source}))
		}
	}
	k.worker.Wake()
	return err
}

// settled wakes those who wait for calls.
func (k *keeper) settled(s []queue.Settlement) {
	k.bell.Settled(s)
	if k.trouble.any.Load() {
		k.trouble.over(gateway.RefusedStorage)
	}
}

// failed says once that the store fails, until it works again.
func (k *keeper) failed(err error) {
	if !errors.Is(err, queue.ErrClosed) {
		k.trouble.meets(time.Now(), gateway.RefusedStorage, err, 0)
	}
}

// stop lets the worker finish what it sends.
func (k *keeper) stop() {
	if k == nil {
		return
	}
	k.end.Do(func() {
		close(k.ending)
		k.worker.Stop()
		close(k.quit)
		k.tasks.Wait()
	})
}

// close lets the store go. The worker has stopped, or was never started.
func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	if k.called != nil {
		k.called.CloseIdleConnections()
	}
	return k.store.Close()
}
