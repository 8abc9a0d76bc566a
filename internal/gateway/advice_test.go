package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// advised is what a call with this budget is told that ended as e.
func advised(budget time.Duration, e *heed.Error) string {
	x := &exchange{table: &table{}, route: newRoute(&Endpoint{Name: "api", URL: &url.URL{}, Transport: &heed.Transport{}})}
	x.asked.Budget = budget
	r := refusalOf(e)
	x.advise(&r, e)
	return r.Detail
}

func wantText(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want it to contain %q", got, want)
		}
	}
}

var spent = heed.Error{Reason: heed.DeadlineExceeded, Class: classify.Truncated, Status: 200,
	Report: heed.Report{Attempts: 3, Waited: 3 * time.Second, WaitSource: policy.WaitBackoff}}

func TestCallerIsNotToldToLengthenTheBudgetOfTheEndpoint(t *testing.T) {
	for _, asked := range []time.Duration{0, time.Minute, time.Hour} {
		got := advised(asked, &spent)
		wantText(t, got, "the budget of the endpoint, 1m0s", "Raise retry.budget of the endpoint")
		if strings.Contains(got, "more time with Heed-Budget") {
			t.Errorf("got %q, want no advice that cannot help", got)
		}
	}
}

func TestCallerIsToldToGiveMoreTimeWhereThatHelps(t *testing.T) {
	wantText(t, advised(5*time.Second, &spent), "set with Heed-Budget, 5s", "more time with Heed-Budget, up to the 1m0s")
}

func TestDeadlineTellsTheLastAttemptAndWhatWasWaitedFor(t *testing.T) {
	wantText(t, advised(0, &spent), "Attempts: 3; the last one was truncated, with status 200; it waited 3s, the longest for backoff.")
}

func TestQuotaWaitSaysThatTheAPIAskedForItAndUntilWhen(t *testing.T) {
	got := advised(0, &heed.Error{Reason: heed.QuotaWait, RetryAt: time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)})
	wantText(t, got, "The API asked for a pause until 2030-01-02T03:04:06Z (Retry-After,", "Nothing was sent.", "raise retry.budget")
}

func TestALongPauseIsNotAnsweredWithAdviceThatCannotHelp(t *testing.T) {
	for until, want := range map[time.Duration]string{time.Hour: "or raise retry.budget of the endpoint in heed.yaml.", 30 * time.Second: "more time with Heed-Budget"} {
		wantText(t, advised(5*time.Second, &heed.Error{Reason: heed.QuotaWait, RetryAt: time.Now().Add(until)}), want)
	}
}

func TestNotBeforeBeyondTheBudgetIsToldAsSuch(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, nil)
	p := wantProblem(t, r.get("/api/x", http.Header{"Heed-Not-Before": {"2100-01-02T03:04:05Z"}}), 504, "deadline-exceeded")
	wantText(t, p.Title, "may not begin within its budget")
	wantText(t, p.Detail, "Heed-Not-Before is 2100-01-02T03:04:05Z, which lies beyond the budget of the endpoint, 10s. Nothing was sent.")
	if p.RetryAt == nil || p.RetryAt.Year() != 2100 {
		t.Errorf("got retry_at %v, want the instant", p.RetryAt)
	}
}

func TestAWriteWithAKeyThatTheEndpointDoesNotKnowIsToldWhatLetsItBeRepeated(t *testing.T) {
	const want = "idempotency: {header: Idempotency-Key} under endpoints.api in heed.yaml"
	key := http.Header{"Idempotency-Key": {"k1"}}
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	r := upstream(t, down, nil)
	resp := r.do(r.request("POST", "/api/x", "1", key))
	if resp.StatusCode != 503 || resp.Header.Get("Heed-Attempts") != "1" {
		t.Errorf("got %d after %s attempts, want 503 after 1", resp.StatusCode, resp.Header.Get("Heed-Attempts"))
	}
	wantText(t, resp.Header.Get("Heed-Advice"), want)

	cut := upstream(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil)
	p := wantProblem(t, cut.do(cut.request("POST", "/api/x", "1", key)), 502, "not-repeatable")
	wantText(t, p.Detail, "Find out at the provider", want)
}

