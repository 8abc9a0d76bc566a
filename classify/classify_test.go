package classify

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/policy"
)

var received = time.Date(2026, 7, 15, 2, 14, 0, 0, time.UTC)

// answer is an exchange with an answer of this status; header is pairs of
// name and value.
func answer(method string, status int, header ...string) *Exchange {
	x := &Exchange{Method: method, Path: "/v1/things", Status: status, Header: http.Header{},
		ContentLength: -1, SentAt: received.Add(-time.Second), Now: received}
	for i := 0; i+1 < len(header); i += 2 {
		x.Header.Add(header[i], header[i+1])
	}
	return x
}

// body puts all of a body into x.
func (x *Exchange) body(media, body string) *Exchange {
	x.Header.Set("Content-Type", media)
	x.Body, x.Peeked, x.BodyEnd, x.ContentLength = []byte(body), true, true, int64(len(body))
	return x
}

// cut puts the beginning of a longer body into x.
func (x *Exchange) cut(media, body string) *Exchange {
	x.body(media, body)
	x.BodyEnd, x.ContentLength = false, -1
	return x
}

func failed(f Failure) *Exchange { return &Exchange{Method: http.MethodGet, Failure: f, Now: received} }

var neutralTable *Classifier

var neutralVerdicts = []struct {
	name string
	x    *Exchange
	want Verdict
}{
	{"200", answer("GET", 200), Verdict{Class: OK, Executed: Yes, Rule: "ok"}},
	{"204", answer("DELETE", 204), Verdict{Class: OK, Executed: Yes, Rule: "ok"}},
	{"101", answer("GET", 101), Verdict{Class: OK, Executed: Yes, Rule: "ok"}},
	{"302", answer("GET", 302), Verdict{Class: OK, Executed: Yes, Rule: "ok"}},
	{"304", answer("GET", 304), Verdict{Class: OK, Executed: Yes, Rule: "ok"}},
	{"308", answer("POST", 308), Verdict{Class: OK, Executed: Yes, Rule: "ok"}},
	{"400", answer("GET", 400), Verdict{Class: Permanent, Executed: No, Rule: "status 400"}},
	{"401", answer("GET", 401), Verdict{Class: Unauthorized, Executed: No, Retry: Refresh, Scope: ScopeKey, Rule: "status 401"}},
	{"403", answer("GET", 403), Verdict{Class: Permanent, Executed: No, Rule: "status 403"}},
	{"403 with Retry-After", answer("GET", 403, "Retry-After", "60"),
		Verdict{Class: Throttled, Executed: No, Retry: Any, Scope: ScopeKey, Rule: "status 403"}},
	{"403 with nothing remaining", answer("GET", 403, "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1784081640"),
		Verdict{Class: Throttled, Executed: No, Retry: Any, Scope: ScopeKey, Rule: "status 403"}},
	{"403 with quota left", answer("GET", 403, "X-Ratelimit-Remaining", "41"), Verdict{Class: Permanent, Executed: No, Rule: "status 403"}},
	{"403 with garbage for a hint", answer("GET", 403, "Retry-After", "soon"), Verdict{Class: Permanent, Executed: No, Rule: "status 403"}},
	{"404", answer("GET", 404), Verdict{Class: Permanent, Executed: No, Rule: "status 404"}},
	{"408", answer("GET", 408), Verdict{Class: Transient, Retry: Idempotent, Rule: "status 408"}},
	{"409", answer("GET", 409), Verdict{Class: Permanent, Executed: No, Rule: "status 409"}},
	{"422", answer("POST", 422), Verdict{Class: Permanent, Executed: No, Rule: "status 422"}},
	{"425", answer("POST", 425), Verdict{Class: Transient, Executed: No, Retry: Any, Rule: "status 425"}},
	{"429", answer("POST", 429), Verdict{Class: Throttled, Executed: No, Retry: Any, Scope: ScopeKey, Rule: "status 429"}},
	{"499", answer("POST", 499), Verdict{Class: Permanent, Rule: "status 499"}},
	{"500", answer("GET", 500), Verdict{Class: Transient, Retry: Idempotent, Rule: "status 500"}},
	{"501", answer("GET", 501), Verdict{Class: Permanent, Executed: No, Rule: "status 501"}},
	{"502", answer("GET", 502), Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "status 502"}},
	{"503", answer("GET", 503), Verdict{Class: Overloaded, Retry: Idempotent, Scope: ScopeHost, Rule: "status 503"}},
	{"503 with Retry-After", answer("GET", 503, "Retry-After", "Wed, 15 Jul 2026 02:20:00 GMT"),
		Verdict{Class: Overloaded, Executed: No, Retry: Any, Scope: ScopeHost, Rule: "status 503"}},
	{"503 with garbage for a hint", answer("GET", 503, "Retry-After", "soon"),
		Verdict{Class: Overloaded, Retry: Idempotent, Scope: ScopeHost, Rule: "status 503"}},
	{"504", answer("GET", 504), Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "status 504"}},
	{"505", answer("GET", 505), Verdict{Class: Permanent, Executed: No, Rule: "status 505"}},
	{"507", answer("GET", 507), Verdict{Class: Permanent, Rule: "status 507"}},
	{"522", answer("GET", 522), Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "status 522"}},
	{"529", answer("GET", 529), Verdict{Class: Overloaded, Retry: Idempotent, Scope: ScopeHost, Rule: "status 529"}},
	{"999", answer("GET", 999), Verdict{Class: Permanent, Rule: "status 999"}},
	{"proxy that says it never arrived", answer("POST", 502, "Proxy-Status", "edge; error=connection_refused"),
		Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "status 502"}},
	{"nothing", &Exchange{}, Verdict{Rule: "no answer"}},

	{"name not found", failed(DNSNotFound), Verdict{Class: Permanent, Executed: No, Scope: ScopeHost, Rule: "dns_not_found"}},
	{"resolver down", failed(DNSTemporary), Verdict{Class: Transient, Executed: No, Retry: Any, Scope: ScopeHost, Rule: "dns_temporary"}},
	{"refused", failed(Refused), Verdict{Class: Transient, Executed: No, Retry: Any, Scope: ScopeHost, Rule: "refused"}},
	{"connect timeout", failed(ConnectTimeout), Verdict{Class: Transient, Executed: No, Retry: Any, Scope: ScopeHost, Rule: "connect_timeout"}},
	{"bad certificate", failed(TLSFailed), Verdict{Class: Permanent, Executed: No, Scope: ScopeHost, Rule: "tls_failed"}},
	{"unwritten", failed(Unwritten), Verdict{Class: Transient, Executed: No, Retry: Any, Rule: "unwritten"}},
	{"reset", failed(ResetBeforeHeader), Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "reset_before_header"}},
	{"header timeout", failed(HeaderTimeout), Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "header_timeout"}},
	{"not HTTP", failed(ProtocolError), Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "protocol_error"}},
	{"bad request", failed(BadRequest), Verdict{Class: Permanent, Executed: No, Rule: "bad_request"}},
	{"unread", failed(Unread), Verdict{Class: Transient, Retry: Idempotent, Rule: "unread"}},
	{"blocked", failed(Blocked), Verdict{Class: Permanent, Executed: No, Rule: "blocked"}},
	{"canceled", failed(Canceled), Verdict{Rule: "canceled"}},
	{"other", failed(OtherFailure), Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: "other"}},
	{"cut before the end", &Exchange{Method: "GET", Status: 200, Failure: BodyCut},
		Verdict{Class: Truncated, Executed: Yes, Retry: Idempotent, Rule: "body_cut"}},
	{"silent body", &Exchange{Method: "GET", Status: 200, Failure: BodyTimeout},
		Verdict{Class: Truncated, Executed: Yes, Retry: Idempotent, Rule: "body_timeout"}},
	{"503 whose body is cut", &Exchange{Method: "GET", Status: 503, Failure: BodyCut},
		Verdict{Class: Overloaded, Retry: Idempotent, Scope: ScopeHost, Rule: "status 503"}},
}

