package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/memnet"
	"github.com/heedproject/heed/policy"
)

func TestWaitingCallsCanBeSeenWhileTheyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		l, err := n.Listen("api.test:80")
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		api := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(429)
			}
		})}
		go api.Serve(l)
		base := &http.Transport{DialContext: n.DialContext}
		g := New(Settings{Endpoints: []Endpoint{{
			Name: "api", URL: &url.URL{Scheme: "http", Host: "api.test"},
			Transport: &heed.Transport{Base: base, Policy: withBudget(time.Minute)},
		}}})
		w := httptest.NewRecorder()
		req := httptest.NewRequest("GET", "/api/x", nil)
		req.Host = "localhost"
		req.Header.Set("Heed-Correlation-Id", "job-7")
		done := make(chan struct{})
		go func() { g.ServeHTTP(w, req); close(done) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()

		var got struct{ Waiting []heed.Waiter }
		ask(t, g, "/_heed/waiting", &got)
		if len(got.Waiting) != 1 {
			t.Fatalf("got %+v, want one waiter", got)
		}
		if w := got.Waiting[0]; w.CorrelationID != "job-7" || w.For != "retry_after" || w.Attempt != 2 || time.Until(w.Until) < 19*time.Second {
			t.Errorf("got %+v", w)
		}
		var gates struct{ Gates []heed.GateState }
		ask(t, g, "/_heed/gates", &gates)
		if len(gates.Gates) != 1 || gates.Gates[0].Endpoint != "api" {
			t.Errorf("got %+v", gates)
		}
		<-done
		if w.Code != 200 || w.Header().Get("Heed-Attempts") != "2" || w.Header().Get("Heed-Wait-Source") != "retry_after" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
		base.CloseIdleConnections()
		api.Close()
		synctest.Wait()
		if n.Open() != 0 {
			t.Errorf("%d ends of connections are open", n.Open())
		}
	})
}

func ask(t *testing.T, g *Gateway, path string, into any) {
	t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequest("GET", path, nil)
	req.Host = "localhost"
	g.Admin().ServeHTTP(w, req)
	if err := json.NewDecoder(w.Body).Decode(into); err != nil {
		t.Fatalf("%s: %d %v", path, w.Code, err)
	}
}

func TestReadyTellsWhetherCallsAreWelcome(t *testing.T) {
	g := New(Settings{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "numbers") })})
	srv := httptest.NewServer(g.Admin())
	defer srv.Close()
	for _, is := range []bool{true, false} {
		g.Ready(is)
		want := map[bool]int{true: 200, false: 503}[is]
		if got := status(t, "GET", srv.URL+"/readyz", "", nil); got != want {
			t.Errorf("ready is %v: got %d, want %d", is, got, want)
		}
	}
	if got := status(t, "GET", srv.URL+"/metrics", "", nil); got != 200 {
		t.Errorf("metrics: got %d", got)
	}
}

func withBudget(d time.Duration) policy.Policy {
	p := quick
	p.Retry.Budget = d
	return p
}
