package observe

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	service "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// received is a collector that keeps the spans it is sent.
type received struct {
	mu    sync.Mutex
	spans []*otlp.Span
	paths []string
	raw   bytes.Buffer
}

func (c *received) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var msg service.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &msg); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, r.URL.Path)
	c.raw.Write(b)
	for _, rs := range msg.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

// traced returns what a collector gets of the events.
func traced(t *testing.T, trace Trace, events ...heed.Event) *received {
	t.Helper()
	c := &received{}
	server := httptest.NewServer(c)
	defer server.Close()
	trace.Endpoint = server.URL
	tell(t, Options{Trace: trace}, events)
	return c
}

func (c *received) span(t *testing.T, name string) *otlp.Span {
	t.Helper()
	for _, s := range c.spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q among %d", name, len(c.spans))
	return nil
}

func TestSpansPerCallAndAttemptReachTheCollector(t *testing.T) {
	c := traced(t, Trace{}, throttled(), served())
	if diff := cmp.Diff(c.paths, []string{"/v1/traces"}); diff != "" {
		t.Errorf("posted to (-got +want):\n%s", diff)
	}
	attempt, call := c.span(t, "attempt GET sierra"), c.span(t, "call GET sierra")
	if !bytes.Equal(attempt.TraceId, call.TraceId) || !bytes.Equal(attempt.ParentSpanId, call.SpanId) {
		t.Error("the attempt is not a child of its call")
	}
	if len(call.ParentSpanId) != 0 {
		t.Errorf("the call has parent %x, want none", call.ParentSpanId)
	}
	e := throttled()
	if got, want := int64(attempt.EndTimeUnixNano-attempt.StartTimeUnixNano), e.Elapsed.Nanoseconds(); got != want {
		t.Errorf("attempt took %d ns, want %d", got, want)
	}
	if got, want := int64(attempt.EndTimeUnixNano), e.Time.UnixNano(); got != want {
		t.Errorf("attempt ended at %d, want %d", got, want)
	}
	if got := attempt.Status.GetCode(); got != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("status of a throttled attempt: got %v, want error", got)
	}
	attrs := map[string]string{}
	for _, kv := range attempt.Attributes {
		attrs[kv.Key] = kv.Value.String()
	}
	if got := attrs["url.template"]; !strings.Contains(got, "/patrons/{id}") {
		t.Errorf("url.template: got %s, want the template", got)
	}
	if got := attrs["http.response.status_code"]; !strings.Contains(got, "429") {
		t.Errorf("status: got %s, want 429", got)
	}
}

func TestSpansTellNoIdentifierOfAPath(t *testing.T) {
	const canary = "4111111111111111"
	e := throttled()
	e.Path = "/patrons/" + canary
	if c := traced(t, Trace{}, e); bytes.Contains(c.raw.Bytes(), []byte(canary)) {
		t.Error("the collector is told an identifier")
	}
}

func TestACallContinuesTheTraceOfItsCaller(t *testing.T) {
	a, c := throttled(), served()
	a.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	c.TraceParent = a.TraceParent
	got := traced(t, Trace{Sample: 1e-12}, a, c)
	call, attempt := got.span(t, "call GET sierra"), got.span(t, "attempt GET sierra")
	if id := hexOf(call.TraceId); id != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id: got %s, want the caller's", id)
	}
	if id := hexOf(call.ParentSpanId); id != "b7ad6b7169203331" {
		t.Errorf("parent: got %s, want the caller's span", id)
	}
	if !bytes.Equal(attempt.ParentSpanId, call.SpanId) {
		t.Error("the attempt is not a child of its call")
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, c := range b {
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}

func TestACallerThatDoesNotSampleGetsNoSpans(t *testing.T) {
	e := served()
	e.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	if c := traced(t, Trace{}, e); len(c.spans) != 0 {
		t.Errorf("got %d spans, want none", len(c.spans))
	}
}

func TestABrokenTraceparentStartsATraceOfItsOwn(t *testing.T) {
	e := served()
	e.TraceParent = "00-nonsense"
	if c := traced(t, Trace{}, e); len(c.spans) != 1 {
		t.Errorf("got %d spans, want 1", len(c.spans))
	}
}

func TestASampleTakesWholeCalls(t *testing.T) {
	var events []heed.Event
	for i := range 200 {
		a, c := throttled(), served()
		a.CallID = heed.CallID(i + 1)
		c.CallID = a.CallID
		events = append(events, a, c)
	}
	got := traced(t, Trace{Sample: 0.5}, events...)
	perTrace := map[string]int{}
	for _, s := range got.spans {
		perTrace[hexOf(s.TraceId)]++
	}
	for id, n := range perTrace {
		if n != 2 {
			t.Errorf("trace %s has %d spans, want 2", id, n)
		}
	}
	if n := len(perTrace); n < 60 || n > 140 {
		t.Errorf("got %d of 200 calls, want about half", n)
	}
}

func TestACollectorThatIsDownIsToldOnceAndHoldsNobodyUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest) // final, so that the exporter does not wait
	}))
	defer server.Close()
	var out bytes.Buffer
	o := start(t, Options{Log: &out, Attempts: None, Trace: Trace{Endpoint: server.URL}})
	for range 3 {
		o.Observe(heed.Event{Kind: heed.AttemptDone, Endpoint: "e", Time: noon, Class: classify.OK})
	}
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "spans not sent"); n != 1 {
		t.Errorf("got %d lines about it, want 1:\n%s", n, &out)
	}
}

func TestEventsThatTheTracerCannotTakeAreCounted(t *testing.T) {
	x := &tracer{events: make(chan heed.Event, 1)}
	for range 3 {
		x.offer(served())
	}
	if got := x.dropped.Load(); got != 2 {
		t.Errorf("got %d dropped, want 2", got)
	}
}

func TestCloseGivesUpOnACollectorThatHangs(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	o := start(t, Options{Trace: Trace{Endpoint: server.URL}})
	o.Observe(served())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Close(ctx); err == nil {
		t.Error("got no error for spans that were not sent")
	}
}

func TestACollectorThatHangsCostsTheLogNoLine(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	var out bytes.Buffer
	o := start(t, Options{Log: &out, Trace: Trace{Endpoint: server.URL}})
	o.Observe(served())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := o.Close(ctx)
	if err == nil || strings.Contains(err.Error(), "the log was not written") {
		t.Errorf("got %v, want an error for the spans alone", err)
	}
	if !strings.Contains(out.String(), "call done") {
		t.Errorf("the log is %q", out.String())
	}
}

func TestASampleBeyondOneIsRefused(t *testing.T) {
	if _, err := New(Options{Trace: Trace{Endpoint: "http://127.0.0.1:1", Sample: 1.5}}); err == nil {
		t.Error("got no error")
	}
}