func TestNeutralTable(t *testing.T) {
	for _, row := range neutralVerdicts {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(neutralTable.Classify(row.x, nil), row.want); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
		})
	}
}

// TestRepeat is the table of method, answer, failure and key.
func TestRepeat(t *testing.T) {
	never := func(int, Failure) bool { return false }
	unarrived := func(status int, f Failure) bool {
		return status == 429 || status == 425 || f == Refused || f == ConnectTimeout || f == DNSTemporary || f == Unwritten
	}
	healing := func(status int, f Failure) bool {
		switch status {
		case 408, 500, 502, 503, 504, 520, 524, 529:
			return true
		}
		return unarrived(status, f) || f == ResetBeforeHeader || f == HeaderTimeout || f == ProtocolError || f == BodyCut || f == Unread
	}
	for _, row := range []struct {
		method string
		keyed  bool
		want   func(status int, f Failure) bool
	}{
		{"GET", false, healing}, {"HEAD", false, healing}, {"OPTIONS", false, healing},
		{"PUT", false, healing}, {"DELETE", false, healing}, {"", false, healing},
		{"POST", true, healing}, {"PATCH", true, healing},
		{"POST", false, unarrived}, {"PATCH", false, unarrived}, {"LOCK", false, unarrived},
	} {
		for _, status := range []int{400, 403, 404, 405, 409, 410, 422, 425, 429, 408, 500, 501, 502, 503, 504, 505, 520, 524, 529} {
			x := answer(row.method, status)
			x.Keyed = row.keyed
			if got, want := neutralTable.Classify(x, nil).Repeatable(row.method, row.keyed), row.want(status, NoFailure); got != want {
				t.Errorf("%s keyed=%t status %d: repeatable %t, want %t", row.method, row.keyed, status, got, want)
			}
		}
		for f := DNSNotFound; f <= Canceled; f++ {
			x := &Exchange{Method: row.method, Keyed: row.keyed, Failure: f}
			want := row.want(0, f) || f == BodyTimeout && row.want(0, BodyCut)
			if f == Canceled {
				want = never(0, f)
			}
			if got := neutralTable.Classify(x, nil).Repeatable(row.method, row.keyed); got != want {
				t.Errorf("%s keyed=%t %v: repeatable %t, want %t", row.method, row.keyed, f, got, want)
			}
		}
	}
}

