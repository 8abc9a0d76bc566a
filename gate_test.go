package heed_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

func TestThePermitIsHeldUntilTheBodyIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tr := &heed.Transport{Base: plays(says(200, "body")), Policy: policy.Policy{Limits: policy.Limits{Concurrency: 1}}}
		first, err := tr.RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan time.Duration)
		begun := time.Now()
		go func() {
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			if err == nil {
				resp.Body.Close()
			}
			done <- time.Since(begun)
		}()
		time.Sleep(10 * time.Second)
		waiting := tr.Waiting()
		if len(waiting) != 1 || waiting[0].For != policy.WaitConcurrency || waiting[0].Attempt != 1 {
			t.Errorf("waiting: %+v", waiting)
		}
		if g := tr.Gates()[0]; g.InFlight != 1 || g.Waiting != 1 {
			t.Errorf("the gate says %+v", g)
		}
		first.Body.Close()
		if got := <-done; got != 10*time.Second {
			t.Errorf("the second call took %v, want 10 s", got)
		}
		if got := tr.Waiting(); len(got) != 0 {
			t.Errorf("still waiting: %+v", got)
		}
	})
}

func TestACallThatRestsIsListedWithItsReason(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tr := &heed.Transport{Base: plays(says(429, "", "Retry-After", "20"), says(200, ""))}
		ctx := heed.WithCall(t.Context(), heed.Call{CorrelationID: "job-7", QueueID: "06f3", Tenant: "a", Priority: 3})
		go func() {
			if resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx)); err == nil {
				resp.Body.Close()
			}
		}()
		time.Sleep(5 * time.Second)
		got := tr.Waiting()
		if len(got) != 1 || got[0].For != policy.WaitRetryAfter || got[0].CorrelationID != "job-7" || got[0].QueueID != "06f3" || got[0].Tenant != "a" ||
			got[0].Priority != 3 || got[0].Attempt != 2 || time.Until(got[0].Until) < 15*time.Second {
			t.Errorf("waiting: %+v", got)
		}
		if g := tr.Gates()[0]; time.Until(g.ClosedUntil) < 15*time.Second || g.InFlight != 0 {
			t.Errorf("the gate says %+v", g)
		}
		time.Sleep(time.Minute)
	})
}

func TestAnOpenBreakerSendsNothingAndEndsCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Breaker = policy.Breaker{Consecutive: 3, Open: 10 * time.Second, OnOpen: policy.OnOpenFail}
		p, j := plays(says(500, "")), &journal{}
		tr := &heed.Transport{Base: p, Policy: pol, Observe: j.note}
		for range 3 {
			resp, err := tr.RoundTrip(request(t, "POST", "x"))
			finish(t, resp, err)
		}
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		e := refused(t, resp, err)
		if e.Reason != heed.BreakerOpen || !errors.Is(err, heed.ErrBreakerOpen) || p.count() != 3 || time.Until(e.RetryAt) < 10*time.Second {
			t.Errorf("got %v after %d attempts", err, p.count())
		}
		if got := j.of(heed.BreakerChanged); len(got) != 1 || got[0].Breaker != "open" {
			t.Errorf("told %+v", got)
		}
	})
}

func TestACallWaitsForTheBreakerToClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Breaker = policy.Breaker{Consecutive: 1, Open: 10 * time.Second}
		p := plays(says(500, ""), says(200, "ok"))
		tr := &heed.Transport{Base: p, Policy: pol}
		resp, err := tr.RoundTrip(request(t, "GET", ""))
		if status, _ := finish(t, resp, err); status != 200 || p.tries[1].at < 10*time.Second {
			t.Errorf("got %d, the second attempt left after %v", status, p.tries[1].at)
		}
		if got := tr.Gates()[0].Breaker; got != "closed" {
			t.Errorf("the breaker is %s", got)
		}
	})
}

func TestTheHealthRequestGoesBeforeTheCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Breaker = policy.Breaker{Consecutive: 1, Open: time.Second, Health: policy.Health{Path: "/alive?deep=1"}}
		var got []string
		p := plays(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.Method+" "+r.URL.RequestURI())
			if len(got) < 3 { // the call, and the first health request
				return says(500, "down")(r)
			}
			return says(200, "ok")(r)
		})
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "PUT", "x"))
		finish(t, resp, err)
		want := []string{"PUT /v1/items", "GET /alive?deep=1", "GET /alive?deep=1", "PUT /v1/items"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if r, _ := heed.ReportOf(resp); r.Attempts != 2 || p.open != 0 {
			t.Errorf("got %d attempts, %d answers open", r.Attempts, p.open)
		}
	})
}

func TestAHealthResourceInJSONPasses(t *testing.T) {
	for name, alive := range map[string]func(*http.Request) (*http.Response, error){
		"of known length": says(200, `{"status":"up"}`, "Content-Type", "application/json"),
		"of unknown length": func(r *http.Request) (*http.Response, error) {
			resp, err := says(200, `{"status":"up"}`, "Content-Type", "application/json")(r)
			resp.ContentLength = -1
			return resp, err
		},
	} {
		bubble(t, func(t *testing.T) {
			pol := unpaced()
			pol.Breaker = policy.Breaker{Consecutive: 1, Open: time.Second, Health: policy.Health{Path: "/alive"}}
			resp, err := (&heed.Transport{Base: plays(says(500, "down"), alive, says(200, "ok")), Policy: pol}).RoundTrip(request(t, "GET", ""))
			if status, text := finish(t, resp, err); status != 200 || text != "ok" {
				t.Errorf("%s: got %d %q, want the call's own answer after the health request", name, status, text)
			}
		})
	}
}

func TestAHealthResourceThatSaysItIsDownDoesNotPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Breaker = policy.Breaker{Consecutive: 1, Open: time.Second, Health: policy.Health{Path: "/alive"}}
		pol.Retry.Budget = 10 * time.Second
		rule := classify.Rule{ID: "down", When: classify.Match{Text: regexp.MustCompile("down")}, Then: classify.Verdict{Class: classify.Transient}}
		knows, _ := classify.New([]classify.Rule{rule})
		var all journal
		p := plays(says(500, "x"), says(200, `{"status":"down"}`, "Content-Type", "application/json"))
		resp, err := (&heed.Transport{Base: p, Policy: pol, Classifier: knows, Observe: all.note}).RoundTrip(request(t, "GET", ""))
		if e := refused(t, resp, err); e.Report.Attempts != 1 {
			t.Errorf("got %d attempts, want none after the first", e.Report.Attempts)
		}
		for i, e := range all.of(heed.BreakerChanged) {
			if again := e.Reason == heed.ProbeFailed; again != (i > 0) || again && e.Status != 200 {
				t.Errorf("event %d: got %q with status %d, want the first to be an opening and the others failed probes", i, e.Reason, e.Status)
			}
		}
	})
}

// panics runs f and tells whether it panicked.
func panics(f func()) (thrown any) {
	defer func() { thrown = recover() }()
	f()
	return nil
}

func TestAPanicInAHookReleasesEverything(t *testing.T) {
	for _, kind := range []heed.EventKind{heed.AttemptDone, heed.CallDone, heed.WaitBegun} {
		bubble(t, func(t *testing.T) {
			p := plays(says(429, "x", "Retry-After", "5"), says(200, ""))
			pol := unpaced()
			pol.Limits.Concurrency = 1
			tr := &heed.Transport{
				Base: p, Policy: pol,
				Observe: func(e heed.Event) {
					if e.Kind == kind && e.CorrelationID == "bad" {
						panic("hook")
					}
				},
			}
			ctx := heed.WithCall(t.Context(), heed.Call{CorrelationID: "bad"})
			if panics(func() { tr.RoundTrip(request(t, "GET", "").WithContext(ctx)) }) != "hook" {
				t.Fatalf("%v: the panic was swallowed", kind)
			}
			if g := tr.Gates()[0]; g.InFlight != 0 || g.Waiting != 0 || p.open != 0 {
				t.Errorf("%v: the gate holds %+v, %d answers open", kind, g, p.open)
			}
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			finish(t, resp, err)
		})
	}
}

