package gateway

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

func TestEveryReasonHasItsStatusAndFault(t *testing.T) {
	for _, c := range []struct {
		err    heed.Error
		status int
		fault  string
	}{
		{heed.Error{Reason: heed.DeadlineExceeded}, 504, "http_response_timeout"},
		{heed.Error{Reason: heed.QuotaWait}, 429, "proxy_internal_response"},
		{heed.Error{Reason: heed.QuotaWait, Status: 503, Class: classify.Overloaded}, 503, "proxy_internal_response"},
		{heed.Error{Reason: heed.OverCeiling, Status: 429, Class: classify.Throttled}, 429, "proxy_internal_response"},
		{heed.Error{Reason: heed.Deferred}, 503, "proxy_internal_response"},
		{heed.Error{Reason: heed.BreakerOpen}, 503, "destination_unavailable"},
		{heed.Error{Reason: heed.RetryBudget}, 503, "destination_unavailable"},
		{heed.Error{Reason: heed.AttemptsExhausted}, 502, "destination_unavailable"},
		{heed.Error{Reason: heed.NotRepeatable}, 502, "connection_terminated"},
		{heed.Error{Reason: heed.BodyNotReplayable}, 502, "connection_terminated"},
		{heed.Error{Reason: heed.NotAllowed}, 403, "http_request_denied"},
		{heed.Error{Reason: heed.TokenFailed}, 502, "proxy_internal_error"},
		{heed.Error{Reason: heed.Canceled}, 503, "proxy_internal_response"},
		{heed.Error{Reason: heed.PermanentFailure}, 502, "http_protocol_error"},
		{heed.Error{Reason: heed.InvalidAnswer, Status: 200}, 502, "http_protocol_error"},
		{heed.Error{Reason: heed.TruncatedAnswer, Status: 200, Class: classify.Truncated}, 502, "http_response_incomplete"},
		{heed.Error{Reason: heed.StaleAnswer, Status: 200, Class: classify.Stale}, 502, "proxy_internal_response"},
		{heed.Error{Reason: heed.RetryOff}, 502, "destination_unavailable"},
		{heed.Error{Reason: "new"}, 502, "http_protocol_error"},
		// without an answer, the failure says more
		{heed.Error{Reason: heed.RetryOff, Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, 502, "connection_refused"},
		{heed.Error{Reason: heed.RetryOff, Err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}}, 504, "connection_timeout"},
		{heed.Error{Reason: heed.RetryOff, Err: &net.OpError{Op: "dial", Err: syscall.ENETUNREACH}}, 502, "destination_ip_unroutable"},
		{heed.Error{Reason: heed.PermanentFailure, Err: &net.DNSError{IsNotFound: true}}, 502, "dns_error"},
		{heed.Error{Reason: heed.RetryOff, Err: &net.DNSError{IsTimeout: true}}, 504, "dns_timeout"},
		{heed.Error{Reason: heed.PermanentFailure, Err: x509.UnknownAuthorityError{}}, 502, "tls_certificate_error"},
		{heed.Error{Reason: heed.PermanentFailure, Err: &Blocked{}}, 502, "destination_ip_prohibited"},
		{heed.Error{Reason: heed.NotRepeatable, Err: io.EOF}, 502, "connection_terminated"},
		{heed.Error{Reason: heed.NotRepeatable, Err: io.ErrUnexpectedEOF}, 502, "http_response_incomplete"},
		{heed.Error{Reason: heed.NotRepeatable, Err: context.DeadlineExceeded}, 504, "http_response_timeout"},
		{heed.Error{Reason: heed.RetryOff, Err: errors.New("odd")}, 502, "destination_unavailable"},
		// a status may be that of an attempt before
		{heed.Error{Reason: heed.RetryOff, Status: 503, Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, 502, "connection_refused"},
		// with an answer, it was there
		{heed.Error{Reason: heed.AttemptsExhausted, Status: 200, Class: classify.Invalid}, 502, "http_protocol_error"},
		{heed.Error{Reason: heed.NotRepeatable, Status: 200, Class: classify.Truncated}, 502, "http_response_incomplete"},
		{heed.Error{Reason: heed.RetryBudget, Status: 200, Class: classify.Stale}, 503, "proxy_internal_response"},
		{heed.Error{Reason: heed.DeadlineExceeded, Status: 200, Class: classify.Invalid, Err: errors.Join(context.DeadlineExceeded)}, 504, "http_protocol_error"},
	} {
		r := refusalOf(&c.err)
		if r.kind.status != c.status || r.fault != c.fault {
			t.Errorf("%s %v: got %d %s, want %d %s", c.err.Reason, c.err.Err, r.kind.status, r.fault, c.status, c.fault)
		}
		if want := string(c.err.Reason); r.name != want && c.err.Reason != "new" {
			t.Errorf("the type of %s ends in %s", want, r.name)
		}
		if r.title == "" || r.help == "" {
			t.Errorf("%s says nothing", c.err.Reason)
		}
	}
}

func TestAnEndWithAnAnswerNeverReadsAsOneWithout(t *testing.T) {
	for reason := range ends {
		if !blames[reason] {
			continue // we did not ask
		}
		for class := classify.Throttled; class <= classify.Truncated; class++ {
			r := refusalOf(&heed.Error{Reason: reason, Status: 200, Class: class, Report: heed.Report{Attempts: 1, Rule: "some rule"}})
			text := r.Title + " " + r.Detail
			if strings.Contains(text, "reached") || strings.Contains(text, "url of the endpoint") || strings.HasPrefix(r.fault, "destination") || strings.HasPrefix(r.fault, "connection") {
				t.Errorf("%s, %s: got %s, %s", reason, class, r.fault, text)
			}
			if want := `The last answer had status 200; by the rule "some rule" it is ` + class.String(); !strings.Contains(text, want) || r.Rule != "some rule" {
				t.Errorf("%s, %s: got %s", reason, class, text)
			}
		}
	}
}

func TestRetryAfterIsRoundedUpAndNeverMissing(t *testing.T) {
	for _, c := range []struct {
		reason heed.Reason
		in     time.Duration
		want   string
	}{
		{heed.BreakerOpen, 1200 * time.Millisecond, "2"},
		{heed.BreakerOpen, 3 * time.Second, "3"},
		{heed.BreakerOpen, -time.Second, "1"},
		{heed.QuotaWait, 0, "1"},
		{heed.DeadlineExceeded, time.Minute, "60"},
		{heed.DeadlineExceeded, -time.Minute, ""},
	} {
		r := refusalOf(&heed.Error{Reason: c.reason, RetryAt: noon.Add(c.in)})
		w := httptest.NewRecorder()
		r.write(w, noon)
		if got := w.Header().Get("Retry-After"); got != c.want {
			t.Errorf("%s in %v: got %q, want %q", c.reason, c.in, got, c.want)
		}
	}
}

func TestDeadlineIsAProblemWithWhatIsKnown(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(503)
	}, nil)
	a := r.get("/api/x", http.Header{"Heed-Budget": {"5s"}})
	// The upstream's own answer is in hand and says it all.
	if a.StatusCode != 503 || a.Header.Get("Heed-Origin") != "" || a.Header.Get("Retry-After") != "120" {
		t.Errorf("got %d %v", a.StatusCode, a.Header)
	}
}

