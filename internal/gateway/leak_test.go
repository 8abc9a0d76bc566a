package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/memnet"
)

// faults are answers of an upstream that misbehaves.
var faults = []func(w http.ResponseWriter, r *http.Request){
	func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") },
	func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
	func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); io.WriteString(w, "no") },
	func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "cut")
		panic(http.ErrAbortHandler)
	},
	func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "9999")
		w.WriteHeader(429)
	},
	func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) },
	func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, // the body is left unread
}

func TestNothingIsLeftAfterManyMixedFailures(t *testing.T) {
	files := openFiles(t)
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		api := serve(t, &n, "api.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			k, _ := strconv.Atoi(r.URL.Query().Get("fault"))
			faults[k](w, r)
		}))
		base := &http.Transport{DialContext: n.DialContext}
		policy := withBudget(0)
		policy.Breaker.Off, policy.Retry.Attempts = true, 2
		g := New(Settings{Endpoints: []Endpoint{{
			Name: "api", URL: &url.URL{Scheme: "http", Host: "api.test"}, Transport: &heed.Transport{Base: base, Policy: policy},
		}}, Bounds: Bounds{BodyBytes: 3 << 20}})
		front := serve(t, &n, "localhost:80", g)
		client := &http.Transport{DialContext: n.DialContext}

		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for i := range 250 {
					drive(client, worker*250+i)
				}
			})
		}
		all.Wait()
		client.CloseIdleConnections()
		front.Close()
		base.CloseIdleConnections()
		api.Close()
		time.Sleep(time.Minute) // net/http lingers before it closes
		synctest.Wait()         // a goroutine that is left keeps the bubble from ending
		if n.Open() != 0 || g.Calls() != 0 {
			t.Errorf("%d ends of connections are open, %d calls in flight", n.Open(), g.Calls())
		}
		for _, s := range g.current.Load().routes["api"].Transport.Gates() {
			if s.InFlight != 0 || s.Waiting != 0 {
				t.Errorf("a gate holds %+v", s)
			}
		}
	})
	if now := openFiles(t); now > files {
		t.Errorf("%d files are open, %d were before", now, files)
	}
}

// drive makes call number i and reads its answer, sometimes only in part.
func drive(client *http.Transport, i int) {
	method, body := "GET", ""
	switch i % 5 {
	case 1:
		method, body = "POST", "small"
	case 2:
		method, body = "PUT", strings.Repeat("x", 10<<10)
	case 3:
		if i%100 == 3 {
			method, body = "PUT", strings.Repeat("x", 2<<20) // spooled into a file
		}
	}
	req := httptest.NewRequest(method, "http://localhost/api/x?fault="+strconv.Itoa(i%len(faults)), strings.NewReader(body))
	req.RequestURI = ""
	switch i % 11 {
	case 3:
		req.Header.Set("Heed-Budget", "soon")
	case 5:
		req.URL.Path = "/nope"
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		return
	}
	if i%7 != 0 {
		io.Copy(io.Discard, resp.Body)
	}
	resp.Body.Close()
}

func serve(t *testing.T, n *memnet.Network, addr string, h http.Handler) *http.Server {
	t.Helper()
	l, err := n.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	return srv
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not tell the open files: ", err)
	}
	return len(list)
}
