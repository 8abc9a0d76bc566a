package hint

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 7, 15, 2, 14, 0, 0, time.UTC)

// headers makes a header of name, value pairs.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func asked(wait time.Duration, odd Flags) Hint {
	return Hint{Wait: wait, HasWait: true, From: "Retry-After", Flags: odd}
}

var ignored = Hint{Flags: Malformed}

const six = 6 * time.Minute

// The values of Retry-After that clients in the field disagree about.
var retryAfterValues = map[string]Hint{
	"120":      asked(2*time.Minute, 0),
	"00120":    asked(2*time.Minute, 0),
	"0":        asked(0, 0),
	" 120 ":    asked(2*time.Minute, 0),
	"\t120\t":  asked(2*time.Minute, 0),
	"+120":     asked(2*time.Minute, Lenient),
	"-5":       ignored,
	"1.5":      asked(1500*time.Millisecond, Lenient),
	"120.0":    asked(2*time.Minute, Lenient),
	"1.":       asked(time.Second, Lenient),
	".5":       ignored,
	"0.503":    asked(503*time.Millisecond, Lenient),
	"0.0001":   asked(time.Millisecond, Lenient),
	"1e2":      ignored,
	"0x10":     ignored,
	"1_000":    ignored,
	"120s":     ignored,
	"120;x":    ignored,
	"12abc":    ignored,
	"120, 240": asked(4*time.Minute, Repeated),
	"30,":      asked(30*time.Second, Repeated),
	"soon, 30": asked(30*time.Second, Repeated),
	`"120"`:    ignored,
	"\xb2":     ignored,
	"²":        ignored,
	"NaN":      ignored,
	"inf":      ignored,
	"Infinity": ignored,
	"2147484":  asked(2147484*time.Second, 0),

	"9223372037":           asked(MaxWait, EpochGuess|Saturated),
	"99999999999":          asked(MaxWait, EpochGuess|Saturated),
	"9223372036854775808":  asked(MaxWait, EpochGuess|Saturated),
	"18446744073709551616": asked(MaxWait, EpochGuess|Saturated),
	"1784081880":           asked(4*time.Minute, EpochGuess),
	"1784081880000":        asked(4*time.Minute, EpochGuess),
	"1000000000":           asked(0, EpochGuess|Past),
	"999999999":            asked(MaxWait, Saturated),

	"18446744073709551616x":   ignored,
	strings.Repeat("9", 400):  asked(MaxWait, EpochGuess|Saturated),
	strings.Repeat("x", 8192): ignored,

	"Wed, 15 Jul 2026 02:20:00 GMT":      asked(six, 0),
	"Wednesday, 15-Jul-26 02:20:00 GMT":  asked(six, 0),
	"Wed Jul 15 02:20:00 2026":           asked(six, 0),
	"Sat Aug  1 02:14:00 2026":           asked(17*24*time.Hour, 0),
	"Thu, 15 Jul 2026 02:20:00 GMT":      asked(six, Lenient),
	"Wed, 15 Jul 2026 02:20:00 UTC":      asked(six, Lenient),
	"Wed, 15 Jul 2026 02:20:00 +0000":    asked(six, Lenient),
	"Wed, 15 Jul 2026 04:20:00 +0200":    asked(six, Lenient),
	"Tue, 14 Jul 2026 21:20:00 -05:00":   asked(six, Lenient),
	"15 Jul 2026 02:20:00 GMT":           asked(six, Lenient),
	"wed, 15 jul 2026 02:20:00 gmt":      asked(six, Lenient),
	"Wed, 15-Jul-2026 02:20:00 GMT":      asked(six, Lenient),
	"Sat, 1 Aug 2026 02:14:00 GMT":       asked(17*24*time.Hour, Lenient),
	"Wed, 15 Jul 2026 02:19:60 GMT":      asked(six, 0),
	"Wed, 15 Jul 2026 25:20:00 GMT":      ignored,
	"Wed, 31 Jun 2026 02:20:00 GMT":      ignored,
	"Wed, 15 Jul 2026 02:20:00":          ignored,
	"Wed, 15 Jul 2026 02:20:00 EST":      ignored,
	"Wed, 15 Jul 26":                     ignored,
	"Fri, 31 Dec 1999 23:59:59 GMT":      asked(0, Past),
	"Fri, 31 Dec 9999 23:59:59 GMT":      asked(MaxWait, Saturated),
	"Friday, 31-Dec-99 23:59:59 GMT":     asked(0, Past),
	"2026-07-15T02:20:00Z":               asked(six, Lenient),
	"2026-07-15T02:20Z":                  asked(six, Lenient),
	"2026-07-15 04:20:00.000+02:00":      asked(six, Lenient),
	"2026-07-15":                         ignored,
	"Wed, 15 Jul 2026 02:20:00 GMT, 500": asked(500*time.Second, Repeated),

	"30, Wed, 15 Jul 2026 02:20:00 GMT": asked(six, Repeated),

	"":      ignored,
	"soon":  ignored,
	"PT2M":  ignored,
	"2m0s":  ignored,
	"Wed,":  ignored,
	"+":     ignored,
	", , ,": {Flags: Malformed | Repeated},
}