func TestOpenBreakerIsAProblem(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, func(_ *rig, tr *heed.Transport) {
		tr.Policy.Breaker = policy.Breaker{Consecutive: 1, Open: time.Hour, OpenMax: time.Hour, OnOpen: policy.OnOpenFail, Jitter: -1}
		tr.Policy.Retry.Off = true
	})
	r.get("/api/x", nil)
	a := r.get("/api/x", nil)
	p := wantProblem(t, a, 503, "breaker-open")
	if got := a.Header.Get("Retry-After"); got != "3600" {
		t.Errorf("Retry-After is %q, want 3600", got)
	}
	if p.RetryAt == nil || p.Endpoint != "api" || p.Attempts == nil || *p.Attempts != 0 || p.CallID == "" || a.Header.Get("Heed-Breaker") == "closed" {
		t.Errorf("got %+v", p)
	}
}

func TestDisallowedUseIsAProblem(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, func(_ *rig, tr *heed.Transport) {
		tr.Policy.Allow = []policy.Allow{{Methods: []string{"GET"}, Path: "/base/v6/**"}}
	})
	wantProblem(t, r.do(r.request("DELETE", "/api/v6/x", "", nil)), 403, "not-allowed")
}

func TestBlockedAddressSaysWhatToWrite(t *testing.T) {
	r := upstream(t, nil, func(r *rig, tr *heed.Transport) {
		tr.Base = &http.Transport{DialContext: (&Dialer{Endpoint: "api"}).DialContext}
	})
	a := r.get("/api/x", nil)
	p := wantProblem(t, a, 502, "permanent")
	if !strings.Contains(p.Detail, "networks: [127.0.0.1/32] under endpoints.api") || *p.Attempts != 1 {
		t.Errorf("got %q after %d attempts", p.Detail, *p.Attempts)
	}
	if got := a.Header.Get("Proxy-Status"); !strings.Contains(got, "error=destination_ip_prohibited") {
		t.Errorf("got %s", got)
	}
}

