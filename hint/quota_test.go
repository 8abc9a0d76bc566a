package hint

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// left makes the Hint of a limit, what remains of it and a reset in seconds;
// -1 stands for not said.
func left(limit, remaining, reset int64) Hint {
	var h Hint
	if limit >= 0 {
		h.Limit, h.HasLimit = limit, true
	}
	if remaining >= 0 {
		h.Remaining, h.HasRemaining = remaining, true
	}
	if reset >= 0 {
		h.Reset, h.HasReset = time.Duration(reset)*time.Second, true
	}
	return h
}

// numbers compares what is told and leaves out by which header.
var numbers = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "ResetFrom" }, cmp.Ignore())

func within(h Hint, window time.Duration) Hint {
	h.Window = window
	return h
}

func TestRateLimitField(t *testing.T) {
	for value, want := range map[string]Hint{
		`"default";r=50;t=30`:             left(-1, 50, 30),
		`default;r=50;t=30`:               left(-1, 50, 30),
		`"d";t=1`:                         {},
		`"d";r=50.0`:                      {},
		`"d";r=-1`:                        {},
		`"d";r="5"`:                       {},
		`"d";r=?1`:                        {},
		`"d";r`:                           {},
		`"d" ;r=5`:                        {},
		`"d";r =5`:                        {},
		`"d"; r=5`:                        left(-1, 5, -1),
		`"d";R=5`:                         {},
		`"d";r=5;r=1`:                     left(-1, 1, -1),
		`"d";r=1,`:                        {},
		`,"d";r=1`:                        {},
		`'d';r=1`:                         {},
		`“d”;r=1`:                         {},
		`"d";r=5;t=-1`:                    left(-1, 5, -1),
		`"d";r=5;t=2.5`:                   left(-1, 5, -1),
		`"a";r=50;t=1, "b";r=0;t=9`:       left(-1, 0, 9),
		`"a";r=0;t=1, "b";r=0;t=9`:        left(-1, 0, 9),
		`"a";t=3, "b";r=7;t=9`:            left(-1, 7, 9),
		`"sliding";q=12;r=6;t=1`:          left(12, 6, 1),
		`"d";r=5;pk=:aGVlZA==:;x=@12;y=a`: left(-1, 5, -1),
		`"d";r=5;pk=:a`:                   {},
		`"a \"b\" \\";r=5`:                left(-1, 5, -1),
		`"a\b";r=5`:                       {},
		`limit=10, remaining=5, reset=30`: left(10, 5, 30),
		`limit=10, remaining=x, reset=30`: left(10, -1, 30),
		`remaining=-1`:                    {},
		`100;w=60`:                        within(left(100, -1, -1), time.Minute),
		`"d";r=1234567890123456`:          {},
		`"d";r=999999999999999;t=1`:       left(-1, maxCount, 1),
		``:                                {},
		`"`:                               {},
	} {
		t.Run(value, func(t *testing.T) {
			if diff := cmp.Diff((&Reader{}).Read(headers("RateLimit", value), now), want, numbers); diff != "" {
				t.Errorf("RateLimit: %s (-got +want):\n%s", value, diff)
			}
		})
	}
}

