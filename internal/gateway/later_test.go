package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

func TestACallIsAcceptedCarriedOutAndItsAnswerRepeated(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = func(*http.Request, int) (int, http.Header, string) {
			return 201, http.Header{"X-Own": {"theirs"}, "Heed-Origin": {"forged"}}, "made"
		}
		a := l.do(l.Gateway, "POST", "/api/orders?x=1", "order", "Prefer", "respond-async, return=minimal", "Content-Type", "text/plain", "Authorization", "secret")
		var got acceptance
		l.decode(a, &got)
		at := a.Header.Get("Location")
		if a.StatusCode != 202 || got.State != "queued" || at != "/_heed/calls/"+got.ID || a.Header.Get("Retry-After") != "1" ||
			a.Header.Get("Preference-Applied") != "respond-async" {
			t.Errorf("got %d %v %+v", a.StatusCode, a.Header, got)
		}
		if s := l.end(at); s.State != "done" || s.LastStatus != 201 || s.Attempts != 1 {
			t.Errorf("got %+v", s)
		}
		again := l.do(l.Gateway, "GET", at+"/response", "")
		if again.StatusCode != 201 || again.text != "made" || again.Header.Get("X-Own") != "theirs" || again.Header.Get("Heed-Origin") != "" ||
			again.Header.Get("Heed-Attempts") != "1" {
			t.Errorf("got %d %q %v", again.StatusCode, again.text, again.Header)
		}
		want := sight{method: "POST", url: "http://api.test/base/orders?x=1", body: "order",
			header: http.Header{"Content-Type": {"text/plain"}, "User-Agent": {""}, "Prefer": {"return=minimal"}}}
		sent := l.sights()[0]
		sent.at = time.Time{}
		if diff := cmp.Diff(sent, want, cmp.AllowUnexported(sight{})); diff != "" {
			t.Errorf("what was sent (-got +want):\n%s", diff)
		}
	})
}

func TestAThrottledCallWaitsOnDiskForAsLongAsItWasTold(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = func(_ *http.Request, n int) (int, http.Header, string) {
			if n == 1 {
				return 429, http.Header{"Retry-After": {"90"}}, "later"
			}
			return 200, nil, "now"
		}
		at := l.async("GET", "/api/x", "")
		time.Sleep(2 * time.Second)
		if s := l.ask(at); s.State != "waiting" || s.WaitSource != "retry_after" || time.Until(s.NextAt) < 80*time.Second {
			t.Errorf("got %+v, want it to wait for Retry-After", s)
		}
		s := l.end(at)
		if d := l.sights()[1].at.Sub(l.sights()[0].at); s.State != "done" || d < 90*time.Second || d > 92*time.Second {
			t.Errorf("sent again after %v as %s, want after 90 s", d, s.State)
		}
		if len(s.Trail) != 2 || s.Trail[0].Status != 429 || s.Trail[1].WaitSource != "retry_after" || s.Trail[1].Waited < 90 {
			t.Errorf("got attempts %+v", s.Trail)
		}
	})
}

func TestWaitGetsTheAnswerInlineOrElse202(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = func(*http.Request, int) (int, http.Header, string) {
			time.Sleep(3 * time.Second)
			return 200, nil, "slow"
		}
		begun := time.Now()
		a := l.do(l.Gateway, "GET", "/api/a", "", "Prefer", "respond-async, wait=10")
		if a.StatusCode != 200 || a.text != "slow" || a.Header.Get("Preference-Applied") != "respond-async, wait=10" || time.Since(begun) > 4*time.Second {
			t.Errorf("got %d %q after %v", a.StatusCode, a.text, time.Since(begun))
		}
		begun = time.Now()
		b := l.do(l.Gateway, "GET", "/api/b", "", "Prefer", "respond-async, wait=1")
		if b.StatusCode != 202 || time.Since(begun) != time.Second {
			t.Errorf("got %d after %v, want 202 after 1 s", b.StatusCode, time.Since(begun))
		}
		if s := l.end(b.Header.Get("Location")); s.State != "done" {
			t.Errorf("the call ended as %s", s.State)
		}
	})
}

