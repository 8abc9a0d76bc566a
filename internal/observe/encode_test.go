package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
)

// asSlog writes e with the handlers of log/slog, key by key.
func asSlog(e *heed.Event, text bool) string {
	var out bytes.Buffer
	set := &slog.HandlerOptions{Level: slog.LevelDebug}
	var h slog.Handler = slog.NewJSONHandler(&out, set)
	if text {
		h = slog.NewTextHandler(&out, set)
	}
	secs := func(k string, d time.Duration) slog.Attr {
		return slog.Float64(k, float64(d.Microseconds())/1e6)
	}
	level, msg := title(e)
	r := slog.NewRecord(e.Time.UTC(), level, msg, 0)
	r.AddAttrs(
		slog.String("kind", e.Kind.String()), slog.String("endpoint", e.Endpoint),
		slog.String("method", e.Method), slog.String("path", e.Path.String()),
		slog.Int("attempt", e.Attempt), slog.Int("status_code", e.Status),
		slog.String("class", e.Class.String()), slog.String("executed", e.Executed.String()),
		slog.String("rule", e.Rule), slog.Bool("retry", e.Retry),
		secs("delay", e.Delay), secs("waited", e.Waited), slog.String("wait_source", string(e.WaitSource)),
		secs("retry_after", e.RetryAfter), slog.Int64("rate_limit_remaining", e.Remaining),
		slog.String("correlation_id", e.CorrelationID), slog.String("call_id", e.CallID.String()),
		slog.String("tenant", e.Tenant), secs("elapsed", e.Elapsed),
		slog.Int("wire_attempts", e.WireAttempts), slog.String("breaker", e.Breaker))
	_ = h.Handle(context.Background(), r)
	return out.String()
}

func TestALineEqualsWhatSlogPrints(t *testing.T) {
	odd := throttled()
	odd.CorrelationID = "q\"b\\s/\t\r\nü\u2028\u2029\x00\x1f\xff<&>😀"
	odd.Tenant = "a b=c"
	odd.Rule = "ünïcode"
	odd.Time = noon.In(time.FixedZone("x", 3600)).Truncate(time.Second)
	odd.Elapsed, odd.Delay, odd.Waited = time.Microsecond, 0, 86400*time.Second+time.Microsecond
	long := throttled()
	long.Elapsed, long.RetryAfter = 1234567*time.Second+891234*time.Microsecond, 999*time.Nanosecond
	for _, e := range []heed.Event{throttled(), odd, long} {
		level, msg := title(&e)
		l := &line{}
		l.put(&e, level, msg)
		if diff := cmp.Diff(string(l.end()), asSlog(&e, false)); diff != "" {
			t.Errorf("JSON (-got +slog):\n%s", diff)
		}
	}
}

func TestATextLineEqualsWhatSlogPrints(t *testing.T) {
	odd := throttled()
	odd.CorrelationID = "q\"b\\s/\t\r\nü\u2028\x00\xff😀"
	odd.Tenant = "a b=c"
	odd.Rule = `back\slash`
	for _, e := range []heed.Event{throttled(), odd} {
		level, msg := title(&e)
		l := &line{text: true}
		l.put(&e, level, msg)
		if diff := cmp.Diff(string(l.end()), asSlog(&e, true)); diff != "" {
			t.Errorf("text (-got +slog):\n%s", diff)
		}
	}
}

func FuzzJSONStringsDecodeToWhatWentIn(f *testing.F) {
	f.Add("plain")
	f.Add("a\"\\\n\x00\x7f\u009b\u2028\xff\xc2")
	f.Fuzz(func(t *testing.T, s string) {
		b := appendJSON(nil, s)
		var got string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q is no JSON: %v", b, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, r := range string(b) {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				t.Errorf("control character %U in %q", r, b)
			}
		}
	})
}

func FuzzBoundKeepsWholeRunes(f *testing.F) {
	f.Add(strings.Repeat("é", 100))
	f.Fuzz(func(t *testing.T, s string) {
		got := bound(s, maxTenant)
		if len(got) > maxTenant {
			t.Errorf("%d bytes, want at most %d", len(got), maxTenant)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q was cut within a character", got)
		}
	})
}

func TestSecondsAreDecimal(t *testing.T) {
	tests := map[time.Duration]string{
		0:                                 "0",
		time.Nanosecond:                   "0",
		time.Microsecond:                  "0.000001",
		-1500 * time.Millisecond:          "-1.5",
		90 * time.Minute:                  "5400",
		time.Second + 20*time.Millisecond: "1.02",
	}
	for d, want := range tests {
		l := &line{}
		l.secs("k", d)
		if got := string(l.b); got != `,"k":`+want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
