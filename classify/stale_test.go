package classify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/policy"
)

// ages are answers to a read at 02:14:00 that took one second.
var ages = []struct {
	name   string
	header []string
	want   Class
}{
	{"nothing said", nil, OK},
	{"young", []string{"Age", "3598"}, OK},
	{"at the limit with the time on the way", []string{"Age", "3599"}, OK},
	{"over the limit only with the time on the way", []string{"Age", "3600"}, Stale},
	{"old", []string{"Age", "7200"}, Stale},
	{"padded", []string{"Age", " 7200 "}, Stale},
	{"negative", []string{"Age", "-1"}, OK},
	{"signed", []string{"Age", "+7200"}, OK},
	{"fraction", []string{"Age", "7200.5"}, OK},
	{"empty", []string{"Age", ""}, OK},
	{"words", []string{"Age", "old"}, OK},
	{"list counts by its first", []string{"Age", "5, 9000"}, OK},
	{"list with an old first", []string{"Age", "9000, 5"}, Stale},
	{"second line does not count", []string{"Age", "5", "Age", "9000"}, OK},
	{"eleven digits", []string{"Age", "99999999999"}, Stale},
	{"four hundred digits", []string{"Age", strings.Repeat("9", 400)}, Stale},
	{"old by its Date", []string{"Date", "Wed, 15 Jul 2026 01:00:00 GMT"}, Stale},
	{"old by its Date, though Age says young", []string{"Age", "1", "Date", "Wed, 15 Jul 2026 01:00:00 GMT"}, Stale},
	{"old by its Date, and Age malformed", []string{"Age", "1.5", "Date", "Wed, 15 Jul 2026 01:00:00 GMT"}, Stale},
	{"fresh Date", []string{"Date", "Wed, 15 Jul 2026 02:13:59 GMT"}, OK},
	{"Date in the future", []string{"Date", "Wed, 15 Jul 2026 04:00:00 GMT"}, OK},
	{"Date in the future, and old", []string{"Age", "7200", "Date", "Wed, 15 Jul 2026 04:00:00 GMT"}, Stale},
	{"unreadable Date", []string{"Date", "yesterday"}, OK},

	{"stale hit of the outer cache", []string{"Cache-Status", `OriginCache; hit; ttl=1100, "CDN"; hit; ttl=-412`}, Stale},
	{"stale hit of the inner cache", []string{"Cache-Status", `OriginCache; hit; ttl=-1, "CDN"; hit; ttl=30`}, Stale},
	{"stale hit on the second line", []string{"Cache-Status", "a; hit; ttl=9", "Cache-Status", `b;hit;ttl=-9`}, Stale},
	{"fresh hits", []string{"Cache-Status", `OriginCache; hit; ttl=1100, "CDN"; hit; ttl=0`}, OK},
	{"minus nothing", []string{"Cache-Status", `CDN; hit; ttl=-0`}, OK},
	{"miss", []string{"Cache-Status", "CDN; fwd=uri-miss; ttl=-412"}, OK},
	{"hit denied", []string{"Cache-Status", "CDN; hit=?0; ttl=-412"}, OK},
	{"hit in full", []string{"Cache-Status", "CDN; hit=?1; ttl=-412"}, Stale},
	{"hit and forwarded, which exclude each other", []string{"Cache-Status", "CDN; hit; fwd=stale"}, OK},
	{"hit and forwarded, past its life", []string{"Cache-Status", "CDN; hit; fwd=stale; ttl=-5"}, Stale},
	{"last parameter wins", []string{"Cache-Status", "CDN; hit; ttl=-5; ttl=5"}, OK},
	{"decimal ttl", []string{"Cache-Status", "CDN; hit; ttl=-4.5"}, OK},
	{"ttl as a string", []string{"Cache-Status", `CDN; hit; ttl="-4"`}, OK},
	{"ttl without a value", []string{"Cache-Status", "CDN; hit; ttl"}, OK},
	{"key in capitals spoils the field", []string{"Cache-Status", "CDN; hit; TTL=-4; ttl=-4"}, OK},
	{"blank before the semicolon spoils the field", []string{"Cache-Status", "CDN ; hit; ttl=-4"}, OK},
	{"trailing comma spoils the field", []string{"Cache-Status", "CDN; hit; ttl=-4,"}, OK},
	{"broken second line spoils the field", []string{"Cache-Status", "CDN; hit; ttl=-4", "Cache-Status", `"open`}, OK},
	{"no name", []string{"Cache-Status", "; hit; ttl=-4"}, OK},
	{"quotes, commas and escapes in a name", []string{"Cache-Status", `"a \", b;c"; hit; detail="x,y"; ttl=-4`}, Stale},
	{"only X-Cache", []string{"X-Cache", "HIT"}, OK},

	{"modified today", []string{"Last-Modified", "Tue, 14 Jul 2026 14:00:00 GMT"}, OK},
	{"unmodified for long", []string{"Last-Modified", "Mon, 13 Jul 2026 02:00:00 GMT"}, Stale},
	{"modified tomorrow", []string{"Last-Modified", "Thu, 16 Jul 2026 02:00:00 GMT"}, OK},
	{"unreadable Last-Modified", []string{"Last-Modified", "0"}, OK},
}