func TestUnkeyedPostIsRepeatedAfter503OnlyWithRetryAfter(t *testing.T) {
	if neutralTable.Classify(answer("POST", 503), nil).Repeatable("POST", false) {
		t.Error("a bare 503 to a POST is repeated")
	}
	if !neutralTable.Classify(answer("POST", 503, "Retry-After", "3"), nil).Repeatable("POST", false) {
		t.Error("a 503 with Retry-After to a POST is not repeated")
	}
}

func TestRepeatableByWay(t *testing.T) {
	for _, row := range []struct {
		v      Verdict
		method string
		keyed  bool
		want   bool
	}{
		{Verdict{Retry: Never, Executed: No}, "GET", true, false},
		{Verdict{Retry: Any}, "POST", false, true},
		{Verdict{Retry: Once}, "GET", false, true},
		{Verdict{Retry: Once}, "POST", false, false},
		{Verdict{Retry: Once, Executed: No}, "POST", false, true},
		{Verdict{Retry: SameKey, Executed: No}, "POST", false, false},
		{Verdict{Retry: SameKey}, "POST", true, true},
		{Verdict{Retry: Refresh, Executed: No}, "POST", false, true},
		{Verdict{Retry: Refresh, Executed: Yes}, "POST", false, false},
		{Verdict{Retry: Revalidate, Executed: Yes}, "GET", false, true},
		{Verdict{Retry: Revalidate, Executed: Yes}, "PUT", true, false},
	} {
		if got := row.v.Repeatable(row.method, row.keyed); got != row.want {
			t.Errorf("%v executed=%v %s keyed=%t: repeatable %t, want %t",
				row.v.Retry, row.v.Executed, row.method, row.keyed, got, row.want)
		}
	}
}