func TestAMethodMayAlwaysBeAnsweredLater(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Endpoints[0].Async.Methods = []string{"POST"} }, func(l *later) {
		if a := l.do(l.Gateway, "POST", "/api/x", "b"); a.StatusCode != 202 || a.Header.Get("Preference-Applied") != "" {
			t.Errorf("POST: got %d %v", a.StatusCode, a.Header)
		}
		if a := l.do(l.Gateway, "GET", "/api/x", ""); a.StatusCode != 200 {
			t.Errorf("GET: got %d", a.StatusCode)
		}
	})
}

func TestTheSameKeyIsTheSameCall(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.async("POST", "/api/pay", "10", "Idempotency-Key", "k1")
		again := l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "k1", "Prefer", "respond-async")
		if again.StatusCode != 202 || again.Header.Get("Location") != at || again.Header.Get("Heed-Duplicate") != "true" {
			t.Errorf("got %d %v, want 202 and %s", again.StatusCode, again.Header, at)
		}
		wantProblem(t, l.do(l.Gateway, "POST", "/api/pay", "11", "Idempotency-Key", "k1", "Prefer", "respond-async"), 422, "idempotency-key-reused")
		l.end(at)
		third := l.do(l.Gateway, "POST", "/api/pay", "10", "Idempotency-Key", "k1", "Prefer", "respond-async, wait=5")
		if third.StatusCode != 200 || third.text != "hello" || third.Header.Get("Heed-Duplicate") != "true" {
			t.Errorf("got %d %q, want the first answer", third.StatusCode, third.text)
		}
		if n := len(l.sights()); n != 1 {
			t.Errorf("%d requests were sent, want 1", n)
		}
	})
}

func TestEveryAttemptHasTheSameKeyAlsoAfterARestart(t *testing.T) {
	change := func(_ *Settings, p *policy.Policy) {
		p.Key = policy.Key{Header: "X-Own-Key", From: policy.KeyRandom, Quoted: true}
	}
	bubble(t, change, func(l *later) {
		l.api = func(_ *http.Request, n int) (int, http.Header, string) {
			if n < 3 {
				return 503, nil, "down"
			}
			return 200, nil, "up"
		}
		at := l.async("POST", "/api/pay", "10")
		time.Sleep(time.Second)
		l.close()
		l.open()
		if s := l.end(at); s.State != "done" || s.Attempts != 3 {
			t.Errorf("got %+v", s)
		}
		var keys []string
		for _, s := range l.sights() {
			keys = append(keys, s.header.Get("X-Own-Key"))
		}
		if len(keys) != 3 || len(keys[0]) < 20 || keys[0][0] != '"' || keys[1] != keys[0] || keys[2] != keys[0] {
			t.Errorf("got keys %q, want one, quoted, three times", keys)
		}
	})
}

func TestADerivedKeyFindsTheSameWriteInAnyOrder(t *testing.T) {
	change := func(s *Settings, p *policy.Policy) {
		p.Key = policy.Key{Header: "Idempotency-Key", From: policy.KeyHash, AnyOrder: true, RecordHeader: "X-Record"}
	}
	bubble(t, change, func(l *later) {
		at := l.async("POST", "/api/x", `{"a":1,"b":2}`, "X-Record", "7")
		if again := l.async("POST", "/api/x", `{"b":2,"a":1}`, "X-Record", "7"); again != at {
			t.Errorf("got %s, want %s", again, at)
		}
		if other := l.async("POST", "/api/x", `{"a":1,"b":2}`, "X-Record", "8"); other == at {
			t.Error("another record is taken for the same write")
		}
	})
}

func TestAWriteWithoutAKeyIsRefusedWhereOneIsRequired(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Endpoints[0].Async.RequireKey = true }, func(l *later) {
		wantProblem(t, l.do(l.Gateway, "POST", "/api/x", "b", "Prefer", "respond-async"), 400, "idempotency-key-required")
		l.async("GET", "/api/x", "")
	})
}

func TestACallMayNotBeginBeforeItsInstant(t *testing.T) {
	bubble(t, nil, func(l *later) {
		begun := time.Now()
		at := l.async("GET", "/api/x", "", "Heed-Not-Before", "600")
		if s := l.ask(at); s.State != "waiting" || s.NextAt.Sub(begun) != 10*time.Minute {
			t.Errorf("got %+v", s)
		}
		l.end(at)
		if d := l.sights()[0].at.Sub(begun); d < 10*time.Minute || d > 10*time.Minute+time.Second {
			t.Errorf("sent after %v", d)
		}
	})
}

