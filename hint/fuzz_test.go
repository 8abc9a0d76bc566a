package hint

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sound fails if a hint holds what no server can have meant.
func sound(t *testing.T, h Hint) {
	t.Helper()
	for _, d := range []time.Duration{h.Wait, h.Reset, h.Window} {
		if d < 0 || d > MaxWait {
			t.Errorf("got %v, want a duration from 0 to MaxWait", d)
		}
	}
	if h.Remaining < 0 || h.Limit < 0 {
		t.Errorf("got remaining %d of %d, want nothing negative", h.Remaining, h.Limit)
	}
	if !h.HasWait && h.Wait != 0 || !h.HasReset && h.Reset != 0 || !h.HasRemaining && h.Remaining != 0 {
		t.Errorf("got a value that is not said: %+v", h)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"120", "0", "1.5", "120, 240", "soon", "+3", "-5", "99999999999", "1784081880",
		"Wed, 15 Jul 2026 02:20:00 GMT", "Wednesday, 15-Jul-26 02:20:00 GMT", "Wed Jul 15 02:20:00 2026",
		"2026-07-15T02:20:00Z", "Wed, 15 Jul 2026 02:19:60 +0200", ", ,", "Wed,"} {
		f.Add(v, "Wed, 15 Jul 2026 02:14:00 GMT")
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := (*Reader)(nil).Read(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		sound(t, h)
		if h.HasWait == (h.Flags&Malformed != 0) {
			t.Errorf("%q: got %+v, want either a wait or Malformed", value, h)
		}
		if h.HasWait && !strings.ContainsAny(value, "0123456789") {
			t.Errorf("%q: got %v, but no number and no date asks for it", value, h.Wait)
		}
		if _, err := strconv.ParseFloat(strings.Trim(value, " \t"), 64); err != nil &&
			h.HasWait && !strings.ContainsAny(value, ",:") {
			t.Errorf("%q: got %v from what is neither a number nor a date", value, h.Wait)
		}
	})
}

func FuzzWholeSecondsAreTakenAtTheirWord(f *testing.F) {
	for _, n := range []uint32{0, 1, 120, 2147484, 315360000, 999999999} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n uint32) {
		n %= firstEpoch
		h := (*Reader)(nil).Read(http.Header{"Retry-After": {strconv.Itoa(int(n))}}, now)
		if want := min(time.Duration(n)*time.Second, MaxWait); !h.HasWait || h.Wait != want {
			t.Errorf("%d: got %v, want %v", n, h.Wait, want)
		}
	})
}

func FuzzQuota(f *testing.F) {
	for _, v := range []string{`"default";r=50;t=30`, `default;r=50`, "limit=100, remaining=50, reset=5", "100;w=60",
		"10, 10;w=1, 50;w=60", "total=100; remaining=99; resets=41", "32/40", "-1", "1784081880", `"a";r=0;t=999999999999999`} {
		f.Add(v, v, "0")
	}
	r, _ := NewReader(append([]Source{
		{Header: "A", Field: Quota, Format: KeyValue},
		{Header: "B", Field: Quota, Format: UsedTotal},
		{Header: "C", Field: Quota, Format: UsedTotal, Key: "per-app"},
		{Header: "D", Field: Used, Format: Number},
		{Header: "E", Field: Window, Format: GoDuration},
	}, Standard()...))
	f.Fuzz(func(t *testing.T, a, b, age string) {
		h := http.Header{"Age": {age}}
		for _, name := range []string{"Ratelimit", "Ratelimit-Policy", "A", "B", "C", "D", "E"} {
			h[name] = []string{a, b}
		}
		sound(t, r.Read(h, now))
		for _, name := range []string{"Ratelimit-Limit", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			h = http.Header{name: {b}, "Ratelimit-Policy": {a}}
			sound(t, r.Read(h, now))
		}
		if !strings.ContainsAny(a+b, "0123456789") && r.Read(h, now) != (Hint{}) {
			t.Errorf("%q, %q: got a hint without a number", a, b)
		}
	})
}

func FuzzParseWait(f *testing.F) {
	for _, format := range times {
		for _, v := range []string{"6m0s", "31s", "1.5", "1784081880", "2026-07-15T02:20Z", "resets=4", "9e9", "-1"} {
			f.Add(string(format), v)
		}
	}
	f.Fuzz(func(t *testing.T, format, text string) {
		d, _, ok := ParseWait(Format(format), []string{text}, now)
		if d < 0 || d > MaxWait || !ok && d != 0 {
			t.Errorf("%s %q: got %v, %t", format, text, d, ok)
		}
		if ok && !strings.ContainsAny(text, "0123456789") {
			t.Errorf("%s %q: got %v without a number", format, text, d)
		}
	})
}