func TestServerSaysWhetherToRetry(t *testing.T) {
	for _, row := range []struct {
		name  string
		x     *Exchange
		class Class
		retry Retry
	}{
		{"no to a 500", answer("GET", 500, "Stripe-Should-Retry", "false"), Transient, Never},
		{"no to a 429", answer("GET", 429, "x-should-retry", "false"), Throttled, Never},
		{"yes to a 409", answer("POST", 409, "Stripe-Should-Retry", "true"), Transient, Idempotent},
		{"yes to a 400", answer("GET", 400, "X-Should-Retry", " TRUE "), Transient, Idempotent},
		{"yes to a 429 changes nothing", answer("POST", 429, "Stripe-Should-Retry", "true"), Throttled, Any},
		{"no to a 401 does not forbid a new credential", answer("GET", 401, "x-should-retry", "false"), Unauthorized, Refresh},
		{"yes to a 200 changes nothing", answer("GET", 200, "x-should-retry", "true"), OK, Never},
		{"garbage says nothing", answer("GET", 500, "x-should-retry", "perhaps"), Transient, Idempotent},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := neutralTable.Classify(row.x, nil)
			if got.Class != row.class || got.Retry != row.retry {
				t.Errorf("got %v %v, want %v %v", got.Class, got.Retry, row.class, row.retry)
			}
		})
	}
}

func TestShouldRetryDoesNotRepeatAnUnkeyedPost(t *testing.T) {
	v := neutralTable.Classify(answer("POST", 409, "Stripe-Should-Retry", "true"), nil)
	if v.Repeatable("POST", false) || !v.Repeatable("POST", true) {
		t.Errorf("repeatable without a key %t, with one %t; want false, true", v.Repeatable("POST", false), v.Repeatable("POST", true))
	}
}

func TestEmptyJSONToAGetIsInvalid(t *testing.T) {
	length := func(method string, status int, media string, n int64) *Exchange {
		x := answer(method, status, "Content-Type", media)
		x.ContentLength = n
		return x
	}
	for _, row := range []struct {
		name string
		x    *Exchange
		want Class
	}{
		{"by its length", length("GET", 200, "application/json; charset=utf-8", 0), Invalid},
		{"with more to come", answer("GET", 200).cut("application/json", ""), OK},
		{"by its whole body", answer("GET", 200).body("application/json", "\n"), Invalid},
		{"POST", length("POST", 200, "application/json", 0), OK},
		{"HEAD", length("HEAD", 200, "application/json", 0), OK},
		{"202", length("GET", 202, "application/json", 0), OK},
		{"204", length("GET", 204, "application/json", 0), OK},
		{"304", length("GET", 304, "application/json", 0), OK},
		{"another type", length("GET", 200, "text/plain", 0), OK},
		{"no type", length("GET", 200, "", 0), OK},
		{"not looked at", length("GET", 200, "application/json", -1), OK},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := neutralTable.Classify(row.x, nil); got.Class != row.want {
				t.Errorf("got %v, want %v", got.Class, row.want)
			}
		})
	}
}

func TestVerifyOffTakesTheHeadAtItsWord(t *testing.T) {
	x := answer("GET", 200).body("application/json", "")
	if got := neutralTable.Classify(x, &policy.Verify{Mode: policy.VerifyOff}); got.Class != OK {
		t.Errorf("got %v, want ok", got.Class)
	}
}

