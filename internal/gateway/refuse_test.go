package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/internal/memnet"
	"github.com/heedproject/heed/policy"
)

// wire is a gateway behind a network in memory, so that time is virtual.
type wire struct {
	*later
	net memnet.Network
}

func overWire(t *testing.T, change func(*Settings, *policy.Policy), f func(*wire)) {
	t.Helper()
	bubble(t, change, func(l *later) {
		w := &wire{later: l}
		data := serve(l.T, &w.net, "data:80", l.Gateway)
		admin := serve(l.T, &w.net, "admin:80", l.Admin())
		defer func() {
			data.Close()
			admin.Close()
			synctest.Wait()
		}()
		f(w)
	})
}

// sent sends text and leaves the connection open.
func (w *wire) sent(to, text string) (net.Conn, *bufio.Reader) {
	w.Helper()
	c, err := w.net.DialContext(w.Context(), "tcp", to)
	return c, says(w.T, c, err, text)
}

// answer reads the next answer.
func (w *wire) answer(from *bufio.Reader) answered {
	w.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		w.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answered{resp, string(b)}
}

// post is a request whose body is announced with 10 bytes and stops after 3.
func post(path string, fields ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(fields, ""), "\r\n") + "Content-Length: 10\r\n\r\nabc"
}

func TestARefusalWaitsForNoBodyAndTakesNoPlace(t *testing.T) {
	only := func(s *Settings, p *policy.Policy) {
		s.Bounds.Calls = 1
		s.Clients = []Client{{Name: "me", Token: DigestOf("token"), Endpoints: []string{"api"}, Methods: []string{"GET", "POST"}}}
		s.Admin = DigestOf("token")
		p.Retry.Off = true
		p.Breaker = policy.Breaker{Consecutive: 1, Open: time.Hour, OpenMax: time.Hour, OnOpen: policy.OnOpenFail, Jitter: -1}
		p.Allow = []policy.Allow{{Methods: []string{"GET", "POST"}, Path: "/base/open/**"}}
	}
	const mine = "Heed-Token: token"
	large := "POST /api/open/x HTTP/1.1\r\nHost: localhost\r\nHeed-Token: token\r\nContent-Length: 2000000000\r\n\r\nabc"
	for _, c := range []struct {
		name, to, text string
		status         int
	}{
		{"not allowed", "data:80", post("/api/shut/x", mine), 403},
		{"breaker open", "data:80", post("/api/open/x", mine), 503},
		{"no token", "data:80", post("/api/open/x"), 401},
		{"out of scope", "data:80", post("/other/x", mine), 404},
		{"client without the method", "data:80", strings.Replace(post("/api/open/x", mine), "POST", "PUT", 1), 403},
		{"bad header", "data:80", post("/api/open/x", mine, "Heed-Budget: never"), 400},
		{"bad path", "data:80", post("/api/%2e%2e/x", mine), 400},
		{"upgrade", "data:80", post("/api/open/x", mine, "Connection: Upgrade", "Upgrade: websocket"), 501},
		{"TRACE", "data:80", strings.Replace(post("/api/open/x", mine), "POST", "TRACE", 1), 405},
		{"body too large", "data:80", large, 413},
		{"body too large for the queue", "data:80", strings.Replace(large, "Content-Length", "Prefer: respond-async\r\nContent-Length", 1), 413},
		{"callback without async", "data:80", post("/api/open/x", mine, "Heed-Callback: https://a.test/"), 400},
		{"chunks", "data:80", "POST /api/shut/x HTTP/1.1\r\nHost: localhost\r\nHeed-Token: token\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", 403},
		{"no such call", "data:80", strings.Replace(post("/_heed/calls/nope", mine), "POST", "GET", 1), 404},
		{"admin without a token", "admin:80", post("/_heed/calls/replay"), 401},
		{"admin path that is not there", "admin:80", post("/nope", mine), 404},
		{"admin method that is not there", "admin:80", post("/_heed/gates", mine), 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			overWire(t, only, func(w *wire) {
				if c.status == 503 {
					w.api = answers(500, "")
					trip, said := w.sent("data:80", "GET /api/open/x HTTP/1.1\r\nHost: localhost\r\nHeed-Token: token\r\n\r\n")
					w.answer(said)
					trip.Close()
				}
				begun := time.Now()
				conn, from := w.sent(c.to, c.text)
				defer conn.Close()
				a := w.answer(from)
				if a.StatusCode != c.status || a.Header.Get("Heed-Origin") != "gateway" {
					t.Errorf("got %d %s, want %d of the gateway", a.StatusCode, a.text, c.status)
				}
				if took := time.Since(begun); took != 0 {
					t.Errorf("the answer came after %v", took)
				}
				synctest.Wait()
				if n := w.Calls(); n != 0 {
					t.Errorf("%d calls are in flight", n)
				}
				if _, err := from.ReadByte(); err != io.EOF {
					t.Errorf("got %v, want the connection to end", err)
				}
				if took := time.Since(begun); took > linger+500*time.Millisecond { // net/http itself waits for half a second
					t.Errorf("the connection was held for %v", took)
				}
			})
		})
	}
}

func TestARefusedConnectionIsUsedAgainOnceItsBodyHasCome(t *testing.T) {
	overWire(t, nil, func(w *wire) {
		conn, from := w.sent("data:80", post("/nope/x"))
		defer conn.Close()
		if a := w.answer(from); a.StatusCode != 404 {
			t.Fatalf("got %d %s", a.StatusCode, a.text)
		}
		time.Sleep(linger / 2)
		fmt.Fprint(conn, "defghijGET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if a := w.answer(from); a.StatusCode != 200 || a.text != "hello" {
			t.Errorf("the next request got %d %s", a.StatusCode, a.text)
		}
	})
}

func TestTheRestOfARefusedBodyIsNeverReadAsARequest(t *testing.T) {
	overWire(t, nil, func(w *wire) {
		conn, from := w.sent("data:80", post("/nope/x"))
		defer conn.Close()
		w.answer(from)
		time.Sleep(2 * linger)
		fmt.Fprint(conn, "GET /api/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n") // fails: nobody is there
		if _, err := from.ReadByte(); err != io.EOF {
			t.Errorf("got %v, want the connection to have ended", err)
		}
		if got := w.sights(); len(got) != 0 {
			t.Errorf("the API saw %v", got)
		}
	})
}

func TestAnAnswerOfTheGatewayIsWholeThoughTheBodyOfItsRequestIsNot(t *testing.T) {
	for _, c := range []struct{ name, to, text string }{
		{"explanation of a problem", "data:80", "GET /_heed/problems/queue-full"},
		{"status of a call", "data:80", "GET CALL"},
		{"cancelled call", "data:80", "DELETE CALL"},
		{"operator's order", "admin:80", "POST /_heed/endpoints/api/resume"},
		{"list for operators", "admin:80", "GET /_heed/calls"},
		{"metrics", "admin:80", "GET /metrics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			overWire(t, func(s *Settings, _ *policy.Policy) {
				s.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 10000)) })
			}, func(w *wire) {
				at := w.async("POST", "/api/x", "abc", "Heed-Not-Before", "3600")
				conn, from := w.sent(c.to, strings.Replace(c.text, "CALL", at, 1)+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
				defer conn.Close()
				if a := w.answer(from); a.StatusCode != 200 || a.text == "" {
					t.Errorf("got %d %q", a.StatusCode, a.text)
				}
			})
		})
	}
}