func TestACallEndsWhenItsBudgetIsUsedUp(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = answers(503, "down")
		at := l.async("GET", "/api/x", "", "Heed-Budget", "30s")
		s := l.end(at)
		if s.State != "dead" || s.Reason != queue.ReasonExpired || s.Ended.Sub(s.Created) > 36*time.Second {
			t.Errorf("got %+v", s)
		}
		wantProblem(t, l.do(l.Gateway, "GET", at+"/response", ""), 504, "deadline-exceeded")
	})
}

func TestAKeyThatIsClosedForLongerEndsNoCallBeforeItExpires(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = func(*http.Request, int) (int, http.Header, string) {
			return 429, http.Header{"Retry-After": {"3600"}}, ""
		}
		told := l.async("GET", "/api/x", "", "Heed-Budget", "10m")
		time.Sleep(time.Second)
		other := l.async("GET", "/api/y", "", "Heed-Budget", "10m")
		time.Sleep(9 * time.Minute) // in which somebody might have opened the key
		for _, at := range []string{told, other} {
			if s := l.ask(at); s.State != "waiting" {
				t.Errorf("%s: got %s (%s), want it to wait", at, s.State, s.Reason)
			}
		}
		time.Sleep(time.Minute)
		if _, err := l.store.Sweep(l.Context(), time.Now(), 10); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{told, other} {
			if s := l.ask(at); s.State != "dead" || s.Reason != queue.ReasonExpired {
				t.Errorf("%s: got %s (%s), want it dead of its age", at, s.State, s.Reason)
			}
		}
		if n := len(l.sights()); n != 1 {
			t.Errorf("got %d requests, want the one that was told to come later", n)
		}
	})
}

func TestAWriteThatMayHaveArrivedIsForAPerson(t *testing.T) {
	bubble(t, func(_ *Settings, p *policy.Policy) { p.Key.Header = "" }, func(l *later) {
		l.api = answers(0, "")
		at := l.async("POST", "/api/x", "b")
		s := l.end(at)
		if s.State != "unknown" || s.Attempts != 1 {
			t.Errorf("got %s after %d attempts, want unknown after 1", s.State, s.Attempts)
		}
		wantProblem(t, l.do(l.Gateway, "GET", at+"/response", ""), 502, "not-repeatable")
	})
}

func TestWhatAnUnknownWriteWasAnsweredIsKeptForAPerson(t *testing.T) {
	bubble(t, func(_ *Settings, p *policy.Policy) { p.Key.Header = "" }, func(l *later) {
		l.api = answers(503, "charged, but the ledger is down")
		at := l.async("POST", "/api/x", "b")
		if s := l.end(at); s.State != "unknown" {
			t.Fatalf("got %s, want unknown", s.State)
		}
		var got revealed
		if a := l.do(l.Admin(), "POST", at+"/reveal", `{"why":"was it charged?"}`); a.StatusCode != 200 {
			t.Fatalf("got %d: %s", a.StatusCode, a.text)
		} else {
			l.decode(a, &got)
		}
		if got.Answer == nil || got.Answer.Status != 503 || string(got.Answer.Body) != "charged, but the ledger is down" {
			t.Errorf("got %+v", got.Answer)
		}
		wantProblem(t, l.do(l.Gateway, "GET", at+"/response", ""), 502, "not-repeatable") // it is no answer to the caller
	})
}

func TestARefusedWriteIsDeadAndItsAnswerIsKept(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = answers(422, "no such account")
		at := l.async("POST", "/api/x", "b")
		if s := l.end(at); s.State != "dead" || s.Reason != "permanent" || s.LastStatus != 422 {
			t.Errorf("got %+v", s)
		}
		if a := l.do(l.Gateway, "GET", at+"/response", ""); a.StatusCode != 422 || a.text != "no such account" {
			t.Errorf("got %d %q, want what the API said", a.StatusCode, a.text)
		}
		if !strings.Contains(l.logged(), `"msg":"queued call broke"`) || !strings.Contains(l.logged(), `"replay":"heed calls replay `) {
			t.Errorf("nobody was told: %s", l.logged())
		}
	})
}

