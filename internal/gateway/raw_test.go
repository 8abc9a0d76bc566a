package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
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
