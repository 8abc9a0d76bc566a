package observe

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
	"github.com/prometheus/client_golang/prometheus"
)

// scrape returns what /metrics answers.
func scrape(t *testing.T, o *Observer) string {
	t.Helper()
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// samples returns the lines of a metric, but for help and type.
func samples(text, name string) (out []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "heed_"+name+"{") || strings.HasPrefix(line, "heed_"+name+" ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// told returns the samples of the named metric after the events.
func told(t *testing.T, name string, events ...heed.Event) []string {
	t.Helper()
	o := start(t, Options{})
	for _, e := range events {
		o.Observe(e)
	}
	return samples(scrape(t, o), name)
}

// day is one of everything that can happen to an endpoint.
func day() []heed.Event {
	fail := throttled()
	ok := fail
	ok.Attempt, ok.Status, ok.Class, ok.Retry, ok.Waited, ok.WireAttempts = 3, 200, classify.OK, false, 30*time.Second, 1
	done, lost := served(), served()
	lost.Class, lost.Reason, lost.Status = classify.Throttled, string(call.QuotaWait), 429
	done.Waited, done.WaitSource = 2*time.Second, policy.WaitRetryAfter
	lost.Waited, lost.WaitSource = 29*time.Second, policy.WaitRetryAfter
	return []heed.Event{
		fail, ok, done, lost,
		{Kind: heed.BreakerChanged, Endpoint: "sierra", Breaker: "open"},
		{Kind: heed.BreakerChanged, Endpoint: "sierra", Breaker: "half_open"},
		{Kind: heed.TokenRenewed, Endpoint: "sierra"},
		{Kind: heed.TokenRenewed, Endpoint: "sierra", Reason: string(call.TokenFailed)},
		{Kind: heed.HintInvalid, Endpoint: "sierra"},
		{Kind: heed.AttemptDone, Endpoint: "sierra", HasRemain: true, Remaining: 42, Time: noon},
	}
}

func TestMetricsCountWhatHappened(t *testing.T) {
	o := start(t, Options{})
	for _, e := range day() {
		o.Observe(e)
	}
	text := scrape(t, o)
	tests := map[string][]string{
		"calls_total": {
			`heed_calls_total{class="ok",endpoint="sierra",reason="none"} 1`,
			`heed_calls_total{class="throttled",endpoint="sierra",reason="quota-wait-exceeds-deadline"} 1`},
		"attempts_total": {
			`heed_attempts_total{class="ok",endpoint="sierra",status_group="2xx"} 1`,
			`heed_attempts_total{class="throttled",endpoint="sierra",status_group="4xx"} 1`,
			`heed_attempts_total{class="unknown",endpoint="sierra",status_group="none"} 1`},
		"retries_total":             {`heed_retries_total{class="throttled",endpoint="sierra"} 1`},
		"giveups_total":             {`heed_giveups_total{endpoint="sierra",reason="quota-wait-exceeds-deadline"} 1`},
		"wait_seconds_total":        {`heed_wait_seconds_total{endpoint="sierra",source="retry_after"} 31`},
		"waits_total":               {`heed_waits_total{endpoint="sierra",source="retry_after"} 2`},
		"wire_attempts_total":       {`heed_wire_attempts_total{endpoint="sierra"} 4`},
		"breaker_trips_total":       {`heed_breaker_trips_total{endpoint="sierra"} 1`},
		"retry_after_invalid_total": {`heed_retry_after_invalid_total{endpoint="sierra"} 1`},
		"quota_remaining":           {`heed_quota_remaining{endpoint="sierra"} 42`},
		"breaker_state": {
			`heed_breaker_state{endpoint="sierra",state="closed"} 0`,
			`heed_breaker_state{endpoint="sierra",state="half_open"} 1`,
			`heed_breaker_state{endpoint="sierra",state="open"} 0`},
		"token_renewals_total": {
			`heed_token_renewals_total{endpoint="sierra",result="failed"} 1`,
			`heed_token_renewals_total{endpoint="sierra",result="ok"} 1`},
		"healthy_latency_seconds_count": {`heed_healthy_latency_seconds_count{endpoint="sierra"} 1`},
		"healthy_latency_seconds_sum":   {`heed_healthy_latency_seconds_sum{endpoint="sierra"} 0.0015`},
	}
	for name, want := range tests {
		if diff := cmp.Diff(samples(text, name), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestAConfiguredEndpointIsThereBeforeItsFirstCall(t *testing.T) {
	o := start(t, Options{Endpoints: map[string]policy.Timeouts{"alma": {}}})
	got := samples(scrape(t, o), "breaker_trips_total")
	if diff := cmp.Diff(got, []string{`heed_breaker_trips_total{endpoint="alma"} 0`}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestAPermanentAnswerIsNoGiveup(t *testing.T) {
	e := served()
	e.Class, e.Reason, e.Status = classify.Permanent, string(call.PermanentFailure), 404
	if got := told(t, "giveups_total", e); got != nil {
		t.Errorf("got %q, want none", got)
	}
}

func TestAmplificationComparesTheWireWithCallsAndSuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := start(t, Options{})
		for range 3 { // 3 calls, 9 requests, 1 success
			o.Observe(heed.Event{Kind: heed.AttemptDone, Endpoint: "e", WireAttempts: 2})
			o.Observe(heed.Event{Kind: heed.AttemptDone, Endpoint: "e"})
			o.Observe(heed.Event{Kind: heed.CallDone, Endpoint: "e", Class: classify.Transient, Reason: "deadline-exceeded"})
		}
		o.Observe(heed.Event{Kind: heed.CallDone, Endpoint: "e", Class: classify.OK})
		text := scrape(t, o)
		if diff := cmp.Diff(samples(text, "amplification_actual"), []string{`heed_amplification_actual{endpoint="e"} 2.25`}); diff != "" {
			t.Errorf("actual (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(samples(text, "amplification_effective"), []string{`heed_amplification_effective{endpoint="e"} 9`}); diff != "" {
			t.Errorf("effective (-got +want):\n%s", diff)
		}
		time.Sleep(amplified + time.Second)
		if got := samples(scrape(t, o), "amplification_actual"); got != nil {
			t.Errorf("a minute later got %q, want nothing", got)
		}
	})
}

func TestNoSuccessMeansInfiniteAmplification(t *testing.T) {
	got := told(t, "amplification_effective", heed.Event{Kind: heed.AttemptDone, Endpoint: "e"})
	if diff := cmp.Diff(got, []string{`heed_amplification_effective{endpoint="e"} +Inf`}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestEndpointsBeyondTheBoundAreCountedAsOther(t *testing.T) {
	o := start(t, Options{})
	for i := range MaxEndpoints + 50 {
		o.Observe(heed.Event{Kind: heed.HintInvalid, Endpoint: fmt.Sprintf("host-%d", i)})
	}
	o.Observe(heed.Event{Kind: heed.HintInvalid, Endpoint: "host-0"})
	got := samples(scrape(t, o), "retry_after_invalid_total")
	if len(got) != MaxEndpoints+1 {
		t.Errorf("got %d series, want %d", len(got), MaxEndpoints+1)
	}
	if want := `heed_retry_after_invalid_total{endpoint="other"} 50`; !slices.Contains(got, want) {
		t.Errorf("metrics lack %s", want)
	}
	if want := `heed_retry_after_invalid_total{endpoint="host-0"} 2`; !slices.Contains(got, want) {
		t.Errorf("metrics lack %s", want)
	}
}

func TestANameThatIsNoLabelIsCountedAsOther(t *testing.T) {
	got := told(t, "retry_after_invalid_total",
		heed.Event{Kind: heed.HintInvalid, Endpoint: "a\xff"},
		heed.Event{Kind: heed.HintInvalid, Endpoint: strings.Repeat("n", 4096)})
	if diff := cmp.Diff(got, []string{`heed_retry_after_invalid_total{endpoint="other"} 2`}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestMetricsTellNothingOfAPath(t *testing.T) {
	const canary = "4111111111111111"
	e := throttled()
	e.Path, e.CorrelationID, e.Tenant, e.Rule = canary, canary, canary, canary
	o := start(t, Options{})
	o.Observe(e)
	if strings.Contains(scrape(t, o), canary) {
		t.Error("metrics tell what a caller chose")
	}
}

func TestOneRegistryTakesOneObserver(t *testing.T) {
	reg := prometheus.NewRegistry()
	start(t, Options{Registry: reg})
	if _, err := New(Options{Registry: reg}); err == nil {
		t.Error("got no error for the second one")
	}
}

func TestTheSetsAreAsLargeAsTheirArrays(t *testing.T) {
	got := []int{len(classes), len(groups), len(states), len(sources), len(reasons)}
	if diff := cmp.Diff(got, []int{nClass, nGroup, nState, nSource, nReason}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for i, word := range classes {
		if got := classify.Class(i).String(); got != word {
			t.Errorf("class %d: got %s, want %s", i, got, word)
		}
	}
}

func TestTheBreakerStateLeavesOpenInTimeWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := start(t, Options{})
		o.Observe(heed.Event{Kind: heed.CallDone, Endpoint: "calm", Time: time.Now()})
		o.Observe(heed.Event{Kind: heed.BreakerChanged, Endpoint: "down", Time: time.Now(), Breaker: "open", Delay: 2 * time.Second})
		var got []string
		for range 2 {
			got = append(got, slices.DeleteFunc(samples(scrape(t, o), "breaker_state"), func(s string) bool { return strings.HasSuffix(s, " 0") })...)
			time.Sleep(2 * time.Second)
		}
		want := []string{
			`heed_breaker_state{endpoint="calm",state="closed"} 1`, `heed_breaker_state{endpoint="down",state="open"} 1`,
			`heed_breaker_state{endpoint="calm",state="closed"} 1`, `heed_breaker_state{endpoint="down",state="half_open"} 1`,
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("states (-got +want):\n%s", diff)
		}
	})
}
