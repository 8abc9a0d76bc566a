package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)

// throttled is an attempt with every field in use.
func throttled() heed.Event {
	return heed.Event{
		Kind: heed.AttemptDone, Time: noon, Endpoint: "sierra", CallID: 0xc1,
		CorrelationID: "job-7", Tenant: "north", Method: "GET", Path: "/patrons/1234567",
		Attempt: 2, WireAttempts: 3, Status: 429, Class: classify.Throttled, Executed: classify.No,
		Rule: "status 429", Elapsed: 1500 * time.Microsecond, Delay: 30*time.Second + 250*time.Millisecond,
		Waited: time.Second, WaitSource: policy.WaitRetryAfter, RetryAfter: 30 * time.Second, HasRetry: true,
		Remaining: 0, HasRemain: true, Breaker: "closed", Retry: true,
	}
}

func served() heed.Event {
	return heed.Event{
		Kind: heed.CallDone, Time: noon, Endpoint: "sierra", CallID: 0xc1, Method: "GET", Path: "/items",
		Attempt: 1, WireAttempts: 1, Status: 200, Class: classify.OK, Executed: classify.Yes,
		Elapsed: 12 * time.Millisecond, Bytes: 1024,
	}
}

// logged returns what an Observer with opts writes about events.
func logged(t *testing.T, opts Options, events ...heed.Event) string {
	t.Helper()
	var out bytes.Buffer
	opts.Log = &out
	tell(t, opts, events)
	return out.String()
}

// tell runs an Observer with opts for as long as it takes to tell it events.
func tell(t *testing.T, opts Options, events []heed.Event) {
	t.Helper()
	o, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		o.Observe(e)
	}
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// start returns an Observer that the test ends.
func start(t *testing.T, opts Options) *Observer {
	t.Helper()
	o, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close(context.Background()) })
	return o
}

func TestAnAttemptIsOneLineWithTheAgreedNames(t *testing.T) {
	got := logged(t, Options{}, throttled())
	want := `{"time":"2026-11-30T12:00:00.123456789Z","level":"WARN","msg":"attempt done","kind":"attempt",` +
		`"endpoint":"sierra","method":"GET","path":"/patrons/{id}","attempt":2,"status_code":429,"class":"throttled",` +
		`"executed":"no","rule":"status 429","retry":true,"delay":30.25,"waited":1,"wait_source":"retry_after",` +
		`"retry_after":30,"rate_limit_remaining":0,"correlation_id":"job-7","call_id":"00000000000000c1","tenant":"north",` +
		`"elapsed":0.0015,"wire_attempts":3,"breaker":"closed"}` + "\n"
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("line (-got +want):\n%s", diff)
	}
}

func TestACallIsOneLine(t *testing.T) {
	got := logged(t, Options{}, served())
	want := `{"time":"2026-11-30T12:00:00.123456789Z","level":"INFO","msg":"call done","kind":"call",` +
		`"endpoint":"sierra","method":"GET","path":"/items","attempt":1,"status_code":200,"class":"ok",` +
		`"executed":"yes","waited":0,"call_id":"00000000000000c1","elapsed":0.012,"wire_attempts":1,"bytes":1024}` + "\n"
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("line (-got +want):\n%s", diff)
	}
}

func TestTextIsWrittenWhenAskedFor(t *testing.T) {
	got := logged(t, Options{Format: "text"}, served())
	want := `time=2026-11-30T12:00:00.123Z level=INFO msg="call done" kind=call endpoint=sierra method=GET ` +
		`path=/items attempt=1 status_code=200 class=ok executed=yes waited=0 call_id=00000000000000c1 elapsed=0.012 ` +
		"wire_attempts=1 bytes=1024\n"
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("line (-got +want):\n%s", diff)
	}
}

func TestAnOpenedBreakerIsAnErrorWithTheCallThatTrippedIt(t *testing.T) {
	got := logged(t, Options{Level: "error"}, heed.Event{
		Kind: heed.BreakerChanged, Time: noon, Endpoint: "sierra", Breaker: "open", Delay: 30 * time.Second, CorrelationID: "job-7", CallID: 0xc9})
	want := `{"time":"2026-11-30T12:00:00.123456789Z","level":"ERROR","msg":"breaker opened","kind":"breaker",` +
		`"endpoint":"sierra","status_code":0,"delay":30,"correlation_id":"job-7","call_id":"00000000000000c9","breaker":"open","advice":"` + adviceOpen + `"}` + "\n"
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("line (-got +want):\n%s", diff)
	}
}