func TestUnknownEndpointListsTheNames(t *testing.T) {
	r := upstream(t, nil, nil)
	for _, path := range []string{"/nope/x", "/", "//evil.test/api", "/API/x", "/%61pi%2f"} {
		p := wantProblem(t, r.get(path, nil), 404, "unknown-endpoint")
		if !slices.Equal(p.Endpoints, []string{"api"}) {
			t.Errorf("%s: got %v", path, p.Endpoints)
		}
	}
}

func TestBadPathIsAProblem(t *testing.T) {
	r := upstream(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was sent", r.RequestURI) }, nil)
	for _, path := range []string{"/api/..%2f..%2fadmin", "/api/%2e%2e/%2e%2e/x", "/api/a%5cb", "/api/a%00", "/api/%252e%252e/x"} {
		wantProblem(t, r.get(path, nil), 400, "bad-path")
	}
}

func TestProblemTypesAreExplained(t *testing.T) {
	r := upstream(t, nil, nil)
	for _, k := range kinds() {
		a := r.get(problemPath+k.name, nil)
		if a.StatusCode != 200 || !strings.Contains(a.text, k.title) {
			t.Errorf("%s: got %d %q", k.name, a.StatusCode, a.text)
		}
	}
	wantProblem(t, r.get(problemPath+"nope", nil), 404, "unknown-endpoint")
}

func TestUpstreamThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	r := upstream(t, nil, func(r *rig, tr *heed.Transport) {
		r.endpoint.URL = &url.URL{Scheme: "http", Host: addr}
		tr.Base = &http.Transport{DialContext: (&Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}).DialContext}
		tr.Policy.Retry.Attempts = 3
	})
	a := r.get("/api/x", nil)
	p := wantProblem(t, a, 502, "attempts-exhausted")
	if *p.Attempts != 3 || a.Header.Get("Heed-Attempts") != "3" {
		t.Errorf("got %d attempts", *p.Attempts)
	}
	if got := a.Header.Get("Proxy-Status"); !strings.Contains(got, "error=connection_refused") {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsNotAllowedIsNamed(t *testing.T) {
	r := upstream(t, func(http.ResponseWriter, *http.Request) {}, func(r *rig, tr *heed.Transport) {
		tr.Policy.Allow = []policy.Allow{{Methods: []string{"GET"}, Path: "/items/**"}}
	})
	p := wantProblem(t, r.get("/api/patrons/1234567", nil), 403, "not-allowed")
	if !strings.HasPrefix(p.Detail, "The allow list of api does not have GET for this path. ") {
		t.Errorf("got %q, want endpoint and method", p.Detail)
	}
}