func TestAnInvalidAnswerIsQuarantinedWithItsBody(t *testing.T) {
	change := func(_ *Settings, p *policy.Policy) { p.Retry.Attempts = 2 }
	bubble(t, change, func(l *later) {
		l.api = func(*http.Request, int) (int, http.Header, string) {
			return 200, http.Header{"Content-Type": {"application/json"}}, `{"cut":`
		}
		at := l.async("GET", "/api/x", "")
		s := l.end(at)
		if s.State != "quarantined" && s.State != "dead" {
			t.Fatalf("got %+v", s)
		}
		var o opened
		l.operate("GET", at, "", &o)
		if s.State != "quarantined" || o.Answer == nil || o.Answer.Size != len(`{"cut":`) {
			t.Errorf("got %s with answer %+v after %d attempts", s.State, o.Answer, s.Attempts)
		}
		if a := l.do(l.Gateway, "GET", at+"/response", ""); a.StatusCode < 500 {
			t.Errorf("an answer that is none is given out as %d", a.StatusCode)
		}
	})
}

func TestACallThatWaitsIsCancelledAndOneThatRunsIsNot(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = func(*http.Request, int) (int, http.Header, string) {
			time.Sleep(5 * time.Second)
			return 200, nil, "x"
		}
		waits := l.async("GET", "/api/x", "", "Heed-Not-Before", "60")
		if a := l.do(l.Gateway, "DELETE", waits, ""); a.StatusCode != 200 || !strings.Contains(a.text, `"state":"cancelled"`) {
			t.Errorf("got %d %s", a.StatusCode, a.text)
		}
		runs := l.async("GET", "/api/y", "")
		time.Sleep(time.Second)
		wantProblem(t, l.do(l.Gateway, "DELETE", runs, ""), 409, "call-running")
		l.end(runs)
		wantProblem(t, l.do(l.Gateway, "DELETE", runs, ""), 409, "call-ended")
		if n := len(l.sights()); n != 1 {
			t.Errorf("%d requests were sent, want 1", n)
		}
	})
}

func TestTheEndIsWaitedForByALongPoll(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = func(*http.Request, int) (int, http.Header, string) {
			time.Sleep(7 * time.Second)
			return 200, nil, "x"
		}
		at, begun := l.async("GET", "/api/x", ""), time.Now()
		a := l.do(l.Gateway, "GET", at+"?wait=30s", "")
		if !strings.Contains(a.text, `"state":"done"`) || time.Since(begun) > 8*time.Second {
			t.Errorf("got %s after %v", a.text, time.Since(begun))
		}
		slow, begun := l.async("GET", "/api/y", ""), time.Now()
		wantProblem(t, l.do(l.Gateway, "GET", slow+"/response?wait=2s", ""), 409, "call-not-ended")
		if d := time.Since(begun); d != 2*time.Second {
			t.Errorf("waited %v, want 2 s", d)
		}
	})
}

func TestAClientSeesItsOwnCallsOnly(t *testing.T) {
	change := func(s *Settings, _ *policy.Policy) {
		s.Clients = []Client{{Name: "a", Token: DigestOf("token-a")}, {Name: "ab", Token: DigestOf("token-b")}}
	}
	bubble(t, change, func(l *later) {
		a := l.do(l.Gateway, "POST", "/api/x", "b", "Prefer", "respond-async", "Heed-Token", "token-a", "Heed-Tenant", "t1", "Idempotency-Key", "k")
		at := a.Header.Get("Location")
		if own := l.do(l.Gateway, "GET", at, "", "Heed-Token", "token-a"); own.StatusCode != 200 {
			t.Errorf("its owner got %d", own.StatusCode)
		}
		for _, path := range []string{at, at + "/response"} {
			wantProblem(t, l.do(l.Gateway, "GET", path, "", "Heed-Token", "token-b"), 404, "unknown-call")
		}
		wantProblem(t, l.do(l.Gateway, "DELETE", at, "", "Heed-Token", "token-b"), 404, "unknown-call")
		wantProblem(t, l.do(l.Gateway, "GET", at, ""), 401, "token-required")
		wantProblem(t, l.do(l.Gateway, "POST", "/api/x", "b", "Prefer", "respond-async", "Heed-Token", "token-b", "Idempotency-Key", "k"),
			422, "idempotency-key-reused")
		var page listed
		l.operate("GET", "/_heed/calls", "", &page)
		if len(page.Calls) != 1 || page.Calls[0].Tenant != "a/t1" {
			t.Errorf("got %+v", page)
		}
	})
}