func TestStaleness(t *testing.T) {
	day := &policy.Verify{MaxAge: time.Hour, MaxUnmodified: 24 * time.Hour}
	for _, row := range ages {
		t.Run(row.name, func(t *testing.T) {
			if got := neutralTable.Classify(answer("GET", 200, row.header...), day); got.Class != row.want {
				t.Errorf("got %v (%s), want %v", got.Class, got.Rule, row.want)
			}
		})
	}
}

func TestStaleAnswerIsAskedForAgainPastTheCaches(t *testing.T) {
	got := neutralTable.Classify(answer("GET", 200, "Age", "7200"), &policy.Verify{MaxAge: time.Hour})
	want := Verdict{Class: Stale, Executed: Yes, Retry: Revalidate, Rule: "older than verify.max_age"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestStalenessIsCheckedOnlyWhereAgreed(t *testing.T) {
	old := []string{"Age", "999999", "Last-Modified", "Mon, 13 Jul 2020 02:00:00 GMT", "Cache-Status", "a;hit;ttl=-1"}
	for _, row := range []struct {
		name string
		x    *Exchange
		v    *policy.Verify
		want Class
	}{
		{"no policy", answer("GET", 200, old...), nil, OK},
		{"no limits", answer("GET", 200, old...), &policy.Verify{}, OK},
		{"off", answer("GET", 200, old...), &policy.Verify{Mode: policy.VerifyOff, MaxAge: 1}, OK},
		{"age alone", answer("GET", 200, old[2:4]...), &policy.Verify{MaxAge: time.Hour}, OK},
		{"Last-Modified alone", answer("GET", 200, old[:2]...), &policy.Verify{MaxUnmodified: time.Hour}, OK},
		{"a write", answer("POST", 200, old...), &policy.Verify{MaxAge: time.Hour, MaxUnmodified: time.Hour}, OK},
		{"HEAD", answer("HEAD", 200, old...), &policy.Verify{MaxAge: time.Hour}, Stale},
		{"304 out of a cache", answer("GET", 304, old...), &policy.Verify{MaxAge: time.Hour}, Stale},
		{"an error stays an error", answer("GET", 404, old...), &policy.Verify{MaxAge: time.Hour}, Permanent},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := neutralTable.Classify(row.x, row.v); got.Class != row.want {
				t.Errorf("got %v, want %v", got.Class, row.want)
			}
		})
	}
}

func TestUnknownSendTimeAddsNoAge(t *testing.T) {
	x := answer("GET", 200, "Age", "3600")
	x.SentAt = time.Time{}
	if got := neutralTable.Classify(x, &policy.Verify{MaxAge: time.Hour}); got.Class != OK {
		t.Errorf("got %v, want ok", got.Class)
	}
}