func TestOnlyAKeyThatIsNotKnownIsAdvisedOn(t *testing.T) {
	key := http.Header{"Idempotency-Key": {"k1"}}
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	known := upstream(t, down, func(r *rig, tr *heed.Transport) { tr.Policy.Key.Header = "Idempotency-Key" })
	other := upstream(t, down, nil)
	for name, resp := range map[string]answered{
		"the key is known":   known.do(known.request("POST", "/api/x", "1", key)),
		"there is none":      other.do(other.request("POST", "/api/x", "1", nil)),
		"a read is repeated": other.do(other.request("GET", "/api/x", "", key)),
	} {
		if got := resp.Header.Get("Heed-Advice"); got != "" {
			t.Errorf("%s: got %q, want no advice", name, got)
		}
	}
}

func TestA401AfterADroppedCredentialSaysWhereTheCredentialBelongs(t *testing.T) {
	asks := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	own := http.Header{"Authorization": {"Bearer theirs"}}
	none := upstream(t, asks, nil)
	advice := none.get("/api/x", own).Header.Get("Heed-Advice")
	wantText(t, advice, "auth: of endpoints.api in heed.yaml", "auth: {kind: passthrough}")
	if strings.Contains(advice, "theirs") {
		t.Errorf("the advice tells the credential: %q", advice)
	}
	wantText(t, none.get("/api/x", http.Header{"Cookie": {"s=1"}}).Header.Get("Heed-Advice"), "auth: of endpoints.api")
	refuses := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	passes := upstream(t, refuses, func(r *rig, _ *heed.Transport) { r.endpoint.Passthrough = true })
	asked := upstream(t, refuses, func(r *rig, _ *heed.Transport) { r.endpoint.SecretQuery = "key" })
	forbids := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, nil)
	for name, resp := range map[string]answered{
		"the caller sent none":                 none.get("/api/x", nil),
		"it is passed on":                      passes.get("/api/x", own),
		"the endpoint has a credential":        asked.get("/api/x", own),
		"the API says something else than 401": forbids.get("/api/x", own),
	} {
		if got := resp.Header.Get("Heed-Advice"); got != "" {
			t.Errorf("%s: got %q, want no advice", name, got)
		}
	}
}

func TestWhatOperatorsAskForOnTheDataPortNamesTheAdminPort(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, nil)
	for _, path := range []string{"/_heed/waiting", "/_heed/endpoints/api", "/metrics", "/healthz"} {
		p := wantProblem(t, r.get(path, nil), 404, "unknown-endpoint")
		wantText(t, p.Detail, "is asked for on the admin port (listen.admin in heed.yaml, 127.0.0.1:8643 by default)")
	}
	if p := wantProblem(t, r.get("/other/x", nil), 404, "unknown-endpoint"); strings.Contains(p.Detail, "admin") {
		t.Errorf("got %q, want no word of the admin port", p.Detail)
	}
}

func TestAListOfCallsAskedForOnTheDataPortSaysWhatIsTakenThere(t *testing.T) {
	bubble(t, nil, func(l *later) {
		a := l.do(l.Gateway, "GET", "/_heed/calls", "")
		p := wantProblem(t, a, 405, "method-not-supported")
		wantText(t, p.Detail, "POST takes an envelope here, one JSON object that hands a call over: {\"heed\": 1,", "/_heed/calls/{id}", "the admin port (listen.admin")
		if got := a.Header.Get("Allow"); got != "POST" || strings.Contains(p.Detail, "proxy") {
			t.Errorf("it allows %q and says %q", got, p.Detail)
		}
	})
}
