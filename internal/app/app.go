// Package app is heed as one process: New wires a configuration into a
// gateway, Start opens its listeners, Reload changes the configuration under
// traffic, Stop ends it.
//
// What an endpoint has learned (breaker, pace, quota) and its connections
// survive a reload that does not change the endpoint. Calls in flight finish on
// the settings they began with; only then are the old credentials and
// connections released. Listeners, log and tracing are fixed at the start.
//
// Stop must be called once after New, also where Start was not or failed.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/internal/observe"
	"github.com/heedproject/heed/policy"
)

// Options are what a process brings along. The zero value works.
type Options struct {
	Version string
	// Out takes the log lines. nil: none are written.
	Out io.Writer
	// Getenv and ReadFile resolve references to secrets. nil: an empty
	// environment, which belongs to the command, and the files there are.
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error)
	// Grace is how long Stop lets calls in flight finish. Default 30 s.
	Grace time.Duration
	// Resolve looks up the hosts of endpoints. nil: the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Doubt is told once of each unverified fact that a road made by Open acts
	// on. nil: nobody is; an App logs them.
	Doubt func(Doubt)
}

func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	if o.Grace <= 0 {
		o.Grace = 30 * time.Second
	}
	return o
}

// App is one process. New makes it.
type App struct {
	opts    Options
	observe *observe.Observer
	gateway *gateway.Gateway
	queue   *keeper // nil: calls are not answered later
	noQueue error   // why the demo has none
	healing recoveries

	life   context.Context // of requests; Stop ends it when patience is over
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	cfg   *config.Config
	units map[string]*unit
	ports []*port // data, then admin
	state state
}

type state uint8

const (
	made state = iota
	started
	stopped
)

// port is a listener with its server.
type port struct {
	net.Listener
	server *http.Server
}

// errStopping is the cause with which the calls end that Stop does not wait for.
var errStopping = errors.New("heed is stopping")

// New wires cfg. Nothing listens yet.
func New(cfg *config.Config, opts Options) (*App, error) {
	a := &App{opts: opts.withDefaults(), cfg: cfg}
	a.life, a.cancel = context.WithCancelCause(context.Background())
	var err error
	if a.observe, err = observe.New(observe.Options{
		Log: opts.Out, Level: cfg.Log.Level, Format: cfg.Log.Format, Attempts: cfg.Log.Attempts, Calls: cfg.Log.Calls,
		Endpoints: timeouts(cfg),
		Trace:     observe.Trace{Endpoint: cfg.Trace.Endpoint, Sample: cfg.Trace.Sample},
	}); err != nil {
		return nil, err
	}
	if a.queue, err = a.openQueue(cfg); err != nil {
		return nil, errors.Join(err, a.observe.Close(context.Background()))
	}
	settings, units, err := a.settings(cfg, nil)
	if err != nil {
		return nil, errors.Join(err, a.queue.close(), a.observe.Close(context.Background()))
	}
	a.units = units
	a.gateway = gateway.New(settings)
	return a, nil
}

func timeouts(cfg *config.Config) map[string]policy.Timeouts {
	m := make(map[string]policy.Timeouts, len(cfg.Endpoints))
	for _, e := range cfg.Endpoints {
		m[e.Name] = e.Policy.WithDefaults().Timeouts
	}
	return m
}

// Start opens the listeners and serves. ctx bounds the opening only.
func (a *App) Start(ctx context.Context) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	a.queue.start(a)
	a.gateway.Ready(true)
	return nil
}