func TestRetryAfter(t *testing.T) {
	for value, want := range retryAfterValues {
		name := value[:min(len(value), 40)]
		t.Run(name, func(t *testing.T) {
			got := (*Reader)(nil).Read(headers("Retry-After", value), now)
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("Retry-After: %s (-got +want):\n%s", name, diff)
			}
		})
	}
}

func TestTwoRetryAfterLinesGiveTheLongest(t *testing.T) {
	got := (&Reader{}).Read(headers("retry-after", "240", "Retry-After", "120"), now)
	if want := asked(4*time.Minute, Repeated); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMalformedLineDoesNotSpoilAValidOne(t *testing.T) {
	got := (&Reader{}).Read(headers("Retry-After", "soon", "Retry-After", "120"), now)
	if want := asked(2*time.Minute, Repeated); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDatesAreMeasuredAgainstTheDateOfTheAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		skew time.Duration
		want time.Duration
		odd  Flags
	}{
		{"an hour behind", -time.Hour, 30 * time.Second, Skewed},
		{"an hour ahead", time.Hour, 30 * time.Second, Skewed},
		{"ten seconds behind", -10 * time.Second, 30 * time.Second, 0},
		{"a day behind is not believed", -24 * time.Hour, 0, Skewed | Past},
		{"a day ahead is not believed", 24 * time.Hour, 24*time.Hour + 30*time.Second, Skewed},
	} {
		t.Run(c.name, func(t *testing.T) {
			date := now.Add(c.skew)
			got := (&Reader{}).Read(headers(
				"Date", date.Format(http.TimeFormat),
				"Retry-After", date.Add(30*time.Second).Format(http.TimeFormat)), now)
			if want := asked(c.want, c.odd); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestUnreadableDateIsNoReference(t *testing.T) {
	got := (&Reader{}).Read(headers("Date", "yesterday", "Retry-After", "Wed, 15 Jul 2026 02:20:00 GMT"), now)
	if want := asked(6*time.Minute, 0); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDeltaSecondsDoNotDependOnTheClock(t *testing.T) {
	got := (&Reader{}).Read(headers("Date", "Wed, 15 Jul 2026 05:00:00 GMT", "Retry-After", "120"), now)
	if want := asked(2*time.Minute, 0); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFirstUsableWaitSourceWins(t *testing.T) {
	r, problems := NewReader(append([]Source{
		{Header: "retry-after-ms", Field: Wait, Format: Millis},
		{Header: "X-RateLimit-Reset-Requests", Field: Wait, Format: GoDuration},
	}, Standard()...))
	if problems != nil {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		name   string
		header http.Header
		want   Hint
	}{
		{"the first", headers("Retry-After-Ms", "36500", "Retry-After", "37"),
			Hint{Wait: 36500 * time.Millisecond, HasWait: true, From: "Retry-After-Ms"}},
		{"the second where the first is malformed", headers("Retry-After-Ms", "soon", "X-Ratelimit-Reset-Requests", "6m0s"),
			Hint{Wait: 6 * time.Minute, HasWait: true, From: "X-Ratelimit-Reset-Requests", Flags: Malformed}},
		{"the last where the others are absent", headers("Retry-After", "37"), asked(37*time.Second, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(r.Read(c.header, now), c.want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

type parsed struct {
	Wait time.Duration
	Odd  Flags
	OK   bool
}

func good(d time.Duration) parsed { return parsed{Wait: d, OK: true} }

// The odd values of vendor headers and bodies seen in the wild.
var waitTexts = []struct {
	format Format
	text   string
	want   parsed
}{
	{Seconds, "0.493", good(493 * time.Millisecond)},
	{Seconds, "292.052427053", good(292053 * time.Millisecond)},
	{Seconds, "299.997", good(299997 * time.Millisecond)},
	{Seconds, "2.0", good(2 * time.Second)},
	{Seconds, "2.128", good(2128 * time.Millisecond)},
	{Seconds, "64.57", good(64570 * time.Millisecond)},
	{Seconds, "0.99999999999", good(time.Second)},
	{Seconds, "+3", parsed{3 * time.Second, Lenient, true}},
	{Seconds, "-3", parsed{}},
	{Seconds, "Wed, 15 Jul 2026 02:20:00 GMT", parsed{}},
	{Seconds, "1784081880", parsed{4 * time.Minute, EpochGuess, true}},
	{Seconds, "", parsed{}},
	{Millis, "36500", good(36500 * time.Millisecond)},
	{Millis, "0", good(0)},
	{Millis, "0.5", good(time.Millisecond)},
	{Millis, "1784081880000", parsed{4 * time.Minute, EpochGuess, true}},
	{Millis, "-1", parsed{}},
	{EpochSeconds, "1784081880", good(4 * time.Minute)},
	{EpochSeconds, "1784081880.123", good(4*time.Minute + 123*time.Millisecond)},
	{EpochSeconds, "1784081880000", parsed{4 * time.Minute, EpochGuess, true}},
	{EpochSeconds, "1470173023.123", parsed{0, Past, true}},
	{EpochSeconds, "41", parsed{}},
	{EpochSeconds, "0", parsed{}},
	{EpochSeconds, "soon", parsed{}},
	{EpochSeconds, "999999999999999999999", parsed{MaxWait, Saturated | EpochGuess, true}},
	{EpochMillis, "1784081880500", good(4*time.Minute + 500*time.Millisecond)},
	{EpochMillis, "1784081880", parsed{4 * time.Minute, EpochGuess, true}},
	{ISO8601, "2026-07-15T02:20:00Z", good(6 * time.Minute)},
	{ISO8601, "2026-07-15T02:20Z", good(6 * time.Minute)},
	{ISO8601, "2026-07-15 02:20:00", good(6 * time.Minute)},
	{ISO8601, "2026-07-15T02:20:00.250Z", good(6*time.Minute + 250*time.Millisecond)},
	{ISO8601, "2026-07-15t03:20:00+0100", good(6 * time.Minute)},
	{ISO8601, "2026-07-15 02:20:00 UTC", good(6 * time.Minute)},
	{ISO8601, "2026-13-15T02:20:00Z", parsed{}},
	{ISO8601, "2026-02-29T02:20:00Z", parsed{}},
	{ISO8601, "2026-07-15T24:00:00Z", parsed{}},
	{ISO8601, "2026-07-15T02:20:Z", parsed{}},
	{HTTPDate, "Wed, 15 Jul 2026 02:20:00 GMT", good(6 * time.Minute)},
	{HTTPDate, "120", parsed{}},
	{GoDuration, "6m0s", good(6 * time.Minute)},
	{GoDuration, "17ms", good(17 * time.Millisecond)},
	{GoDuration, "7.66s", good(7660 * time.Millisecond)},
	{GoDuration, "1m26.4s", good(86400 * time.Millisecond)},
	{GoDuration, "1d2h", good(26 * time.Hour)},
	{GoDuration, "150µs", good(time.Millisecond)},
	{GoDuration, "3", good(3 * time.Second)},
	{GoDuration, "60", good(time.Minute)},
	{GoDuration, "1784081880", parsed{4 * time.Minute, EpochGuess, true}},
	{GoDuration, "1.", good(time.Second)},
	{GoDuration, "+3", parsed{3 * time.Second, Lenient, true}},
	{GoDuration, "99999999999h", parsed{MaxWait, Saturated, true}},
	{GoDuration, "80000h80000h", parsed{MaxWait, Saturated, true}},
	{GoDuration, "-6m", parsed{}},
	{GoDuration, "6x", parsed{}},
	{GoDuration, "6m0", parsed{}},
	{GoDuration, "", parsed{}},
	{ProtoDuration, "31s", good(31 * time.Second)},
	{ProtoDuration, "0.1s", good(100 * time.Millisecond)},
	{ProtoDuration, "0s", good(0)},
	{ProtoDuration, "31", parsed{}},
	{ProtoDuration, "-1s", parsed{}},
	{KeyValue, "total=100; remaining=99; resets=41", good(41 * time.Second)},
	{RetryAfter, "37", good(37 * time.Second)},
	{Number, "37", parsed{}},
	{Structured, `"a";r=1;t=2`, parsed{}},
	{"unheard of", "37", parsed{}},
}

func TestParseWait(t *testing.T) {
	for _, c := range waitTexts {
		t.Run(string(c.format)+" "+c.text, func(t *testing.T) {
			d, odd, ok := ParseWait(c.format, []string{c.text}, now)
			if diff := cmp.Diff(parsed{d, odd, ok}, c.want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestTwoDigitYearMoreThanFiftyYearsAheadIsPast(t *testing.T) {
	for s, want := range map[string]int{
		"Wednesday, 15-Jul-76 02:20:00 GMT": 2076,
		"Friday, 15-Jul-77 02:20:00 GMT":    1977,
	} {
		got, ok := ParseDate(s, now)
		if !ok || got.Year() != want {
			t.Errorf("%s: got %d, %t, want %d", s, got.Year(), ok, want)
		}
	}
}
