package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/heedproject/heed/internal/app"
	"github.com/heedproject/heed/internal/queue"
)

// TestKeyScripts runs the command lines of testdata/keys/*.txtar. Each script
// has a heed.yaml whose gateway it starts with up and stops with down, as often
// as it wants, and whose keys are those of the file queue.keys.
func TestKeyScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "keys"),
		Setup: func(env *testscript.Env) error {
			srv := httptest.NewServer(http.HandlerFunc(pay))
			env.Defer(srv.Close)
			place := func(name string) string { return filepath.Join(env.WorkDir, name) }
			text := fmt.Sprintf(sealed, place("admin.sock"), place("queue.db"), place("queue.keys"), srv.URL)
			g := &running{}
			env.Values[running{}] = g
			env.Defer(g.stop)
			env.Setenv("COLUMNS", "140")
			env.Setenv("XDG_STATE_HOME", place("state"))
			return os.WriteFile(place("heed.yaml"), []byte(text), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "ended": ended, "up": scriptUp, "down": scriptDown, "idof": idOf},
	})
}

const sealed = `version: 1
listen:
  data: 127.0.0.1:0
  admin: unix:%s
queue:
  path: %s
  keys: ["file:%s"]
endpoints:
  pay:
    url: %s
    networks: [127.0.0.0/8]
    idempotency: {header: Idempotency-Key}
    retry: {attempts: 1}
`

// running is the gateway of a script; nil: none.
type running struct{ *served }

func (r *running) stop() {
	if r.served != nil {
		r.served.stop()
		r.served = nil
	}
}

// scriptUp starts the gateway of a script.
func scriptUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: up")
	}
	g, err := serve(ts.MkAbs("heed.yaml"), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	ts.Check(err)
	ts.Value(running{}).(*running).served = g
	ts.Setenv("DATA", g.data)
}

// scriptDown stops it.
func scriptDown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: down")
	}
	ts.Value(running{}).(*running).stop()
}

// shelf is a store that knows only what is under each key.
type shelf map[string]queue.Use

func (s shelf) KeyUse(context.Context) (map[string]queue.Use, error) { return maps.Clone(s), nil }

func (shelf) Reseal(context.Context, func(int)) (int, error) { return 0, nil }

func TestTheKeysOfAQueueAreToldWithWhatNeedsThem(t *testing.T) {
	front, used, idle := queue.NewKey(), queue.NewKey(), queue.NewKey()
	v := &app.Vault{Vault: shelf{used.ID(): {Records: 2, Keys: 1}, "0123456789abcdef": {Records: 2}}, Keys: queue.NewKeys(front, used, idle)}
	rows, err := keyUse(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	n := func(n int) *int { return &n }
	want := []keyRow{
		{ID: front.ID(), Use: "seals", Records: n(0), Keys: n(0)}, {ID: used.ID(), Use: "still needed", Records: n(2), Keys: n(1)},
		{ID: idle.ID(), Use: "may be dropped", Records: n(0), Keys: n(0)}, {ID: "0123456789abcdef", Use: "missing: add it", Records: n(2), Keys: n(0)},
	}
	if diff := cmp.Diff(rows, want); diff != "" {
		t.Errorf("keys (-got +want):\n%s", diff)
	}
}
