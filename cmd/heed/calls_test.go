package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestOperatorScripts runs the command lines of testdata/calls/*.txtar. Each
// script has a gateway of its own, whose admin port is the heed.yaml of its
// folder, and whose endpoint pay takes what says "good", answers what says "broke" with 500,
// and refuses the rest.
func TestOperatorScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "calls"),
		Setup: func(env *testscript.Env) error {
			srv := httptest.NewServer(http.HandlerFunc(pay))
			env.Defer(srv.Close)
			text := fmt.Sprintf(operated, filepath.Join(env.WorkDir, "admin.sock"), filepath.Join(env.WorkDir, "queue.db"), srv.URL)
			if err := os.WriteFile(filepath.Join(env.WorkDir, "heed.yaml"), []byte(text), 0o600); err != nil {
				return err
			}
			g, err := serve(filepath.Join(env.WorkDir, "heed.yaml"))
			if err != nil {
				return err
			}
			env.Defer(g.stop)
			env.Values["gateway"] = g
			env.Setenv("DATA", g.data)
			env.Setenv("COLUMNS", "140")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "ended": ended, "idof": idOf},
	})
}

const operated = `version: 1
listen:
  data: 127.0.0.1:0
  admin: unix:%[1]s
queue:
  path: %[2]s
endpoints:
  pay:
    url: %[3]s
    networks: [127.0.0.0/8]
    idempotency: {header: Idempotency-Key}
    retry: {attempts: 1}
  barred:
    url: %[3]s
`

// pay is the API behind the gateway.
func pay(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), "broke") {
		http.Error(w, "done, perhaps", http.StatusInternalServerError)
		return
	}
	if !strings.Contains(string(body), "good") {
		http.Error(w, "no such account", http.StatusUnprocessableEntity)
		return
	}
	fmt.Fprintf(w, "paid by %s", r.Header.Get("X-Payer"))
}

// served is a heed up within the test process.
type served struct {
	data string
	stop func()
}

// serve runs heed up until stop is called.
func serve(file string, env ...string) (*served, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	var ended sync.WaitGroup
	var code int
	ended.Go(func() {
		code = run(ctx, []string{"up", "--config", file}, env, strings.NewReader(""), io.Discard, w)
		w.Close()
	})
	s := &served{stop: func() {
		cancel()
		ended.Wait()
	}}
	up := regexp.MustCompile(`is up: callers (\S+),`)
	lines := bufio.NewScanner(r)
	var seen []string
	for lines.Scan() {
		if m := up.FindStringSubmatch(lines.Text()); m != nil {
			s.data = m[1]
			go func() { _, _ = io.Copy(io.Discard, r) }() // ends with the pipe
			return s, nil
		}
		seen = append(seen, lines.Text())
	}
	s.stop()
	return nil, fmt.Errorf("heed up ended with %d before it served: %s", code, seen)
}

// ended waits until calls have ended: ended ID STATE.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended ID STATE")
	}
	resp, err := http.Get("http://" + ts.Getenv("DATA") + "/_heed/calls/" + args[0] + "?wait=30s")
	ts.Check(err)
	defer resp.Body.Close()
	var c callRow
	ts.Check(json.NewDecoder(resp.Body).Decode(&c))
	if c.State != args[1] {
		ts.Fatalf("call %s: got %s (%s), want %s", args[0], c.State, c.Reason, args[1])
	}
}

// idOf sets a variable to an id that the last stdout holds: idof NAME.
func idOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: idof NAME")
	}
	m := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("no id in stdout")
	}
	ts.Setenv(args[0], m[1])
}
