package app

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/policy"
)

// The environment of the process that is killed.
const (
	crashAPI  = "HEED_TEST_CRASH_API"
	crashFile = "HEED_TEST_CRASH_FILE"
)

// TestServeUntilKilled is the process that TestAKilledProcessLosesNothing
// kills; by itself it does nothing.
func TestServeUntilKilled(t *testing.T) {
	api := os.Getenv(crashAPI)
	if api == "" {
		t.Skip("it is run by another test")
	}
	u, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	cfg := settings(config.Endpoint{
		Name: "pay", URL: u, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Policy: policy.Policy{
			Backoff: policy.Backoff{Base: 5 * time.Millisecond, Cap: 50 * time.Millisecond},
			Limits:  policy.Limits{Learn: policy.Learn{Off: true}}, Breaker: policy.Breaker{Off: true},
			Key: policy.Key{Header: "Idempotency-Key"},
		},
	})
	queued(t, cfg)
	cfg.Queue.Path = os.Getenv(crashFile)
	a := start(t, cfg, Options{})
	fmt.Println("serves " + a.DataAddr())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the one who kills is gone
}

// payments charges once per key, and sometimes is not well.
type payments struct {
	mu      sync.Mutex
	rng     *rand.Rand
	charges map[string]int
	seen    map[string]bool
}

func (p *payments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	p.mu.Lock()
	luck := p.rng.Float64()
	key := r.Header.Get("Idempotency-Key")
	if luck >= 0.1 && !p.seen[key] {
		p.seen[key] = true
		p.charges[key]++
	}
	p.mu.Unlock()
	switch {
	case luck < 0.1:
		w.WriteHeader(503)
	case luck < 0.2: // charged, and the answer is lost
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}
}

// victim is a process that can be killed.
type victim struct {
	*exec.Cmd
	at string
}

func raise(t *testing.T, api, file string) *victim {
	t.Helper()
	v := &victim{Cmd: exec.Command(os.Args[0], "-test.run=^TestServeUntilKilled$")}
	v.Env = append(os.Environ(), crashAPI+"="+api, crashFile+"="+file, "TMPDIR="+t.TempDir()) // it cannot clean up after itself
	if _, err := v.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := v.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at, ok := strings.CutPrefix(lines.Text(), "serves "); ok {
			v.at = "http://" + at
			return v
		}
		said.WriteString(lines.Text() + "\n")
	}
	v.kill()
	t.Fatalf("it did not come up:\n%s", said.String())
	return nil
}

func (v *victim) kill() {
	_ = v.Process.Kill() // SIGKILL
	_ = v.Wait()
}

// hand hands payments over until the process is gone, tells of each that it
// acknowledged, and returns where they are, by key.
func (v *victim) hand(name string, told chan<- struct{}) map[string]string {
	acknowledged := map[string]string{}
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for i := 0; ; i++ {
		key := fmt.Sprintf("k-%s-%d", name, i)
		req, err := http.NewRequest("POST", v.at+"/pay/charges", strings.NewReader("amount of "+key))
		if err != nil {
			return acknowledged
		}
		req.Header.Set("Prefer", "respond-async")
		req.Header.Set("Idempotency-Key", key)
		resp, err := client.Do(req)
		if err != nil {
			return acknowledged
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusAccepted {
			acknowledged[key] = resp.Header.Get("Location")
			told <- struct{}{}
		}
	}
}

func TestAKilledProcessLosesNothingAndChargesNobodyTwice(t *testing.T) {
	rounds := 50
	if raced || testing.Short() { // a start takes seconds under the race detector
		rounds = 5
	}
	api := &payments{rng: rand.New(rand.NewPCG(1, 2)), charges: map[string]int{}, seen: map[string]bool{}}
	srv := httptest.NewServer(api)
	defer srv.Close()
	file := t.TempDir() + "/q.db"
	rng := rand.New(rand.NewPCG(3, 4))
	acknowledged := map[string]string{}
	for round := range rounds {
		v := raise(t, srv.URL, file)
		got, told := make(chan map[string]string, 4), make(chan struct{}, 1<<16)
		for who := range cap(got) {
			go func() { got <- v.hand(fmt.Sprint(round, "-", who), told) }()
		}
		for range rng.IntN(60) {
			<-told
		}
		v.kill() // in the midst of whatever it does
		for range cap(got) {
			maps.Copy(acknowledged, <-got)
		}
	}
	v := raise(t, srv.URL, file)
	defer v.kill()
	for key, at := range acknowledged {
		if _, text := ask(t, "GET", v.at+at+"?wait=60s", ""); !strings.Contains(text, `"state":"done"`) {
			t.Errorf("%s was acknowledged and is not done: %s", key, text)
		}
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	for key := range acknowledged {
		if api.charges[key] != 1 {
			t.Errorf("%s was acknowledged and charged %d times", key, api.charges[key])
		}
	}
	for key, n := range api.charges {
		if n > 1 {
			t.Errorf("%s was charged %d times", key, n)
		}
	}
	t.Logf("%d payments were acknowledged in %d lives of the process", len(acknowledged), rounds)
	if len(acknowledged) < rounds {
		t.Error("too few to show anything")
	}
}