func TestAPanicWhileInTheLineDoesNotBlockTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(429, "", "Retry-After", "5"), says(200, ""))
		tr := &heed.Transport{Base: p, Policy: unpaced(), Observe: func(e heed.Event) {
			if e.Kind == heed.WaitBegun && e.CorrelationID == "bad" {
				panic("hook")
			}
		}}
		once := heed.WithCall(t.Context(), heed.Call{RetryOff: true})
		resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(once))
		finish(t, resp, err)
		bad := heed.WithCall(t.Context(), heed.Call{CorrelationID: "bad", Priority: 9})
		panics(func() { tr.RoundTrip(request(t, "GET", "").WithContext(bad)) })
		resp, err = tr.RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
	})
}

func TestAProbeThatPanicsHasFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Breaker = policy.Breaker{Consecutive: 1, Open: time.Second, OnOpen: policy.OnOpenFail}
		p := plays(says(500, ""), func(*http.Request) (*http.Response, error) { panic("base") }, says(200, ""))
		tr := &heed.Transport{Base: p, Policy: pol}
		resp, err := tr.RoundTrip(request(t, "POST", "x"))
		finish(t, resp, err)
		time.Sleep(2 * time.Second)
		if panics(func() { tr.RoundTrip(request(t, "GET", "")) }) != "base" {
			t.Fatal("the panic was swallowed")
		}
		if got := tr.Gates()[0].Breaker; got != "open" {
			t.Errorf("the breaker is %s, want open", got)
		}
		time.Sleep(10 * time.Second) // less than the lease of a probe
		resp, err = tr.RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
	})
}

// told keeps of an event what a test compares.
type told struct {
	Kind         heed.EventKind
	Attempt      int
	Status       int
	Class        classify.Class
	Source       policy.WaitSource
	Retry        bool
	Reason       string
	Bytes        int64
	WireAttempts int
}

func TestTheEventsOfACallAreExactlyThese(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := &journal{}
		p := plays(says(429, "", "Retry-After", "3"), says(200, "12345"))
		resp, err := (&heed.Transport{Base: p, Policy: unpaced(), Observe: j.note}).RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		var got []told
		for _, e := range j.events {
			got = append(got, told{e.Kind, e.Attempt, e.Status, e.Class, e.WaitSource, e.Retry, e.Reason, e.Bytes, e.WireAttempts})
		}
		want := []told{
			{Kind: heed.AttemptDone, Attempt: 1, Status: 429, Class: classify.Throttled, Source: policy.WaitRetryAfter, Retry: true, WireAttempts: 1},
			{Kind: heed.WaitBegun, Attempt: 1, Status: 429, Class: classify.Throttled, Source: policy.WaitRetryAfter},
			{Kind: heed.AttemptDone, Attempt: 2, Status: 200, Class: classify.OK, Source: policy.WaitRetryAfter, WireAttempts: 1},
			{Kind: heed.CallDone, Attempt: 2, Status: 200, Class: classify.OK, Source: policy.WaitRetryAfter, Bytes: 5, WireAttempts: 2},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestAKeyIsToldWithoutItsCredential(t *testing.T) {
	tr := &heed.Transport{Base: plays(says(200, ""))}
	for _, cred := range []string{"Bearer canary-1", "Bearer canary-2", "Bearer canary-1"} {
		req := request(t, "GET", "")
		req.Header.Set("Authorization", cred)
		resp, err := tr.RoundTrip(req)
		finish(t, resp, err)
	}
	got := tr.Gates()
	if len(got) != 2 || strings.Contains(fmt.Sprintf("%#v", got), "canary") || got[0].Key == got[1].Key {
		t.Errorf("got %+v, want two keys without the credential", got)
	}
}

func TestManyKeysAreForgottenAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		p := plays(says(429, "", "Retry-After", "3600"), says(200, ""))
		tr := &heed.Transport{Base: p, QuotaKey: func(*http.Request) string { n++; return fmt.Sprint("key-", n) }}
		for range 3000 {
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			finish(t, resp, err)
		}
		gates, shut := tr.Gates(), 0
		for _, g := range gates {
			if g.ClosedUntil.After(time.Now()) {
				shut++
			}
		}
		if len(gates) > 1024 || shut != 1 {
			t.Errorf("got %d keys, %d of them closed; want at most 1024, and the closed one among them", len(gates), shut)
		}
		synctest.Wait()
	})
}
