package observe

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/mask"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Trace says where spans go.
type Trace struct {
	// Endpoint is an OTLP collector over HTTP, such as http://127.0.0.1:4318.
	// Empty: no spans.
	Endpoint string
	// Sample is the share of calls that get spans, unless their traceparent
	// decides it. 0: all.
	Sample float64
}

// heldEvents bounds what the tracer holds.
const heldEvents = 4096

// tracer makes spans of events, away from the road. It keeps no state per
// call: the ids of a call's spans follow from its call id, so an attempt can
// name its parent before that exists.
type tracer struct {
	events   chan heed.Event
	dropped  atomic.Uint64
	sample   float64
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// url returns where spans are posted to.
func (t Trace) url() (*url.URL, error) {
	u, err := url.Parse(t.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the trace endpoint is no URL of a collector: use one such as http://127.0.0.1:4318")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces" // OTLP 1.x, "OTLP/HTTP Request"
	}
	return u, nil
}

func (t Trace) check() error {
	if t.Sample < 0 || t.Sample > 1 || math.IsNaN(t.Sample) {
		return fmt.Errorf("trace sample %v is no share: use a number from 0 to 1", t.Sample)
	}
	_, err := t.url()
	return err
}

func newTracer(t Trace, say func(time.Time, slog.Level, string, ...slog.Attr)) (*tracer, error) {
	u, err := t.url()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(context.Background(), newCollector(u.String()))
	if err != nil {
		return nil, fmt.Errorf("set up the trace exporter: %w", err)
	}
	x := &tracer{events: make(chan heed.Event, heldEvents), sample: t.Sample}
	if x.sample == 0 {
		x.sample = 1
	}
	x.provider = sdk.NewTracerProvider(
		sdk.WithBatcher(&calm{SpanExporter: exporter, say: say}),
		sdk.WithIDGenerator(ids{}),
		sdk.WithSampler(sdk.AlwaysSample()), // run decides before it starts a span
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "heed"))))
	x.tracer = x.provider.Tracer("github.com/heedproject/heed")
	return x, nil
}

// offer takes e if there is room.
func (x *tracer) offer(e heed.Event) {
	if e.Kind != heed.AttemptDone && e.Kind != heed.CallDone {
		return
	}
	select {
	case x.events <- e:
	default:
		x.dropped.Add(1)
	}
}

// run makes spans until stop, and then of what is left.
func (x *tracer) run(stop <-chan struct{}) {
	for {
		select {
		case e := <-x.events:
			x.span(&e)
			continue
		case <-stop:
		}
		for {
			select {
			case e := <-x.events:
				x.span(&e)
			default:
				return
			}
		}
	}
}

// close sends the last spans, within half of the time there is: a collector that
// hangs does not cost the log its last lines.
func (x *tracer) close(ctx context.Context) error {
	if at, bounded := ctx.Deadline(); bounded {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, time.Until(at)/2)
		defer done()
	}
	if err := x.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("the last spans were not sent: %w", err)
	}
	return nil
}

// span tells the SDK of a step that is already over.
func (x *tracer) span(e *heed.Event) {
	parent, own := lineage(e)
	if !x.sampled(parent, own) {
		return
	}
	ctx, kind := context.Background(), trace.SpanKindInternal
	if e.Kind == heed.AttemptDone {
		kind = trace.SpanKindClient
		ctx = trace.ContextWithRemoteSpanContext(ctx, own)
	} else {
		ctx = context.WithValue(ctx, idKey{}, own)
		if parent.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
		}
	}
	_, s := x.tracer.Start(ctx, e.Kind.String()+" "+bound(e.Method, maxTenant)+" "+bound(e.Endpoint, maxID),
		trace.WithTimestamp(e.Time.Add(-e.Elapsed)), trace.WithSpanKind(kind), trace.WithAttributes(attributes(e)...))
	if e.Class != classify.OK || e.Reason != "" {
		s.SetStatus(codes.Error, or(e.Reason, e.Class.String()))
	}
	s.End(trace.WithTimestamp(e.Time))
}

