package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
	"github.com/prometheus/client_golang/prometheus"
)

// MaxEndpoints is how many endpoints have numbers of their own. What comes
// beyond is counted as "other".
const MaxEndpoints = 200

const other = "other"

// lookEvery is how often the alerts are computed.
const lookEvery = 5 * time.Second

// Options say what is observed. The zero value counts, and writes nothing.
type Options struct {
	// Log takes the lines. nil: none are written.
	Log io.Writer
	// Level is the least that is written: debug, info, warn or error. Default info.
	Level string
	// Format is json or text. Default json.
	Format string
	// Attempts and Calls say which get a line: all, retried or none. Default all.
	Attempts, Calls string
	// Buffer is how many bytes of lines may wait for Log. Default 4 MiB.
	Buffer int
	// Endpoints are the configured endpoints with their timeouts, which are
	// compared with how long healthy answers take.
	Endpoints map[string]policy.Timeouts
	// Registry takes the metrics. nil: one of the Observer's own.
	Registry *prometheus.Registry
	// Trace sends spans when its Endpoint is set.
	Trace Trace
}

// check fills in the defaults and returns every problem at once.
func (p *Options) check() (level slog.Level, err error) {
	p.Level, p.Format = or(p.Level, "info"), or(p.Format, "json")
	p.Attempts, p.Calls = or(p.Attempts, All), or(p.Calls, All)
	if p.Buffer <= 0 {
		p.Buffer = 4 << 20
	}
	var problems []error
	if level.UnmarshalText([]byte(p.Level)) != nil {
		problems = append(problems, fmt.Errorf("level %q is not known: use debug, info, warn or error", p.Level))
	}
	if p.Format != "json" && p.Format != "text" {
		problems = append(problems, fmt.Errorf("format %q is not known: use json or text", p.Format))
	}
	for _, which := range []string{p.Attempts, p.Calls} {
		if which != All && which != Retried && which != None {
			problems = append(problems, fmt.Errorf("%q does not say which lines to write: use all, retried or none", which))
		}
	}
	if p.Trace.Endpoint != "" {
		problems = append(problems, p.Trace.check())
	}
	return level, errors.Join(problems...)
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// Observer is told of every step of every call. New makes it.
type Observer struct {
	level           slog.Level
	attempts, calls string
	sink            *sink // nil: no log
	lines           sync.Pool
	logger          *slog.Logger
	registry        *prometheus.Registry
	tracer          *tracer // nil: no spans

	endpoints atomic.Pointer[map[string]*endpoint] // replaced whole when it grows
	grow      sync.Mutex

	stop  chan struct{}
	once  sync.Once
	tasks sync.WaitGroup
}

// New starts an Observer. Close ends it.
func New(opts Options) (*Observer, error) {
	level, err := opts.check()
	if err != nil {
		return nil, err
	}
	o := &Observer{
		level: level, attempts: opts.Attempts, calls: opts.Calls,
		registry: newRegistry(opts.Registry),
		logger:   slog.New(slog.DiscardHandler),
		stop:     make(chan struct{}),
	}
	o.endpoints.Store(&map[string]*endpoint{})
	o.SetTimeouts(opts.Endpoints)
	if opts.Trace.Endpoint != "" {
		if o.tracer, err = newTracer(opts.Trace, o.say); err != nil {
			return nil, err
		}
	}
	o.openLog(opts)
	if err := o.registry.Register(page{o}); err != nil {
		err = fmt.Errorf("the registry already has metrics of heed, give each Observer its own: %w", err)
		return nil, errors.Join(err, o.Close(context.Background()))
	}
	o.tasks.Go(o.watch)
	if o.tracer != nil {
		o.tasks.Go(func() { o.tracer.run(o.stop) })
	}
	return o, nil
}

// openLog sets up the lines and the process's own logger.
func (o *Observer) openLog(opts Options) {
	text := opts.Format == "text"
	o.lines.New = func() any { return &line{b: make([]byte, 0, 1024), text: text} }
	if opts.Log == nil {
		return
	}
	o.sink = newSink(opts.Log, opts.Buffer, func(now time.Time, lost uint64) []byte {
		l := &line{text: text}
		l.begin(now.UTC(), slog.LevelError, "log lines dropped")
		l.num("dropped", int64(lost))
		l.str("advice", "the log is written faster than its reader takes it: write to a file, or set log.attempts to retried")
		return l.end()
	})
	set := &slog.HandlerOptions{Level: o.level, ReplaceAttr: utc}
	var h slog.Handler = slog.NewJSONHandler(o.sink, set)
	if text {
		h = slog.NewTextHandler(o.sink, set)
	}
	o.logger = slog.New(h)
}

// utc makes the process's own lines tell the time as all others do.
func utc(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// Observe counts and writes one step. It does not block, and may be called by
// many goroutines, also after Close.
func (o *Observer) Observe(e heed.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	o.endpoint(e.Endpoint).note(&e)
	if level, msg := title(&e); o.wants(&e, level) {
		l := o.lines.Get().(*line)
		l.put(&e, level, msg)
		o.sink.put(l.end())
		o.lines.Put(l)
	}
	if o.tracer != nil {
		o.tracer.offer(e)
	}
}

// endpoint returns the numbers of an endpoint.
func (o *Observer) endpoint(name string) *endpoint {
	if p, ok := (*o.endpoints.Load())[name]; ok {
		return p
	}
	return o.addEndpoint(name)
}

func (o *Observer) addEndpoint(name string) *endpoint {
	o.grow.Lock()
	defer o.grow.Unlock()
	known := *o.endpoints.Load()
	if p, ok := known[name]; ok {
		return p
	}
	if len(known) >= MaxEndpoints || !fits(name) {
		name = other
		if p, ok := known[name]; ok {
			return p
		}
	}
	p := &endpoint{name: name}
	known = maps.Clone(known)
	known[name] = p
	o.endpoints.Store(&known)
	return p
}

// SetTimeouts tells the timeouts of the configured endpoints, at the start
// and again when the configuration was reloaded.
func (o *Observer) SetTimeouts(endpoints map[string]policy.Timeouts) {
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		p := o.endpoint(name)
		p.mu.Lock()
		p.timeouts = endpoints[name]
		p.mu.Unlock()
	}
}

// Logger is for the process's own lines. They go where the lines of calls go.
func (o *Observer) Logger() *slog.Logger { return o.logger }

// watch raises alerts until Close.
func (o *Observer) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-o.stop:
			return
		case now := <-tick.C:
			for _, p := range *o.endpoints.Load() {
				for _, a := range p.look(now) {
					o.raise(now, a)
				}
			}
		}
	}
}

func (o *Observer) raise(now time.Time, a alert) {
	o.say(now, a.level, a.msg, slog.String("kind", "alert"), slog.String("alert", a.name),
		slog.String("endpoint", a.endpoint), slog.String("advice", a.advice))
}

// say writes a line of the observer's own.
func (o *Observer) say(now time.Time, level slog.Level, msg string, attrs ...slog.Attr) {
	h := o.logger.Handler()
	if !h.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(now, level, msg, 0)
	r.AddAttrs(attrs...)
	_ = h.Handle(context.Background(), r) // the sink counts what it cannot take
}

// Close writes what is held, ends the goroutines and sends the last spans. It
// gives up when ctx ends, and may be called more than once.
func (o *Observer) Close(ctx context.Context) error {
	o.once.Do(func() { close(o.stop) })
	o.tasks.Wait() // none of them waits for anybody
	var errs []error
	if o.tracer != nil {
		errs = append(errs, o.tracer.close(ctx))
	}
	if o.sink != nil {
		errs = append(errs, o.sink.close(ctx))
	}
	return errors.Join(errs...)
}
