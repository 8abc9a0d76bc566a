package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(tidy{m}, map[string]func(){"heed": main})
}

// tidy removes the binary that tests have built.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	defer os.RemoveAll(binaryDir())
	return t.M.Run()
}

// TestScripts runs the command lines of testdata/*.txtar. $API is an API on
// loopback whose paths say how they answer.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			srv := httptest.NewServer(api())
			env.Defer(srv.Close)
			env.Setenv("API", srv.URL)
			env.Setenv("API_ADDR", srv.Listener.Addr().String())
			env.Setenv("TWO_LINES", "A: b\nC: d")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// packaged is a line for people that names a package, which says nothing to
// them: all that ends with an error is searched for it.
var packaged = regexp.MustCompile(`(?m)^heed: (?:app|check|config|drift|gateway|heed|observe|policy|provider|queue|sim): .*|.*[:;] (?:app|config): .*`)

// exits runs a command and wants it to end with a code: exits 75 heed call …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		end, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = end.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code: got %d, want %d", got, want)
	}
	if m := packaged.FindString(ts.ReadFile("stderr")); m != "" {
		ts.Fatalf("the error begins with a package of heed: %q", m)
	}
}

// api answers by path. Each script has one of its own.
func api() http.Handler {
	mux := http.NewServeMux()
	asked := map[string]int{}
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.PathValue("code"))
		w.WriteHeader(code)
		fmt.Fprintf(w, "this is %d\n", code)
	})
	mux.HandleFunc("/later", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintln(w, "come back in two hours")
	})
	mux.HandleFunc("/second", func(w http.ResponseWriter, r *http.Request) {
		if asked[r.URL.Path]++; asked[r.URL.Path] == 1 { // one caller, one request at a time
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "got through")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "only this")
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "only this")
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http notices the end of the connection only then
		<-r.Context().Done()
	})
	mux.HandleFunc("/half/{kind}", func(w http.ResponseWriter, r *http.Request) { // whole by HTTP, and yet cut
		w.Header().Set("Content-Type", "application/"+r.PathValue("kind"))
		fmt.Fprint(w, map[string]string{"json": `{"items": [1, 2`, "xml": `<items><item>1</it`}[r.PathValue("kind")])
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><title>Sign in</title>")
	})
	mux.HandleFunc("/dressed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"error":{"message":"try again"}}`)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://new.example.com/v2/4711?token=canary")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/unended", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "no end of line")
	})
	mux.HandleFunc("/chatty", func(w http.ResponseWriter, r *http.Request) {
		if asked[r.URL.Path]++; asked[r.URL.Path] > 1 {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
		fmt.Fprint(conn, "canary that nobody asked for")
	})
	mux.HandleFunc("/keyed", func(w http.ResponseWriter, r *http.Request) {
		if asked[r.URL.Path]++; asked[r.URL.Path] == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "key %s\n", r.Header.Get("Idempotency-Key"))
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s\n", r.Method, r.URL.RequestURI(), r.Header.Get("X-Told"))
		_, _ = fmt.Fprintf(w, "%d bytes\n", r.ContentLength)
	})
	mux.HandleFunc("/user", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s has %d characters\n", user, len(password))
	})
	mux.HandleFunc("/type", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d bytes of %q\n", n, r.Header.Get("Content-Type"))
	})
	mux.HandleFunc("/_heed/waiting", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"waiting":[{"call_id":"c1","endpoint":"sierra","tenant":"etl","priority":5,"attempt":2,`+
			`"for":"quota","since":"2020-01-01T00:00:00Z","until":"2020-01-01T00:10:00Z","ahead":3},`+
			`{"call_id":"c2","queue_id":"06f3","endpoint":"sierra","priority":5,"attempt":1,"for":"concurrency","since":"2020-01-01T00:00:00Z","ahead":4}],`+
			`"queued":[{"endpoint":"alma","gate":"g","queued":7,"closed_until":"2999-01-01T00:00:00Z","source":"breaker"},{"endpoint":"pay","gate":"h","queued":1}]}`)
	})
	return mux
}