func TestACallIsHandedOverAsAnEnvelope(t *testing.T) {
	bubble(t, nil, func(l *later) {
		a := l.do(l.Gateway, "POST", "/_heed/calls",
			`{"heed":1,"endpoint":"api","method":"PUT","path":"/x?y=1","headers":{"content-type":["text/plain"]},"body":"aGk=","priority":7,"correlation_id":"c-1"}`)
		if a.StatusCode != 202 {
			t.Fatalf("got %d: %s", a.StatusCode, a.text)
		}
		s := l.end(a.Header.Get("Location"))
		sent := l.sights()[0]
		if s.State != "done" || s.Priority != 7 || s.CorrelationID != "c-1" || sent.url != "http://api.test/base/x?y=1" || sent.method != "PUT" ||
			sent.body != "hi" || sent.header.Get("Content-Type") != "text/plain" {
			t.Errorf("got %+v and %+v", s, sent)
		}
		wantProblem(t, l.do(l.Gateway, "POST", "/_heed/calls", `{"heed":1,"endpoint":"nowhere","method":"GET","path":"/"}`), 404, "unknown-endpoint")
		wantProblem(t, l.do(l.Gateway, "POST", "/_heed/calls", `{"heed":1,"endpoint":"api","method":"GET","path":"/../../etc"}`), 400, "bad-path")
		wantProblem(t, l.do(l.Gateway, "POST", "/_heed/calls", `{"heed":2}`), 400, "bad-envelope")
	})
}

func TestWithoutAQueueNothingIsAnsweredLater(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, nil)
	wantProblem(t, r.get("/api/x", http.Header{"Prefer": {"respond-async"}}), 501, "async-not-available")
	wantProblem(t, r.get("/_heed/calls/x", nil), 501, "async-not-available")
}

func TestTheProviderMayBeTheOneWhoAnswersLater(t *testing.T) {
	got := ""
	r := upstream(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Prefer") }, func(r *rig, _ *heed.Transport) {
		r.endpoint.Async.Pass = true
	})
	if a := r.get("/api/x", http.Header{"Prefer": {"respond-async"}}); a.StatusCode != 200 || got != "respond-async" {
		t.Errorf("got %d, and the provider was told %q", a.StatusCode, got)
	}
}

func TestACredentialOfTheCallerIsNotKept(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Endpoints[0].Passthrough = true }, func(l *later) {
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", "", "Prefer", "respond-async", "Authorization", "Basic x"), 403, "credential-not-kept")
		l.async("GET", "/api/x", "")
	})
}

func TestABodyThatIsTooLargeToKeepIsRefused(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Later.Body = 10 }, func(l *later) {
		wantProblem(t, l.do(l.Gateway, "POST", "/api/x", "12345678901", "Prefer", "respond-async"), 413, "body-too-large-to-queue")
		l.async("POST", "/api/x", "1234567890")
	})
}

func TestAClientThatMayNotUseTheQueueDoesNot(t *testing.T) {
	change := func(s *Settings, _ *policy.Policy) {
		s.Clients = []Client{{Name: "a", Token: DigestOf("token-a"), NoAsync: true}}
		s.Endpoints[0].Async.Enqueue = true
	}
	bubble(t, change, func(l *later) {
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", "", "Prefer", "respond-async", "Heed-Token", "token-a"), 403, "client-not-allowed")
		wantProblem(t, l.do(l.Gateway, "POST", "/_heed/calls", `{"heed":1,"endpoint":"api","method":"GET","path":"/x"}`, "Heed-Token", "token-a"), 403, "client-not-allowed")
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", "", "Heed-Token", "token-a"), 503, "endpoint-paused")
	})
}

func TestWhoAsksWhatWaitsIsToldOfTheQueueToo(t *testing.T) {
	bubble(t, nil, func(l *later) {
		begun := time.Now()
		at := l.async("GET", "/api/x", "", "Heed-Not-Before", "600")
		var got struct{ Queued []shownGate }
		l.operate("GET", "/_heed/waiting", "", &got)
		if len(got.Queued) != 1 || got.Queued[0].Endpoint != "api" || got.Queued[0].Queued != 1 || got.Queued[0].Due.Sub(begun) != 10*time.Minute {
			t.Errorf("got %+v, want one call of api in ten minutes", got.Queued)
		}
		l.do(l.Gateway, "DELETE", at, "")
		l.operate("GET", "/_heed/waiting", "", &got)
		if len(got.Queued) != 0 {
			t.Errorf("after it was cancelled: got %+v", got.Queued)
		}
	})
}