// open opens the listeners.
func (a *App) open(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != made {
		return errors.New("start: it was started already")
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	data, err := gateway.Listen("listen.data", or(a.cfg.Listen.Data, "127.0.0.1:8642"), len(a.cfg.Clients) > 0)
	if err != nil {
		return err
	}
	admin, err := gateway.Listen("listen.admin", or(a.cfg.Listen.Admin, "127.0.0.1:8643"), a.cfg.Listen.AdminToken != "")
	if err != nil {
		data.Close()
		return err
	}
	a.serve(data, a.gateway)
	a.serve(admin, a.gateway.Admin())
	a.state = started
	a.queue.limit(a.cfg)
	a.observe.Logger().Info("heed serves", slog.String("data", address(data)), slog.String("admin", address(admin)),
		slog.Int("endpoints", len(a.cfg.Endpoints)), slog.String("version", a.opts.Version))
	return nil
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// serve starts a server on l. Its own lines tell of broken connections, which
// is of interest only when somebody looks for them.
func (a *App) serve(l net.Listener, h http.Handler) {
	bytes := a.cfg.Bounds.HeaderBytes
	if bytes <= 0 {
		bytes = 64 << 10
	}
	p := &port{Listener: l, server: &http.Server{
		Handler: h,
		// OPTIONS * is answered by h, as ours, and not with a bare 200 by net/http.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    bytes,
		BaseContext:       func(net.Listener) context.Context { return a.life },
		ErrorLog:          slog.NewLogLogger(a.observe.Logger().Handler(), slog.LevelDebug),
	}}
	a.ports = append(a.ports, p)
	a.tasks.Go(func() {
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.observe.Logger().Error("listener failed", slog.String("listen", address(l)), slog.String("error", err.Error()),
				slog.String("advice", "restart heed"))
		}
	})
}

// address is where l can be reached, in the form of heed.yaml.
func address(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// DataAddr is where the data port can be reached; empty before Start.
func (a *App) DataAddr() string { return a.at(0) }

// AdminAddr is where the admin port can be reached; empty before Start.
func (a *App) AdminAddr() string { return a.at(1) }

func (a *App) at(i int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i >= len(a.ports) {
		return ""
	}
	return address(a.ports[i])
}

// own lists our listeners for the dial guard.
func (a *App) own() []netip.AddrPort {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []netip.AddrPort
	for _, p := range a.ports {
		if t, ok := p.Addr().(*net.TCPAddr); ok {
			list = append(list, t.AddrPort())
		}
	}
	return list
}

// Reload puts cfg in the place of the current configuration, or changes
// nothing and says why.
func (a *App) Reload(cfg *config.Config) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == stopped {
		return errors.New("reload: heed is stopping")
	}
	if err := a.fixed(cfg); err != nil {
		return err
	}
	settings, units, err := a.settings(cfg, a.units)
	if err != nil {
		return err
	}
	old := a.units
	a.cfg, a.units = cfg, units
	a.observe.SetTimeouts(timeouts(cfg))
	inherit(units, old)
	drained := a.gateway.Swap(settings)
	a.queue.limit(cfg)
	a.abandon(a.healing.reloaded(units))
	kept := 0
	for name, u := range units {
		if old[name] == u {
			kept++
		}
	}
	a.releaseAfter(drained, old, units)
	a.observe.Logger().Info("configuration reloaded", slog.Int("endpoints", len(units)), slog.Int("unchanged", kept))
	return nil
}

// NotReloaded logs that a new configuration could not be taken, for those who
// watch the log only.
func (a *App) NotReloaded(err error) {
	a.observe.Logger().Error("configuration not reloaded", slog.String("error", err.Error()),
		slog.String("advice", "the old one stays in force: mend what is told, and send SIGHUP again"))
}

// releaseAfter closes the units of old that are not kept when the calls that
// may use them have ended.
func (a *App) releaseAfter(drained <-chan struct{}, old, kept map[string]*unit) {
	a.tasks.Go(func() {
		select {
		case <-drained:
		case <-a.life.Done():
		}
		release(old, kept)
	})
}

// fixed says what of cfg cannot be changed without a restart.
func (a *App) fixed(cfg *config.Config) error {
	var errs []error
	for _, f := range []struct {
		key  string
		same bool
	}{
		{"listen", cfg.Listen == a.cfg.Listen},
		{"log", cfg.Log == a.cfg.Log},
		{"trace", cfg.Trace == a.cfg.Trace},
		{"queue", reflect.DeepEqual(cfg.Queue, a.cfg.Queue)},
		{"bounds.header", cfg.Bounds.HeaderBytes == a.cfg.Bounds.HeaderBytes},
		// The last client that goes would open the port to everybody.
		{"clients (first or last one)", a.state == made || (len(cfg.Clients) > 0) == (len(a.cfg.Clients) > 0)},
	} {
		if !f.same {
			errs = append(errs, fmt.Errorf("reload: %s cannot be changed while heed runs; restart it", f.key))
		}
	}
	return errors.Join(errs...)
}

// Stop stops taking calls, lets those in flight finish for as long as ctx and
// Options.Grace allow, and releases everything.
func (a *App) Stop(ctx context.Context) error {
	a.mu.Lock()
	if a.state == stopped {
		a.mu.Unlock()
		return nil
	}
	a.state = stopped
	ports, units := a.ports, a.units
	a.mu.Unlock()

	a.gateway.Ready(false)
	var worker sync.WaitGroup
	worker.Go(a.queue.stop)
	errs := a.drain(ctx, ports)
	worker.Wait()
	a.cancel(errStopping)
	for i, p := range ports {
		if err := p.server.Close(); err != nil && i > 0 {
			errs = append(errs, fmt.Errorf("stop: %w", err))
		}
	}
	a.tasks.Wait()
	errs = append(errs, a.queue.close())
	release(units, nil)
	// The log has time of its own: its last lines say why ctx was not enough.
	flush, done := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer done()
	return errors.Join(append(errs, a.observe.Close(flush))...)
}

// flushTime is how long the last lines of the log may take.
const flushTime = 5 * time.Second

// drain waits for the calls in flight. The admin port stays open meanwhile, so
// that one can see what is waited for.
func (a *App) drain(ctx context.Context, ports []*port) []error {
	if len(ports) == 0 {
		return nil
	}
	patience, done := context.WithTimeoutCause(ctx, a.opts.Grace, fmt.Errorf("stop: calls were still in flight after %v", a.opts.Grace))
	defer done()
	if err := ports[0].server.Shutdown(patience); err == nil {
		return nil
	}
	n := a.gateway.Calls()
	a.cancel(errStopping)
	brief, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	_ = ports[0].server.Shutdown(brief) // so that they can still say why
	return []error{fmt.Errorf("stop: %d call(s) were given up: %w", n, context.Cause(patience))}
}