var quotaHeaders = []struct {
	name   string
	header http.Header
	want   Hint
}{
	{"RateLimit lines are one list",
		headers("RateLimit", `"a";r=5;t=3`, "RateLimit", `"b";r=2;t=4`), left(-1, 2, 4)},
	{"a bad RateLimit line spoils the field",
		headers("RateLimit", `"a";r=5`, "RateLimit", `;`), Hint{}},
	{"the policy of the binding item gives limit and window",
		headers("RateLimit", `"day";r=100;t=60, "burst";r=3;t=2`, "RateLimit-Policy", `"burst";q=10;w=5, "day";q=1000;w=86400`),
		within(left(10, 3, 2), 5*time.Second)},
	{"more than the policy has is cut to it",
		headers("RateLimit", `"d";r=10000;t=10`, "RateLimit-Policy", `"d";q=100;w=1000`),
		within(left(100, 100, 10), 1000*time.Second)},
	{"bytes are not requests",
		headers("RateLimit", `"size";r=5;t=9, "d";r=50;t=1`, "RateLimit-Policy", `"size";q=10;qu="content-bytes", "d";q=60`),
		left(60, 50, 1)},
	{"no bytes left stops requests too",
		headers("RateLimit", `"size";r=0;t=9`, "RateLimit-Policy", `"size";q=10;qu="content-bytes"`), left(-1, 0, 9)},
	{"a policy alone tells limit and window of the strictest",
		headers("RateLimit-Policy", `"hour";q=1000;w=3600, "sec";q=5;w=1, "free";q=1`),
		within(left(1000, -1, -1), time.Hour)},
	{"the old policy form", headers("RateLimit-Policy", "100;w=60"), within(left(100, -1, -1), time.Minute)},
	{"draft -07 with its policy",
		headers("RateLimit", "limit=100, remaining=50, reset=5", "RateLimit-Policy", "100;w=60"),
		within(left(100, 50, 5), time.Minute)},
	{"the three fields of drafts -02 to -06",
		headers("RateLimit-Limit", "10, 10;w=1, 50;w=60", "RateLimit-Remaining", "7", "RateLimit-Reset", "1"),
		within(left(10, 7, 1), time.Second)},
	{"a limit written twice", headers("RateLimit-Limit", "1000: 1000"), left(1000, -1, -1)},
	{"reset as delta seconds", headers("X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "41"), left(-1, 3, 41)},
	{"reset as epoch seconds", headers("X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "1784081880"), left(-1, 3, 240)},
	{"reset as epoch milliseconds", headers("X-RateLimit-Reset", "1784081880000"), left(-1, -1, 240)},
	{"reset as ISO time", headers("X-RateLimit-Reset", "2026-07-15T02:20Z"), left(-1, -1, 360)},
	{"reset as HTTP-date", headers("X-RateLimit-Reset", "Wed, 15 Jul 2026 02:20:00 GMT"), left(-1, -1, 360)},
	{"reset in the past", headers("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1784081000"), left(-1, 0, 0)},
	{"garbage has no effect",
		headers("X-RateLimit-Limit", "many", "X-RateLimit-Remaining", "some", "X-RateLimit-Reset", "later"), Hint{}},
	{"negative numbers are dropped",
		headers("X-RateLimit-Limit", "-1", "X-RateLimit-Remaining", "-1", "X-RateLimit-Reset", "-1"), Hint{}},
	{"a limit of nothing is no limit", headers("X-RateLimit-Limit", "0"), Hint{}},
	{"of two lines the smaller counts",
		headers("X-RateLimit-Remaining", "9", "X-RateLimit-Remaining", "2"), left(-1, 2, -1)},
	{"the other spelling", headers("X-Rate-Limit-Limit", "60", "X-Rate-Limit-Remaining", "59", "X-Rate-Limit-Reset", "5"),
		left(60, 59, 5)},
	{"the newer field counts before the older",
		headers("X-RateLimit-Remaining", "9", "RateLimit", `"d";r=4;t=2`), left(-1, 4, 2)},
	{"a quota that is used up counts before all others",
		headers("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9", "RateLimit", `"d";r=4;t=2`), left(-1, 0, 9)},
	{"a policy alone gives way to a quota",
		headers("X-RateLimit-Remaining", "9", "RateLimit-Policy", `"d";q=100`), left(-1, 9, -1)},
	{"from a cache it says nothing", headers("RateLimit", `"d";r=0;t=30`, "Age", "1"), Hint{}},
	{"an age of zero is fresh", headers("RateLimit", `"d";r=0;t=30`, "Age", "0"), left(-1, 0, 30)},
	{"an invalid age is no age", headers("RateLimit", `"d";r=0;t=30`, "Age", "old"), left(-1, 0, 30)},
	{"huge numbers are bounded", headers("X-RateLimit-Remaining", "99999999999999999999"), left(-1, maxCount, -1)},
}

func TestQuotaHeaders(t *testing.T) {
	for _, c := range quotaHeaders {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff((&Reader{}).Read(c.header, now), c.want, numbers); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestEndlessListSaysNothing(t *testing.T) {
	got := (&Reader{}).Read(headers("RateLimit", strings.Repeat(`"a";r=1, `, 1000)+`"a";r=1`), now)
	if got != (Hint{}) {
		t.Errorf("got %+v, want no hint", got)
	}
}

func TestRetryAfterStandsBesideTheQuota(t *testing.T) {
	got := (&Reader{}).Read(headers("RateLimit", `"d";r=0;t=30`, "Retry-After", "12"), now)
	want := left(-1, 0, 30)
	want.Wait, want.HasWait, want.From = 12*time.Second, true, "Retry-After"
	if diff := cmp.Diff(got, want, numbers); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

var vendorSources = []struct {
	name    string
	sources []Source
	header  http.Header
	want    Hint
}{
	{"Zendesk key=value", []Source{{Header: "Zendesk-RateLimit-Tickets-Index", Field: Quota, Format: KeyValue}},
		headers("Zendesk-RateLimit-Tickets-Index", "total=100; remaining=99; resets=41"), left(100, 99, 41)},
	{"one member of a list", []Source{{Header: "X-Quota", Field: Remaining, Format: KeyValue, Key: "free"}},
		headers("X-Quota", "all=9;free=4"), left(-1, 4, -1)},
	{"Shopify used/total", []Source{{Header: "X-Shopify-Shop-Api-Call-Limit", Field: Quota, Format: UsedTotal}},
		headers("X-Shopify-Shop-Api-Call-Limit", "32/40"), left(40, 8, -1)},
	{"used beyond the total leaves nothing", []Source{{Header: "X-Calls", Field: Quota, Format: UsedTotal}},
		headers("X-Calls", "41/40"), left(40, 0, -1)},
	{"Salesforce, the first", []Source{{Header: "Sforce-Limit-Info", Field: Quota, Format: UsedTotal}},
		headers("Sforce-Limit-Info", "api-usage=25/5000; per-app-api-usage=17/250(appName=x)"), left(5000, 4975, -1)},
	{"Salesforce, by name", []Source{{Header: "Sforce-Limit-Info", Field: Quota, Format: UsedTotal, Key: "per-app-api-usage"}},
		headers("Sforce-Limit-Info", "25/5000; per-app-api-usage=17/250(appName=x)"), left(250, 233, -1)},
	{"limit less what is used",
		[]Source{{Header: "X-Limit", Field: Limit, Format: Number}, {Header: "X-Used", Field: Used, Format: Number}},
		headers("X-Limit", "100", "X-Used", "40"), left(100, 60, -1)},
	{"Discord float epoch", []Source{{Header: "X-RateLimit-Reset", Field: Reset, Format: EpochSeconds}},
		headers("X-RateLimit-Reset", "1784081880.000"), left(-1, -1, 240)},
	{"OpenAI duration", []Source{{Header: "X-RateLimit-Reset-Requests", Field: Reset, Format: GoDuration}},
		headers("X-RateLimit-Reset-Requests", "6m0s"), left(-1, -1, 360)},
	{"a window", []Source{{Header: "X-Rate-Limit-Limit", Field: Limit, Format: Number},
		{Header: "X-Rate-Limit-Interval", Field: Window, Format: GoDuration}},
		headers("X-Rate-Limit-Limit", "50", "X-Rate-Limit-Interval", "1s"), within(left(50, -1, -1), time.Second)},
	{"a sentinel is ignored", []Source{{Header: "X-Left", Field: Remaining, Format: Number, Ignore: []string{"0"}}},
		headers("X-Left", " 0 "), Hint{}},
	{"requests and tokens are two quotas", []Source{
		{Header: "X-RateLimit-Remaining-Requests", Field: Remaining, Format: Number},
		{Header: "X-RateLimit-Reset-Requests", Field: Reset, Format: GoDuration},
		{Header: "X-RateLimit-Remaining-Tokens", Field: Remaining, Format: Number},
		{Header: "X-RateLimit-Reset-Tokens", Field: Reset, Format: GoDuration}},
		headers("X-RateLimit-Remaining-Requests", "59", "X-RateLimit-Reset-Requests", "1s",
			"X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6m0s"), left(-1, 0, 360)},
	{"an observed header decides nothing", append([]Source{
		{Header: "X-RateLimit-Remaining", Field: Remaining, Format: Number, ObserveOnly: true}}, Standard()...),
		headers("X-RateLimit-Remaining", "0", "X-RateLimit-Limit", "7"), left(7, -1, -1)},
	{"an empty list reads nothing", []Source{}, headers("Retry-After", "5"), Hint{}},
}

func TestVendorSources(t *testing.T) {
	for _, c := range vendorSources {
		t.Run(c.name, func(t *testing.T) {
			r, problems := NewReader(c.sources)
			if problems != nil {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(r.Read(c.header, now), c.want, numbers); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestNewReaderListsEveryProblem(t *testing.T) {
	r, problems := NewReader([]Source{
		{Field: Wait, Format: Seconds},
		{Header: "X-Reset:", Field: Reset, Format: Seconds},
		{Header: "X-A", Field: "until", Format: Seconds},
		{Header: "X-A", Field: Remaining, Format: HTTPDate},
		{Header: "X-A", Field: Remaining, Format: KeyValue},
		{Header: "X-A", Field: Remaining, Format: Number, Key: "a"},
		{Header: "X-Left", Field: Remaining, Format: Number},
	})
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	want := []string{"hints[0].header", "hints[1].header", "hints[2].field", "hints[3].format", "hints[4].key", "hints[5].key"}
	if diff := cmp.Diff(paths, want, numbers); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
	if got, want := r.Read(headers("X-Left", "4"), now), left(-1, 4, -1); got != want {
		t.Errorf("the source without a problem: got %+v, want %+v", got, want)
	}
}

func TestStandardSourcesHaveNoProblems(t *testing.T) {
	if _, problems := NewReader(Standard()); problems != nil {
		t.Error(problems)
	}
}

func TestReadDoesNotAllocate(t *testing.T) {
	plain := headers("Content-Type", "application/json", "Content-Length", "12", "Server", "x", "Cache-Control", "no-store",
		"Date", "Wed, 15 Jul 2026 02:14:00 GMT", "Vary", "Accept", "Etag", `"a"`, "Connection", "keep-alive", "X-Request-Id", "1")
	quota := plain.Clone()
	quota.Set("X-RateLimit-Limit", "100")
	quota.Set("X-RateLimit-Remaining", "99")
	quota.Set("X-RateLimit-Reset", "1784081880")
	throttled := plain.Clone()
	throttled.Set("Retry-After", "Wed, 15 Jul 2026 02:20:00 GMT")
	for name, h := range map[string]http.Header{"no hint": plain, "X-RateLimit": quota, "Retry-After": throttled} {
		if got := testing.AllocsPerRun(100, func() { (*Reader)(nil).Read(h, now) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
}

func BenchmarkReadWithoutHint(b *testing.B) {
	h := headers("Content-Type", "application/json", "Content-Length", "12", "Server", "x", "Cache-Control", "no-store",
		"Date", "Wed, 15 Jul 2026 02:14:00 GMT", "Vary", "Accept", "Etag", `"a"`, "Connection", "keep-alive", "X-Request-Id", "1")
	for b.Loop() {
		(*Reader)(nil).Read(h, now)
	}
}

func TestAResetSaysWhichHeaderGaveIt(t *testing.T) {
	for _, c := range []struct {
		name, want string
		header     http.Header
	}{
		{"a structured list", "Ratelimit", headers("RateLimit", `"a";r=0;t=30`)},
		{"a dictionary", "Ratelimit", headers("RateLimit", "limit=100, remaining=50, reset=5")},
		{"a header of its own", "X-Ratelimit-Reset", headers("X-RateLimit-Reset", "30")},
		{"no reset", "", headers("X-RateLimit-Remaining", "30")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (&Reader{}).Read(c.header, now).ResetFrom; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