// sampled lets the caller's traceparent decide, else the share that is asked
// for, by an id that all spans of a call have in common.
func (x *tracer) sampled(parent, own trace.SpanContext) bool {
	if parent.IsValid() {
		return parent.IsSampled()
	}
	id := own.TraceID()
	return float64(binary.BigEndian.Uint64(id[8:])>>11)/(1<<53) < x.sample
}

// lineage returns the span of the caller, if it named one, and that of the call.
func lineage(e *heed.Event) (parent, own trace.SpanContext) {
	if e.TraceParent != "" {
		carrier := propagation.MapCarrier{"traceparent": e.TraceParent}
		parent = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	}
	sum := sha256.Sum256([]byte(e.CallID.String()))
	c := trace.SpanContextConfig{TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled}
	if parent.IsValid() {
		c.TraceID = parent.TraceID()
	}
	return parent, trace.NewSpanContext(c)
}

// attributes are the facts of a span: what a log line tells, no more.
func attributes(e *heed.Event) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("heed.endpoint", bound(e.Endpoint, maxID)),
		attribute.String("heed.call_id", e.CallID.String()),
		attribute.Int("heed.attempt", e.Attempt),
		attribute.String("heed.class", e.Class.String()),
		attribute.String("heed.executed", e.Executed.String()),
		attribute.Float64("heed.waited", e.Waited.Seconds()),
		attribute.Int("heed.wire_attempts", e.WireAttempts),
		attribute.String("http.request.method", bound(e.Method, maxTenant)),
		attribute.String("url.template", e.Path.String()),
	}
	if e.Status != 0 {
		out = append(out, attribute.Int("http.response.status_code", e.Status))
	}
	if e.HasRetry {
		out = append(out, attribute.Float64("heed.retry_after", e.RetryAfter.Seconds()))
	}
	for _, kv := range [...]struct{ key, value string }{
		{"heed.rule", e.Rule},
		{"heed.wait_source", string(e.WaitSource)},
		{"heed.correlation_id", bound(e.CorrelationID, maxID)},
		{"heed.tenant", bound(e.Tenant, maxTenant)},
		{"heed.breaker", e.Breaker},
		{"heed.reason", e.Reason},
	} {
		if kv.value != "" {
			out = append(out, attribute.String(kv.key, kv.value))
		}
	}
	return out
}

type idKey struct{}

// ids gives the span of a call the ids that its attempts already named.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if own, ok := ctx.Value(idKey{}).(trace.SpanContext); ok {
		return own.TraceID(), own.SpanID()
	}
	var t trace.TraceID
	binary.BigEndian.PutUint64(t[:8], rand.Uint64())
	binary.BigEndian.PutUint64(t[8:], rand.Uint64()|1)
	return t, randomSpan()
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if own, ok := ctx.Value(idKey{}).(trace.SpanContext); ok {
		return own.SpanID()
	}
	return randomSpan()
}

func randomSpan() (s trace.SpanID) {
	binary.BigEndian.PutUint64(s[:], rand.Uint64()|1) // an id of zero is none
	return s
}

// calm tells once, in the log, that the collector cannot be reached, and once
// that it can again. Without it the SDK prints every failure to standard error.
type calm struct {
	sdk.SpanExporter
	say  func(time.Time, slog.Level, string, ...slog.Attr)
	down bool // only the batch processor's goroutine looks at it
}

// ExportSpans implements sdk.SpanExporter.
func (c *calm) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	switch failed := err != nil; {
	case failed && !c.down:
		c.say(time.Now(), slog.LevelWarn, "spans not sent",
			slog.String("error", mask.Error(err)),
			slog.String("advice", "check that the OTLP collector of trace.otlp is up; spans are dropped meanwhile, calls are not affected"))
	case !failed && c.down:
		c.say(time.Now(), slog.LevelInfo, "spans are sent again")
	}
	c.down = err != nil
	return nil
}
