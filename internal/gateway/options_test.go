package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
)

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }

var noon = time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)

func TestCallIsReadFromTheHeader(t *testing.T) { synctest.Test(t, callIsRead) }

func callIsRead(t *testing.T) {
	noon := time.Now()
	rt := &route{keyed: true, keyMax: 10}
	for _, c := range []struct {
		header http.Header
		want   heed.Call
	}{
		{http.Header{}, heed.Call{Priority: 5}},
		{http.Header{"Heed-Budget": {"90s"}}, heed.Call{Priority: 5, Budget: 90 * time.Second}},
		{http.Header{"Heed-Budget": {" 90 "}}, heed.Call{Priority: 5, Budget: 90 * time.Second}},
		{http.Header{"Heed-Budget": {"1.5"}}, heed.Call{Priority: 5, Budget: 1500 * time.Millisecond}},
		{http.Header{"Heed-Budget": {"99999999999999999999"}}, heed.Call{Priority: 5, Budget: maxBudget}},
		{http.Header{"Prefer": {"wait=7"}}, heed.Call{Priority: 5, Budget: 7 * time.Second}},
		{http.Header{"Prefer": {"wait=7"}, "Heed-Budget": {"3s"}}, heed.Call{Priority: 5, Budget: 3 * time.Second}},
		{http.Header{"Heed-Retry": {"off"}}, heed.Call{Priority: 5, RetryOff: true}},
		{http.Header{"Heed-Retry": {"on"}}, heed.Call{Priority: 5}},
		{http.Header{"Heed-Attempt": {"2"}}, heed.Call{Priority: 5, RetryOff: true}},
		{http.Header{"Heed-Priority": {"9"}, "Heed-Tenant": {"42"}}, heed.Call{Priority: 9, Tenant: "42"}},
		{http.Header{"Heed-Priority": {"0"}, "Heed-Correlation-Id": {"a b"}}, heed.Call{CorrelationID: "a b"}},
		{http.Header{"Heed-Not-Before": {"30"}}, heed.Call{Priority: 5, NotBefore: noon.Add(30 * time.Second)}},
		{http.Header{"Heed-Not-Before": {"2026-07-15T14:00:01+02:00"}}, heed.Call{Priority: 5, NotBefore: time.Date(2026, 7, 15, 12, 0, 1, 0, time.UTC)}},
		{http.Header{"Idempotency-Key": {`"k1"`}}, heed.Call{Priority: 5, Key: "k1"}},
		{http.Header{"Idempotency-Key": {`k1`}}, heed.Call{Priority: 5, Key: "k1"}},
		{http.Header{"Idempotency-Key": {`"k\"1"`}}, heed.Call{Priority: 5, Key: `k"1`}},
	} {
		got, bad := rt.readOptions(c.header.Clone())
		if bad != nil {
			t.Errorf("%v: %v", c.header, *bad)
			continue
		}
		if diff := cmp.Diff(got.Call, c.want); diff != "" {
			t.Errorf("%v (-got +want):\n%s", c.header, diff)
		}
	}
}

func TestFieldThatCannotBeReadIsNamed(t *testing.T) {
	rt := &route{keyed: true, keyMax: 10}
	long := string(make([]byte, maxWord+1))
	for name, values := range map[string][]string{
		"Heed-Budget":         {"", "0", "-1", "+1", "1e3", "0x10", "soon", "-5s", "0s", "1.2.3", ".", "NaN", "Inf", "1_000"},
		"Heed-Retry":          {"", "no", "Off", "0"},
		"Heed-Priority":       {"", "10", "-1", "a", "٣"},
		"Heed-Tenant":         {"", "a\x01b", "é", long},
		"Heed-Correlation-Id": {"", "a\x7fb", long},
		"Heed-Not-Before":     {"", "-3", "tomorrow", "2026-07-15", "2026-07-15T12:00:00"},
		"Idempotency-Key":     {"", `""`, "12345678901", "a b", "é"},
	} {
		for _, v := range values {
			if _, bad := rt.readOptions(http.Header{name: {v}}); bad == nil || bad.name != name || bad.want == "" {
				t.Errorf("%s: %q was taken: %v", name, v, bad)
			}
		}
		if _, bad := rt.readOptions(http.Header{name: {"1", "2"}}); bad == nil {
			t.Errorf("%s: two lines were taken", name)
		}
	}
}

func TestBadFieldIsAProblemThatNamesIt(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, nil)
	p := wantProblem(t, r.get("/api/x", http.Header{"Heed-Budget": {"soon"}}), 400, "bad-header")
	if p.Header != "Heed-Budget" {
		t.Errorf("the header member is %q", p.Header)
	}
}

func TestPreferenceThatWasHonouredIsTold(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) {}, nil)
	a := r.get("/api/x", http.Header{"Prefer": {"wait=7"}})
	if got := a.Header.Get("Preference-Applied"); a.StatusCode != 200 || got != "wait=7" {
		t.Errorf("got %d %q", a.StatusCode, got)
	}
}

func TestCallbackSaysThatThereIsNoQueue(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, nil)
	wantProblem(t, r.get("/api/x", http.Header{"Heed-Callback": {"https://a.test/"}}), 501, "callback-not-supported")
}

func TestRetryOffSendsOnce(t *testing.T) {
	n := 0
	r := upstream(t, func(w http.ResponseWriter, _ *http.Request) { n++; w.WriteHeader(503) }, nil)
	a := r.get("/api/x", http.Header{"Heed-Retry": {"off"}})
	if a.StatusCode != 503 || n != 1 || a.Header.Get("Heed-Origin") != "" {
		t.Errorf("got %d after %d requests, want the upstream's 503 after 1", a.StatusCode, n)
	}
}