// Each kind that is neither attempt nor call has level and message of its own.
func TestOtherStepsHaveLines(t *testing.T) {
	tests := []struct {
		name string
		e    heed.Event
		want []string
	}{
		{"a wait", heed.Event{Kind: heed.WaitBegun, Delay: 2 * time.Second, WaitSource: policy.WaitQuota},
			[]string{`"level":"INFO"`, `"kind":"wait"`, `"delay":2`, `"wait_source":"quota"`}},
		{"a breaker that closes", heed.Event{Kind: heed.BreakerChanged, Breaker: "closed"},
			[]string{`"level":"INFO"`, `"kind":"breaker"`, `"breaker":"closed"`}},
		{"a renewed token", heed.Event{Kind: heed.TokenRenewed},
			[]string{`"level":"INFO"`, `"kind":"token"`, `"msg":"token renewed"`}},
		{"a token that was not renewed", heed.Event{Kind: heed.TokenRenewed, Reason: "token-failed"},
			[]string{`"level":"WARN"`, `"msg":"token not renewed"`, `"reason":"token-failed"`, `"advice":`}},
		{"a hint nobody can read", heed.Event{Kind: heed.HintInvalid},
			[]string{`"level":"WARN"`, `"kind":"hint_invalid"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := logged(t, Options{}, tt.e)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("line %s lacks %s", got, want)
				}
			}
		})
	}
}

func TestTheLogSaysWhichLinesItWants(t *testing.T) {
	first, again, single, several := throttled(), throttled(), served(), served()
	first.Attempt, first.Retry = 1, false
	several.Attempt = 2
	events := []heed.Event{first, again, single, several}
	tests := []struct {
		opts Options
		want int
	}{
		{Options{}, 4},
		{Options{Attempts: Retried}, 3},
		{Options{Calls: Retried}, 3},
		{Options{Attempts: None, Calls: Retried}, 1},
		{Options{Attempts: None, Calls: None}, 0},
		{Options{Level: "warn"}, 2},
		{Options{Level: "error"}, 0},
	}
	for _, tt := range tests {
		if got := strings.Count(logged(t, tt.opts, events...), "\n"); got != tt.want {
			t.Errorf("%+v: got %d lines, want %d", tt.opts, got, tt.want)
		}
	}
}

func TestACancelledCallIsNoWarning(t *testing.T) {
	e := served()
	e.Class, e.Reason = classify.Unknown, "canceled"
	if got := logged(t, Options{Level: "warn"}, e); got != "" {
		t.Errorf("got line %s, want none", got)
	}
}

func TestEveryKeyIsInTheSchemaAndInItsOrder(t *testing.T) {
	events := []heed.Event{throttled(), served()}
	for kind := heed.WaitBegun; kind <= heed.HintInvalid; kind++ {
		e := throttled()
		e.Kind, e.Reason, e.Breaker = kind, "token-failed", "open"
		events = append(events, e)
	}
	for line := range strings.Lines(logged(t, Options{}, events...)) {
		at, kind := -1, ""
		for _, key := range keys(t, line) {
			i := indexOfField(key)
			if i <= at {
				t.Errorf("key %q is not in Fields or out of order in %s", key, line)
			}
			at = i
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		kind = m["kind"].(string)
		for _, f := range Fields {
			_, has := m[f.Key]
			if on := len(f.Kinds) == 0 || slices.Contains(f.Kinds, kind); has && !on || f.Always && on && !has {
				t.Errorf("field %s of kind %s: got %t, schema says otherwise", f.Key, kind, has)
			}
		}
	}
}

// keys returns the keys of one JSON object in their order.
func keys(t *testing.T, object string) (out []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	for i := 0; ; i++ {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := tok.(string); ok && i%2 == 1 {
			out = append(out, s)
		}
	}
}

func indexOfField(key string) int {
	return slices.IndexFunc(Fields, func(f Field) bool { return f.Key == key })
}

func TestNoSecretOfAnEventIsTold(t *testing.T) {
	const canary = "4111111111111111"
	e := throttled()
	e.Path = "/patrons/" + canary
	for _, format := range []string{"json", "text"} {
		if got := logged(t, Options{Format: format}, e); strings.Contains(got, canary) {
			t.Errorf("%s line tells the identifier in the path: %s", format, got)
		}
	}
}

func TestWhatCallersChooseIsBoundedAndHarmless(t *testing.T) {
	e := served()
	e.CorrelationID = "a\n\x1b[31m\u009b2J\x7f" + strings.Repeat("é", 5000)
	e.Tenant = strings.Repeat("t", 5000)
	got := logged(t, Options{}, e)
	if len(got) > 800 {
		t.Errorf("line has %d bytes, want at most 800", len(got))
	}
	if n := strings.Count(got, "\n"); n != 1 {
		t.Errorf("got %d lines, want 1", n)
	}
	if strings.ContainsAny(got, "\x1b\u009b\x7f") {
		t.Errorf("control characters reach the log: %q", got)
	}
	if !json.Valid([]byte(got)) {
		t.Errorf("not JSON: %q", got)
	}
}

func TestTheLoggerWritesBesideTheCalls(t *testing.T) {
	var out bytes.Buffer
	o := start(t, Options{Log: &out})
	o.Logger().Info("gateway listens", "addr", "127.0.0.1:8642")
	o.Logger().Debug("not asked for")
	o.Observe(served())
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"msg":"gateway listens","addr":"127.0.0.1:8642"`) {
		t.Errorf("got %q, want the process's line and the call's", lines)
	}
}

func TestEveryBadOptionIsToldAtOnce(t *testing.T) {
	_, err := New(Options{Level: "loud", Format: "xml", Calls: "some", Trace: Trace{Endpoint: "http://u:hunter2@ x", Sample: 0.5}})
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"loud", "xml", "some", "trace endpoint"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not tell of %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error tells the password: %q", err)
	}
}

func TestManyGoroutinesWriteWholeLines(t *testing.T) {
	var out bytes.Buffer
	o := start(t, Options{Log: &out})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				o.Observe(throttled())
				o.Observe(served())
			}
		})
	}
	scrape(t, o) // reads what the others count
	wg.Wait()
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(out.String()) {
		if n++; !json.Valid([]byte(line)) {
			t.Fatalf("torn line %q", line)
		}
	}
	if n != 3200 {
		t.Errorf("got %d lines, want 3200", n)
	}
}

