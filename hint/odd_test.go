package hint

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// heard is what a Reader made of a header, less where it stood.
type heard struct {
	Wait, Reset            time.Duration
	HasWait, HasReset      bool
	Remaining, Limit       int64
	HasRemaining, HasLimit bool
	Window                 time.Duration
}

func hear(h Hint) heard {
	return heard{Wait: h.Wait, HasWait: h.HasWait, Reset: h.Reset, HasReset: h.HasReset, Remaining: h.Remaining,
		HasRemaining: h.HasRemaining, Limit: h.Limit, HasLimit: h.HasLimit, Window: h.Window}
}

func wait(d time.Duration) heard  { return heard{Wait: d, HasWait: true} }
func reset(d time.Duration) heard { return heard{Reset: d, HasReset: true} }

// The values that servers have really sent and that clients stumbled over, each
// under the name of its header, with the reading that neither hammers nor
// stands still.
var seenInTheWild = []struct {
	name   string
	source Source // beside the standard ones; zero: none
	header http.Header
	want   heard
}{
	{"SpaceTraders, a part of a second", Source{}, headers("Retry-After", "0.503"), wait(503 * time.Millisecond)},
	{"SpaceTraders, another", Source{}, headers("Retry-After", "0.493"), wait(493 * time.Millisecond)},
	{"Sentry", Source{}, headers("Retry-After", "292.052427053"), wait(292053 * time.Millisecond)},
	{"OpenSearch", Source{}, headers("Retry-After", "299.997"), wait(299997 * time.Millisecond)},
	{"Shopify", Source{}, headers("Retry-After", "2.0"), wait(2 * time.Second)},
	{"Microsoft Graph", Source{}, headers("Retry-After", "2.128"), wait(2128 * time.Millisecond)},
	{"a point without digits", Source{}, headers("Retry-After", "1."), wait(time.Second)},
	{"a plus", Source{}, headers("Retry-After", "+3"), wait(3 * time.Second)},
	{"a minus is no year", Source{}, headers("Retry-After", "-3"), heard{}},
	{"one and a half is no year", Source{}, headers("Retry-After", "1.5"), wait(1500 * time.Millisecond)},
	{"Maven Central, nothing", Source{}, headers("Retry-After", "0"), wait(0)},
	{"the past", Source{}, headers("Retry-After", "Wed, 15 Jul 2026 02:13:59 GMT"), wait(0)},
	{"Attio, the next second", Source{}, headers("Date", "Wed, 15 Jul 2026 02:14:07 GMT", "Retry-After", "Wed, 15 Jul 2026 02:14:08 GMT"), wait(time.Second)},
	{"ClawHub, a Unix time", Source{}, headers("Retry-After", "1784081880"), wait(4 * time.Minute)},
	{"a Unix time in milliseconds", Source{}, headers("Retry-After", "1784081880000"), wait(4 * time.Minute)},
	{"huge", Source{}, headers("Retry-After", "999999999"), wait(MaxWait)},
	{"a negative that is huge", Source{}, headers("Retry-After", "-1784081880"), heard{}},
	{"GitHub, blank for the first seconds", Source{}, headers("Retry-After", ""), heard{}},
	{"garbage", Source{}, headers("Retry-After", "soon"), heard{}},
	{"no number", Source{}, headers("Retry-After", "NaN"), heard{}},
	{"several lines", Source{}, headers("Retry-After", "", "Retry-After", "3", "Retry-After", "9"), wait(9 * time.Second)},
	{"milliseconds of nothing", Source{Header: "x-rate-limit-resets-in-ms", Field: Wait, Format: Millis},
		headers("X-Rate-Limit-Resets-In-Ms", "0"), wait(0)},
	{"milliseconds", Source{Header: "retry-after-ms", Field: Wait, Format: Millis}, headers("Retry-After-Ms", "36500", "Retry-After", "37"), wait(36500 * time.Millisecond)},
	{"Helix ALM, no hyphen", Source{Header: "RetryAfter", Field: Wait, Format: RetryAfter}, headers("RetryAfter", "17"), wait(17 * time.Second)},
	{"agent.ai, a limit said twice", Source{}, headers("RateLimit-Limit", "1000: 1000"), heard{Limit: 1000, HasLimit: true}},
	{"a broken date", Source{Header: "X-RateLimit-Retry-After", Field: Wait, Format: RetryAfter},
		headers("X-RateLimit-Retry-After", "2026-07-15T02:2"), heard{}},
	{"Azure, a sentinel", Source{Header: "x-ratelimit-remaining-tokens", Field: Remaining, Format: Number, Ignore: []string{"-1"}},
		headers("X-RateLimit-Remaining-Tokens", "-1"), heard{}},
	{"GitHub Models, a bare number for a duration", Source{Header: "x-ratelimit-reset-requests", Field: Reset, Format: GoDuration},
		headers("X-RateLimit-Reset-Requests", "3"), reset(3 * time.Second)},
	{"GitHub Models, a word", Source{Header: "x-ratelimit-abusepenalty-active", Field: Remaining, Format: Number},
		headers("X-RateLimit-Abusepenalty-Active", "False"), heard{}},
	{"OpenAI", Source{Header: "x-ratelimit-reset-requests", Field: Reset, Format: GoDuration},
		headers("X-RateLimit-Reset-Requests", "6m0s"), reset(6 * time.Minute)},
	{"OpenAI, milliseconds", Source{Header: "x-ratelimit-reset-tokens", Field: Reset, Format: GoDuration},
		headers("X-RateLimit-Reset-Tokens", "17ms"), reset(17 * time.Millisecond)},
	{"Groq", Source{Header: "x-ratelimit-reset-tokens", Field: Reset, Format: GoDuration},
		headers("X-RateLimit-Reset-Tokens", "1m26.4s"), reset(86400 * time.Millisecond)},
	{"Jira, no seconds", Source{}, headers("X-RateLimit-Reset", "2026-07-15T02:20Z"), reset(6 * time.Minute)},
	{"Crossref, an interval with a unit", Source{Header: "X-Rate-Limit-Interval", Field: Window, Format: GoDuration},
		headers("X-Rate-Limit-Interval", "1s"), heard{Window: time.Second}},
	{"Mapbox, an interval without", Source{Header: "X-Rate-Limit-Interval", Field: Window, Format: GoDuration},
		headers("X-Rate-Limit-Interval", "60"), heard{Window: time.Minute}},
	{"MailerLite, a date for a reset", Source{}, headers("X-RateLimit-Reset", "2026-07-15 02:20:00"), reset(6 * time.Minute)},
	{"Discord, a Unix time with a fraction", Source{Header: "X-RateLimit-Reset", Field: Reset, Format: EpochSeconds},
		headers("X-RateLimit-Reset", "1784081880.123"), reset(4*time.Minute + 123*time.Millisecond)},
	{"GitHub, one layout of two", Source{Header: "X-Until", Field: Wait, Format: ISO8601}, headers("X-Until", "2026-07-15 02:20:00 UTC"), wait(6 * time.Minute)},
	{"GitHub, the other", Source{Header: "X-Until", Field: Wait, Format: ISO8601}, headers("X-Until", "2026-07-15 04:20:00 +0200"), wait(6 * time.Minute)},
	{"google.rpc", Source{Header: "X-Delay", Field: Wait, Format: ProtoDuration}, headers("X-Delay", "0.1s"), wait(100 * time.Millisecond)},
	{"Cloudflare", Source{}, headers("Ratelimit", `"default";r=50;t=30`), heard{Remaining: 50, HasRemaining: true, Reset: 30 * time.Second, HasReset: true}},
	{"Jira, the most pressing of a list", Source{}, headers("RateLimit", `"global";r=11000;t=600, "tenant";r=0;t=30`),
		heard{Remaining: 0, HasRemaining: true, Reset: 30 * time.Second, HasReset: true}},
	{"Jira, far from the limit", Source{}, headers("RateLimit", `"global";t=600`), heard{}},
	{"Zendesk", Source{Header: "zendesk-ratelimit-tickets-index", Field: Quota, Format: KeyValue},
		headers("Zendesk-Ratelimit-Tickets-Index", "total=100; remaining=99; resets=41"),
		heard{Limit: 100, HasLimit: true, Remaining: 99, HasRemaining: true, Reset: 41 * time.Second, HasReset: true}},
	{"Salesforce", Source{Header: "Sforce-Limit-Info", Field: Quota, Format: UsedTotal, Key: "api-usage"},
		headers("Sforce-Limit-Info", "api-usage=25/5000; per-app-api-usage=17/250(appName=x)"),
		heard{Limit: 5000, HasLimit: true, Remaining: 4975, HasRemaining: true}},
	{"Shopify, used of all", Source{Header: "X-Shopify-Shop-Api-Call-Limit", Field: Quota, Format: UsedTotal},
		headers("X-Shopify-Shop-Api-Call-Limit", "32/40"), heard{Limit: 40, HasLimit: true, Remaining: 8, HasRemaining: true}},
}

