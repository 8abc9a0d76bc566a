package gateway

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
)

func TestMalformedRequestsAreRefusedAndNothingIsSmuggled(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, r.Method+" "+r.RequestURI+" "+string(b))
		mu.Unlock()
	}, nil)
	at := r.Listener.Addr().String()
	for _, c := range []struct{ name, text, want string }{
		{"both lengths", "POST /api/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n", ""},
		{"two lengths", "POST /api/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"},
		{"length list", "POST /api/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\nx", "400"},
		{"signed length", "POST /api/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\nx", "400"},
		{"odd coding", "POST /api/c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\nx", "501"},
		{"space before colon", "GET /api/d HTTP/1.1\r\nHost: localhost\r\nX : 1\r\n\r\n", "400"},
		{"bare CR in a value", "GET /api/e HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n", "400"},
		{"NUL in a value", "GET /api/e HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", "400"},
		{"control in the path", "GET /api/\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
		{"two hosts", "GET /api/f HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n\r\n", "400"},
		{"no host", "GET /api/f HTTP/1.1\r\n\r\n", "400"},
		{"not HTTP", "hello\r\n\r\n", "400"},
		{"TLS", "\x16\x03\x01\x00\x05hello\r\n\r\n", "400"},
		{"HTTP/3.0", "GET /api/f HTTP/3.0\r\nHost: localhost\r\n\r\n", "505"},
		{"absolute, elsewhere", "GET http://evil.test/api/g HTTP/1.1\r\nHost: localhost\r\n\r\n", "421"},
		{"absolute, other scheme", "GET ftp://" + at + "/api/g HTTP/1.1\r\nHost: localhost\r\n\r\n", "421"},
		{"absolute, with user", "GET http://u:p@" + at + "/api/g HTTP/1.1\r\nHost: localhost\r\n\r\n", "421"},
		{"authority in the path", "GET //evil.test/api/g HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"},
		{"at in the path", "GET /@evil.test/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"},
		{"no slash", "GET api/g HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
		{"backslash", "GET /api/..\\x HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
		{"CONNECT", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", "405"},
		{"TRACE", "TRACE /api/h HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"},
		{"WebSocket", "GET /api/h HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n", "501"},
		{"huge header", "GET /api/h HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", "431"},
		{"many fields", "GET /api/h HTTP/1.1\r\nHost: localhost\r\n" + manyFields(300) + "\r\n", "431"},
	} {
		got := r.raw(c.text)
		if c.want != "" && !strings.HasPrefix(got, c.want+" ") {
			t.Errorf("%s: got %.300q, want %s", c.name, got, c.want)
		}
	}
	mu.Lock()
	for _, s := range seen {
		if !strings.HasPrefix(s, "POST /base/a ") {
			t.Errorf("the upstream saw %q", s)
		}
	}
	mu.Unlock()
	if a := r.get("/api/next", nil); a.StatusCode != 200 {
		t.Errorf("the next call got %d %s", a.StatusCode, a.text)
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("X-" + strings.Repeat("a", i%7) + string(rune('a'+i%26)) + strings.Repeat("b", i/26) + ": 1\r\n")
	}
	return b.String()
}

func TestAbsoluteTargetThatMeansUsIsServed(t *testing.T) {
	r := upstream(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) }, nil)
	got := r.raw("GET " + r.URL + "/api/x HTTP/1.1\r\nHost: " + r.Listener.Addr().String() + "\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "/base/x") {
		t.Errorf("got %s", got)
	}
}

func TestOneProtocolErrorOfTheUpstreamIsAProblemAndTheNextCallWorks(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"not HTTP", "hello\r\n\r\n"},
		{"nothing", ""},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"},
		{"unasked upgrade", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"},
		{"status 099", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"},
		{"huge head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 12<<20) + "\r\n\r\n"},
		{"bad chunk", "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
	} {
		broken := true
		r := upstream(t, func(w http.ResponseWriter, r *http.Request) {
			if !broken {
				return
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, c.text)
			conn.Close()
		}, nil)
		req := r.request("POST", "/api/x", "body", nil) // not repeated
		resp, err := r.Client().Transport.RoundTrip(req)
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode < 500 {
				t.Errorf("%s: got %d %q", c.name, resp.StatusCode, b)
			}
		}
		broken = false
		if a := r.get("/api/x", nil); a.StatusCode != 200 {
			t.Errorf("%s: the next call got %d %s", c.name, a.StatusCode, a.text)
		}
	}
}

// once is a policy that sends a call once.
func once(_ *rig, tr *heed.Transport) { tr.Policy.Retry.Attempts = 1 }

func TestAnAnswerThatIsNotHTTPIsToldAsSuch(t *testing.T) {
	const (
		notHTTP  = "What the upstream sent is not HTTP."
		protocol = "http_protocol_error"
	)
	for _, c := range []struct{ name, text, fault, detail string }{
		{"not HTTP", "hello\r\n\r\n", protocol, notHTTP},
		{"HTTP/0.9", "<html>hello</html>", protocol, notHTTP},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", protocol, notHTTP},
		{"status 99", "HTTP/1.1 99 Odd\r\nContent-Length: 0\r\n\r\n", protocol, notHTTP},
		{"NUL in a field", "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n", protocol, notHTTP},
		{"odd coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: odd\r\n\r\nx", protocol, notHTTP},
		{"huge head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 12<<20) + "\r\n\r\n", "http_response_header_section_size", "larger than what is read"},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "http_response_incomplete", "ended within its head"},
		{"nothing", "", "connection_terminated", ""},
		{"bad chunk", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "http_response_transfer_coding", "that is not HTTP"},
		{"no body", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n", "http_response_incomplete", ""},
	} {
		r := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, c.text)
			conn.Close()
		}, once)
		a := r.get("/api/x", nil)
		p := a.problem(t)
		if got := a.Header.Get("Proxy-Status"); p.Status != 502 || !strings.HasPrefix(got, "heed; error="+c.fault+";") {
			t.Errorf("%s: got %d, %s, want %s", c.name, p.Status, got, c.fault)
		}
		if !strings.Contains(p.Detail, c.detail) || strings.Contains(p.Title, "cannot be reached") {
			t.Errorf("%s: got %q, %q", c.name, p.Title, p.Detail)
		}
	}
}

// exception is a classifier that knows one error dressed as a success.
func exception(t *testing.T, class classify.Class, retry classify.Retry) *classify.Classifier {
	t.Helper()
	c, bad := classify.New([]classify.Rule{{
		ID: "invalid parameter", When: classify.Match{Text: regexp.MustCompile("InvalidParameterValue")},
		Then: classify.Verdict{Class: class, Executed: classify.No, Retry: retry},
	}})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return c
}

func wfsException(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/xml")
	io.WriteString(w, `<ExceptionReport><Exception exceptionCode="InvalidParameterValue" locator="canary"/></ExceptionReport>`)
}

func TestARequestThatTheUpstreamCallsWrongIsNotAnUpstreamThatCannotBeReached(t *testing.T) {
	r := upstream(t, wfsException, func(_ *rig, tr *heed.Transport) {
		tr.Classifier = exception(t, classify.Permanent, classify.Never)
	})
	a := r.get("/api/x", nil)
	p := wantProblem(t, a, 502, "permanent")
	wantText(t, p.Title, "answered that the request is wrong")
	wantText(t, p.Detail, `The last answer had status 200; by the rule "invalid parameter" it is permanent.`, "Correct the request")
	if p.Rule != "invalid parameter" || strings.Contains(a.text, "canary") || strings.Contains(p.Detail, "url of the endpoint") {
		t.Errorf("got %s", a.text)
	}
}

func TestABudgetThatInvalidAnswersUsedUpSaysSo(t *testing.T) {
	r := upstream(t, wfsException, func(_ *rig, tr *heed.Transport) {
		tr.Classifier = exception(t, classify.Invalid, classify.Idempotent)
		tr.Policy.Retry.Budget = 3 * time.Second
		tr.Policy.Retry.MinAttempt = 2900 * time.Millisecond // no attempt is cut off by the end of the budget
		tr.Policy.Backoff.Base, tr.Policy.Backoff.Cap = 30*time.Millisecond, 30*time.Millisecond
	})
	a := r.get("/api/x", nil)
	p := wantProblem(t, a, 504, "deadline-exceeded")
	wantText(t, p.Detail, `the last one was invalid, with status 200 (rule "invalid parameter")`)
	if got := a.Header.Get("Proxy-Status"); !strings.HasPrefix(got, "heed; error=http_protocol_error;") {
		t.Errorf("got %s", got)
	}
}
