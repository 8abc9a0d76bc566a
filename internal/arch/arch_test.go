package arch

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestHeedKeepsItsImportRules(t *testing.T) {
	found, err := Check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range found {
		t.Error(b)
	}
}

func TestEveryBreachIsFound(t *testing.T) {
	const ours = `"github.com/heedproject/heed`
	for _, tt := range []struct{ name, file, src, want string }{
		{"pure room imports net", "hint/a.go", `package hint; import _ "net"`,
			"hint is pure and may not import net"},
		{"pure room imports a part of os", "mask/a.go", `package mask; import _ "os/user"`,
			"mask is pure and may not import os/user"},
		{"pure room logs", "call/a.go", `package call; import _ "log/slog"`,
			"call is pure and may not import log/slog"},
		{"pure room locks", "policy/a.go", `package policy; import _ "sync/atomic"`,
			"policy is pure and may not import sync/atomic"},
		{"pure room opens a database", "backoff/a.go", `package backoff; import _ "database/sql"`,
			"backoff is pure and may not import database/sql"},
		{"pure room sends", "classify/a.go", `package classify; import "net/http"; var _ = http.Get`,
			"classify is pure and may use names of headers and statuses only, not http.Get"},
		{"pure room reads the clock", "call/a.go", `package call; import "time"; var _ = time.Now()`,
			"call is told the time and may not call time.Now"},
		{"pure room reads the clock by another name", "call/a.go", `package call; import tm "time"; var _ = tm.Since`,
			"call is told the time and may not call time.Since"},
		{"admit sleeps", "admit/a.go", `package admit; import "time"; func f() { time.Sleep(1) }`,
			"admit is told the time and may not call time.Sleep"},
		{"pure room uses global rand", "backoff/a.go", `package backoff; import "math/rand/v2"; var _ = rand.Float64()`,
			"backoff draws from the *rand.Rand it is given, not from rand.Float64"},
		{"pure room hides the clock behind a dot", "call/a.go", `package call; import . "time"; var _ = Now()`,
			"dot import of time hides where a name comes from"},
		{"pure room looks up the road", "hint/a.go", `package hint; import _ ` + ours + `/call"`,
			"hint may not import call"},
		{"root imports a sibling that is not on the road", "a.go", `package heed; import _ ` + ours + `/sim"`,
			"the root package may not import sim"},
		{"root imports a foreign module", "a.go", `package heed; import _ "golang.org/x/net/http2"`,
			"the root package imports golang.org/x/net/http2: the road has no foreign import"},
		{"token imports a foreign module", "token/a.go", `package token; import _ "golang.org/x/oauth2"`,
			"token imports golang.org/x/oauth2: the road has no foreign import"},
		{"gateway imports metrics", "internal/gateway/a.go", `package gateway; import _ "github.com/prometheus/client_golang/prometheus"`,
			"internal/gateway may not import github.com/prometheus/client_golang/prometheus: add it to the table with a page in docs/decisions"},
		{"sim imports root", "sim/a.go", `package sim; import _ ` + ours + `"`,
			"sim may not import the root package"},
		{"a test of sim imports the road", "sim/a_test.go", `package sim; import _ ` + ours + `/hint"`,
			"sim may not import hint"},
		{"plan imports root", "plan/a.go", `package plan; import _ ` + ours + `"`,
			"plan may not import the root package"},
		{"gateway imports app", "internal/gateway/a.go", `package gateway; import _ ` + ours + `/internal/app"`,
			"internal/gateway may not import internal/app: only cmd imports app"},
		{"a room reads config", "internal/observe/a.go", `package observe; import _ ` + ours + `/internal/config"`,
			"internal/observe may not import internal/config: rooms are handed settings, they do not read them"},
		{"a command wires the road by itself", "cmd/heed/a.go", `package main; import _ ` + ours + `/token"`,
			"cmd/heed may not import token"},
		{"queue imports a store", "internal/queue/a.go", `package queue; import _ ` + ours + `/internal/queue/sqlite"`,
			"internal/queue may not import internal/queue/sqlite: only app imports a store"},
		{"a store imports another", "internal/queue/redis/a.go", `package redis; import _ ` + ours + `/internal/queue/sqlite"`,
			"internal/queue/redis may not import internal/queue/sqlite: only app imports a store"},
		{"a room exits", "internal/app/a.go", `package app; import "os"; func f() { os.Exit(1) }`,
			"os.Exit: arguments, environment and exit belong to cmd"},
		{"a room exits by way of log", "internal/app/a.go", `package app; import "log"; func f() { log.Fatal() }`,
			"log.Fatal: arguments, environment and exit belong to cmd"},
		{"a room reads the environment", "internal/config/a.go", `package config; import "os"; var _ = os.Getenv("A")`,
			"os.Getenv: arguments, environment and exit belong to cmd"},
		{"a registry filled by init", "provider/a.go", `package provider; func init() {}`,
			"func init: list it in a literal table where it is wired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Check(fstest.MapFS{tt.file: {Data: []byte(tt.src)}})
			if err != nil {
				t.Fatal(err)
			}
			want := []Breach{{File: tt.file, Line: 1, Rule: tt.want}}
			if diff := cmp.Diff(found, want); diff != "" {
				t.Errorf("breaches (-got +want):\n%s", diff)
			}
		})
	}
}

func TestWhatIsAllowedIsNoBreach(t *testing.T) {
	files := fstest.MapFS{
		"backoff/a.go": {Data: []byte(`package backoff
import ("math/rand/v2"; "time"; "github.com/heedproject/heed/policy")
func F(p policy.Backoff, r *rand.Rand) time.Duration { return time.Duration(rand.New(rand.NewPCG(1, 2)).Int64()) }`)},
		"hint/a.go": {Data: []byte(`package hint
import "net/http"
func F(h http.Header) bool { return h.Get("A") != "" && http.StatusOK > 0 }`)},
		"hint/a_test.go": {Data: []byte(`package hint
import ("os"; "testing"; "time"; "github.com/google/go-cmp/cmp")
var _, _, _ = os.Args, time.Now, cmp.Diff
func TestX(*testing.T) {}`)},
		"cmd/heed/main.go": {Data: []byte(`package main
import ("os"; "github.com/alecthomas/kong"; "github.com/heedproject/heed/internal/app")
var _, _ = kong.Parse, app.New
func main() { os.Exit(1) }`)},
		"internal/queue/redis/a.go": {Data: []byte(`package redis
import (_ "github.com/heedproject/heed/internal/queue"; _ "github.com/redis/go-redis/v9")`)},
		"bench/go.mod":       {Data: []byte("module bench\n")},
		"bench/main.go":      {Data: []byte(`package main; import _ "example.com/peer"`)},
		"hint/testdata/a.go": {Data: []byte(`this is not Go`)},
		"tools/notes.md":     {Data: []byte(`not Go either`)},
		"call/call.go":       {Data: []byte(`package call; func (c C) init() {}; type C int`)},
	}
	found, err := Check(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		t.Errorf("breaches: got %v, want none", found)
	}
}

func TestAFileThatIsNoGoIsAnError(t *testing.T) {
	if _, err := Check(fstest.MapFS{"a.go": {Data: []byte("package")}}); err == nil {
		t.Error("error: got nil, want a syntax error")
	}
}