func TestValuesSeenInTheWild(t *testing.T) {
	for _, row := range seenInTheWild {
		t.Run(row.name, func(t *testing.T) {
			sources := Standard()
			if row.source.Header != "" {
				sources = append([]Source{row.source}, sources...)
			}
			r, problems := NewReader(sources)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(hear(r.Read(row.header, now)), row.want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestOddThingsHaveWords(t *testing.T) {
	got := (Malformed | Skewed | EpochGuess).Words()
	if diff := cmp.Diff(got, []string{"malformed", "read as a unix time", "skewed clock"}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestSeveralTextsGiveTheLongestThatCanBeRead(t *testing.T) {
	d, odd, ok := ParseWait(Seconds, []string{"soon", "3", "-9", "7"}, now)
	if diff := cmp.Diff(parsed{d, odd, ok}, parsed{7 * time.Second, Repeated, true}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
	if d, _, ok := ParseWait(KeyValue, []string{"total=1", "resets=41"}, now); !ok || d != 41*time.Second {
		t.Errorf("got %v, %t, want 41s", d, ok)
	}
}

func TestAMemberIsFoundByItsKey(t *testing.T) {
	for key, want := range map[string]string{"resets": "41", "RESETS": "41", "left": ""} {
		if got := Member("total=100; resets=41", key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}
