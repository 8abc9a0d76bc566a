package check_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/heedproject/heed/check"
	"github.com/heedproject/heed/sim"
)

// speaksLines makes this test binary a client that speaks JSON lines.
const speaksLines = "HEED_CHECK_TEST_SPEAKS_LINES"

func TestMain(m *testing.M) {
	if os.Getenv(speaksLines) != "" {
		speak()
		return
	}
	os.Exit(m.Run())
}

// speak is the model as a program of its own.
func speak() {
	p := client(behaved(), nil)
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(p.Says)
	do := p.Begin(check.Setting{BaseURL: os.Getenv("HEED_CHECK_URL"), APIKey: os.Getenv("HEED_CHECK_API_KEY"),
		TokenURL: os.Getenv("HEED_CHECK_TOKEN_URL")}, func(string) {})
	var mu sync.Mutex
	var running sync.WaitGroup
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var t check.Task
		if json.Unmarshal(in.Bytes(), &t) != nil {
			continue
		}
		running.Go(func() {
			o := do(context.Background(), t)
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(o)
		})
	}
	running.Wait()
}

// swift are cases that do not wait; they are played over TCP.
var swift = []string{"final/4*", "keys/each", "keys/unkeyed-*", "keys/keyed-504", "tokens", "transient/get-408", "secrets/redirect", "limits/concurrency"}

// passesAll wants the client to pass what is swift.
func passesAll(t *testing.T, o check.Options) *check.Report {
	t.Helper()
	o.Only = swift
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.Results {
		if one.Mark != check.Pass && one.Mark != check.NA {
			t.Errorf("%s: %s: %s", one.ID, one.Mark, one.Cause)
		}
	}
	return r
}

func TestAClientIsReachedByJSONLines(t *testing.T) {
	r := passesAll(t, check.Options{Client: check.Lines{Args: []string{os.Args[0]}, Env: append(os.Environ(), speaksLines+"=1")}})
	if r.Client.Name != "model" || r.Grade != "A+" {
		t.Errorf("got %s with %s", r.Client.Name, r.Grade)
	}
}

// adapter is the model as an app that is asked over HTTP.
func adapter() http.Handler {
	p := client(behaved(), nil)
	var mu sync.Mutex
	sessions := map[string]func(context.Context, check.Task) check.Outcome{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(p.Says) })
	mux.HandleFunc("POST /reset", func(_ http.ResponseWriter, r *http.Request) {
		var s check.Setting
		_ = json.NewDecoder(r.Body).Decode(&s)
		mu.Lock()
		defer mu.Unlock()
		sessions[s.Case] = p.Begin(s, func(string) {})
	})
	mux.HandleFunc("POST /run", func(w http.ResponseWriter, r *http.Request) {
		var t struct {
			check.Task
			Case string `json:"case"`
		}
		_ = json.NewDecoder(r.Body).Decode(&t)
		mu.Lock()
		do := sessions[t.Case]
		mu.Unlock()
		_ = json.NewEncoder(w).Encode(do(r.Context(), t.Task))
	})
	return mux
}

func TestAClientIsReachedByHTTP(t *testing.T) {
	srv := httptest.NewServer(adapter())
	defer srv.Close()
	if r := passesAll(t, check.Options{Client: check.Adapter{URL: srv.URL}}); r.Grade != "A+" {
		t.Errorf("got %s", r.Grade)
	}
}

// freePort is an address that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestAGatewayIsGradedByWhatComesThroughIt(t *testing.T) {
	listen := freePort(t)
	u, err := url.Parse("http://" + listen)
	if err != nil {
		t.Fatal(err)
	}
	gateway := httptest.NewServer(http.StripPrefix("/demo", httputil.NewSingleHostReverseProxy(u)))
	defer gateway.Close()
	r, err := check.Run(t.Context(), check.Options{Client: check.Bare(check.Retries), Listen: listen, Via: gateway.URL + "/demo",
		Only: []string{"final/404", "transient/get-408"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]check.Mark{}
	for _, one := range r.Results {
		got[one.ID] = one.Mark
	}
	if got["final/404"] != check.Pass || got["transient/get-408"] != check.Fail {
		t.Errorf("got %v", got)
	}
}

func TestAGatewayThatLeadsElsewhereIsAnError(t *testing.T) {
	gateway := httptest.NewServer(http.NotFoundHandler())
	defer gateway.Close()
	_, err := check.Run(t.Context(), check.Options{Client: check.Bare(), Via: gateway.URL, Only: []string{"final/404"}})
	if err == nil || !strings.Contains(err.Error(), "no request came through the gateway at "+gateway.URL+": it answered 404: 404 page not found; let it lead to") {
		t.Errorf("got %v", err)
	}
}

func TestAGatewayThatIsDownIsAnErrorThatSaysSo(t *testing.T) {
	_, err := check.Run(t.Context(), check.Options{Client: check.Bare(), Via: "http://" + freePort(t) + "/demo", Only: []string{"final/404"}})
	if err == nil || !strings.Contains(err.Error(), "/demo: connection refused, nobody listens there; let it lead to") {
		t.Errorf("got %v", err)
	}
}

func TestACommandIsGivenWhatItsTemplateNames(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	cases := oneRead()
	cases[0].Ask = []check.Operation{{ID: "order", Method: "POST", Path: "/v1/charges", Body: `{"amount":300,"currency":"eur"}`, Keyed: true}}
	var seen check.Evidence
	cases[0].Judge = func(e *check.Evidence) check.Verdict { seen = *e; return check.Verdict{Mark: check.Pass} }
	_, err := check.Run(t.Context(), check.Options{Cases: cases, Client: check.Command{Env: os.Environ(),
		Args: []string{"curl", "-sS", "--fail", "-X", "{method}", "-H", "{header}", "--data-binary", "@{body_file}", "{url}"}}})
	if err != nil {
		t.Fatal(err)
	}
	one := seen.Journal.Entries
	if len(one) != 1 || one[0].Method != "POST" || one[0].BytesIn != 31 || one[0].Key == "" || one[0].Caller == "anonymous" {
		t.Errorf("got %+v", one)
	}
	if !seen.Outcomes["order"].OK {
		t.Errorf("got %+v", seen.Outcomes)
	}
}

// oneRead is a case that any client passes that sends one request and ends.
func oneRead() []check.Case {
	return []check.Case{{ID: "rogue/read", Title: "GET",
		World: func(check.Place) sim.World { return sim.World{} },
		Ask:   []check.Operation{{ID: "read", Path: "/v1/bibs/1"}},
		Judge: func(*check.Evidence) check.Verdict { return check.Verdict{Mark: check.Pass} }}}
}