func TestCutBodyIsTruncated(t *testing.T) {
	short := func(method string, status int, header ...string) *Exchange {
		x := answer(method, status, header...)
		x.Body, x.Peeked, x.BodyEnd, x.ContentLength = []byte("abc"), true, true, 100
		return x
	}
	for _, row := range []struct {
		name string
		x    *Exchange
		want Class
	}{
		{"shorter than its length", short("GET", 200), Truncated},
		{"empty and said so", answer("GET", 200).body("text/plain", ""), OK},
		{"compressed length", short("GET", 200, "Content-Encoding", "gzip"), OK},
		{"HEAD has no body", short("HEAD", 200), OK},
		{"304 has no body", short("GET", 304), OK},
		{"unclosed JSON", answer("GET", 200).body("application/json", `{"entries":[{"id":1}`), Truncated},
		{"unclosed XML", answer("GET", 200).body("text/xml; subtype=gml/3.1.1", `<wfs:FeatureCollection><gml:name>`), Truncated},
		{"unclosed where a peek of what was compressed ends", answer("GET", 200, "Content-Encoding", "gzip").
			body("application/json", "["+strings.Repeat(" ", policy.PeekLimit-1)), OK},
		{"part of JSON", answer("GET", 206).body("application/json", `{"entries":[`), OK},
		{"unclosed beyond the peek", answer("GET", 200).cut("application/json", `{"entries":[`), OK},
		{"whole JSON", answer("GET", 200).body("application/json", `{"entries":[]}`), OK},
		{"JSON behind a guard", answer("GET", 200).body("application/json", `)]}',{"a":1}`), OK},
		{"lines", answer("GET", 200).body("application/x-ndjson", "{\"a\":1}\n{\"a\":"), Truncated},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := neutralTable.Classify(row.x, nil); got.Class != row.want {
				t.Errorf("got %v, want %v", got.Class, row.want)
			}
		})
	}
}

func TestHappyPathDoesNotAllocate(t *testing.T) {
	x := answer("GET", 200, "Content-Type", "application/json; charset=utf-8", "Date", "Wed, 15 Jul 2026 02:14:00 GMT")
	x.ContentLength = 1024
	v := &policy.Verify{Mode: policy.VerifyHead}
	ruled, ps := New([]Rule{
		{ID: "permanent 503", When: Match{Statuses: []StatusRange{{503, 503}}}, Then: Verdict{Class: Permanent}},
		{ID: "picture", When: Match{Statuses: []StatusRange{{200, 200}}, Media: []string{"image/*"}}, Then: Verdict{Class: Invalid}},
	})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	for name, c := range map[string]*Classifier{"nil": nil, "with rules": ruled} {
		if n := testing.AllocsPerRun(100, func() {
			if c.Peek(x) != 0 || c.Classify(x, v).Class != OK {
				t.Error("not ok")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func TestWordsOfVerdicts(t *testing.T) {
	got := []string{OK.String(), Truncated.String(), Maybe.String(), Revalidate.String(), ScopeHost.String(),
		NoFailure.String(), OtherFailure.String(), Failure(99).String()}
	want := []string{"ok", "truncated", "maybe", "revalidate", "host", "none", "other", "other"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func BenchmarkClassifyHappyPath(b *testing.B) {
	x := answer("GET", 200, "Content-Type", "application/json")
	v := &policy.Verify{Mode: policy.VerifyHead}
	b.ReportAllocs()
	for b.Loop() {
		if neutralTable.Classify(x, v).Class != OK {
			b.Fatal("not ok")
		}
	}
}

func BenchmarkScanWholePeekForExceptions(b *testing.B) {
	body := "<wfs:FeatureCollection>" + strings.Repeat("<gml:pos srsDimension=\"2\">52.5 13.4</gml:pos>\n", 1400)
	c, _ := New([]Rule{{ID: "ows", When: Match{XML: &XMLMatch{Names: []string{"ExceptionReport"}}}}})
	x := answer("GET", 200).cut("text/xml", body)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if c.Classify(x, nil).Class != OK {
			b.Fatal("not ok")
		}
	}
}