func TestObserveAfterCloseDoesNothing(t *testing.T) {
	var out bytes.Buffer
	o := start(t, Options{Log: &out})
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Observe(served())
	if err := o.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if out.Len() != 0 {
		t.Errorf("got %q after Close, want nothing", &out)
	}
}

func TestAnAlertIsALineAndANumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := start(t, Options{Log: &out, Attempts: None})
		for range 40 {
			o.Observe(heed.Event{Kind: heed.AttemptDone, Endpoint: "wfs", Class: classify.Overloaded, Status: 503, Attempt: 1})
			time.Sleep(time.Second)
		}
		metrics := scrape(t, o)
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), `"alert":"outage_without_trip"`); n != 1 {
			t.Errorf("got %d alert lines, want 1:\n%s", n, &out)
		}
		if want := `heed_alerts_total{alert="outage_without_trip",endpoint="wfs"} 1`; !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	})
}

func TestABreakerThatStaysOpenIsNoSecondAlarm(t *testing.T) {
	opened, again := throttled(), throttled()
	opened.Kind, opened.Breaker, opened.Reason = heed.BreakerChanged, "open", "breaker-open"
	again.Kind, again.Breaker, again.Reason = heed.BreakerChanged, "open", heed.ProbeFailed
	got := logged(t, Options{}, opened, again)
	if n := strings.Count(got, `"level":"ERROR"`); n != 1 || !strings.Contains(got, `"level":"WARN","msg":"breaker stays open"`) {
		t.Errorf("got %d alarms, want one, and a warning that it stays open:\n%s", n, got)
	}
}

func TestACredentialThatIsNotGivenIsToldWithWhatItsIssuerSaid(t *testing.T) {
	got := logged(t, Options{}, heed.Event{
		Kind: heed.TokenRenewed, Time: noon, Endpoint: "crm", Status: 401, Rule: "invalid_client", Reason: "token-failed",
	})
	if !strings.Contains(got, `"status_code":401,"rule":"invalid_client"`) {
		t.Errorf("got %s, want status and cause", got)
	}
}
