package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaryDir is where the binary lies.
var binaryDir = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "heed-test")
	if err != nil {
		panic(err)
	}
	return dir
})

// binary builds heed once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	file := filepath.Join(binaryDir(), "heed")
	out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, err
})

// process is a heed that runs on its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string  // of stderr
	log   bytes.Buffer // stdout; complete after end
	data  string       // the address for callers
	admin string
}

// up starts heed up in dir and waits until it serves.
func up(t *testing.T, dir string) *process {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, lines: make(chan string, 1000)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // ends a heed that hangs; to read what tens of thousands of calls came to takes minutes
	t.Cleanup(cancel)
	p.cmd = exec.CommandContext(ctx, file, "up", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	p.cmd.Dir, p.cmd.Stdout = dir, &p.log
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	m := p.await(`is up: callers (\S+), operators (\S+)`)
	p.data, p.admin = m[1], m[2]
	return p
}

// await reads stderr until a line matches.
func (p *process) await(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	var seen []string
	for line := range p.lines {
		if m := re.FindStringSubmatch(line); m != nil {
			return m
		}
		seen = append(seen, line)
	}
	p.t.Fatalf("heed ended without a line like %s:\n%s", pattern, strings.Join(seen, "\n"))
	return nil
}

// signal sends s.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end of the process and returns its exit code.
func (p *process) end() int {
	for range p.lines { // until stderr is closed
	}
	_ = p.cmd.Wait() // the code says all
	return p.cmd.ProcessState.ExitCode()
}

// need skips the test when a client is missing, but never in CI: there it is
// installed first.
func need(t *testing.T, tool string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing; ./test installs it", tool)
	}
	t.Skipf("%s is missing; ./test installs it", tool)
}

// client runs a program to its end and returns all it printed.
func client(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	need(t, name)
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

const pythonGet = `import sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as r:
    print(r.status, r.headers["Heed-Attempts"], r.read().decode())`

const nodeGet = `const r = await fetch(process.argv[1]);
console.log(r.status, r.headers.get("Heed-Attempts"), await r.text());`

// Every demo path answers 503, then 429 with Retry-After, then 200. None of
// these clients retries by itself. Each has a heed of its own: what one heed
// learns from the throttles of one client it rightly holds against the next.
func TestRealClientsGetThrough(t *testing.T) {
	for _, tt := range []struct {
		name string
		argv []string
		want []string
	}{
		{"curl", []string{"curl", "-sSi", "BASE/by-curl"}, []string{"200 OK", "Heed-Attempts: 3", "you got through"}},
		{"wget", []string{"wget", "-qSO-", "--tries=1", "BASE/by-wget"}, []string{"200 OK", "Heed-Attempts: 3", "you got through"}},
		{"python", []string{"python3", "-c", pythonGet, "BASE/by-python"}, []string{"200 3 ", "you got through"}},
		{"node", []string{"node", "--input-type=module", "-e", nodeGet, "BASE/by-node"}, []string{"200 3 ", "you got through"}},
		{"curl example", []string{"sh", "../../examples/curl/call.sh"}, []string{"Heed-Attempts: 3", "you got through"}},
		{"python example", []string{"python3", "../../examples/python/call.py", "example-py"}, []string{"attempts: 3", "you got through"}},
		{"node example", []string{"node", "../../examples/node/call.mjs", "example-js"}, []string{"attempts: 3", "you got through"}},
		{"go example", []string{"go", "run", "../../examples/go", "BASE/by-go"}, []string{"status 200 after 1 attempt", "you got through"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.name == "curl example" {
				need(t, "curl")
			}
			base := "http://" + up(t, t.TempDir()).data + "/demo"
			for i := range tt.argv {
				tt.argv[i] = strings.Replace(tt.argv[i], "BASE", base, 1)
			}
			got := client(t, []string{"HEED_BASE=" + base}, tt.argv[0], tt.argv[1:]...)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("output: got %q, want it to contain %q", got, want)
				}
			}
		})
	}
}

func TestAScheduledJobIsToldWhenToComeBack(t *testing.T) {
	need(t, "python3")
	srv := httptest.NewServer(api())
	defer srv.Close()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HEED=" + file}
	if got, want := client(t, env, "python3", "../../examples/schedule/poll.py", srv.URL+"/status/200"), "this is 200\n"; got != want {
		t.Errorf("output: got %q, want %q", got, want)
	}
	got := client(t, env, "python3", "../../examples/schedule/poll.py", srv.URL+"/later")
	if !regexp.MustCompile(`^reschedule at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$`).MatchString(got) {
		t.Errorf("output: got %q, want an instant", got)
	}
}

func TestTermLetsCallsInFlightEnd(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-leave
		fmt.Fprint(w, "finished")
	}))
	defer srv.Close()
	dir := t.TempDir()
	configure(t, dir, "slow", srv.URL)
	p := up(t, dir)
	got := make(chan string, 1)
	go func() { got <- get("http://" + p.data + "/slow/x") }()
	<-arrived
	p.signal(syscall.SIGTERM)
	p.await(`ending; calls in flight have`)
	close(leave)
	if got, want := <-got, "200 finished"; got != want {
		t.Errorf("answer of the call in flight: got %q, want %q", got, want)
	}
	if got, want := p.end(), 0; got != want {
		t.Errorf("exit code: got %d, want %d", got, want)
	}
}

func TestHangupReloadsTheConfiguration(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	defer srv.Close()
	dir := t.TempDir()
	configure(t, dir, "before", srv.URL)
	p := up(t, dir)
	base := "http://" + p.data
	if got, want := get(base+"/before/"), "200 here"; got != want {
		t.Errorf("before the reload: got %q, want %q", got, want)
	}

	configure(t, dir, "after", srv.URL)
	p.signal(syscall.SIGHUP)
	p.await(`reloaded heed\.yaml`)
	if got, want := get(base+"/after/"), "200 here"; got != want {
		t.Errorf("after the reload: got %q, want %q", got, want)
	}

	// A broken file changes nothing.
	if err := os.WriteFile(filepath.Join(dir, "heed.yaml"), []byte("version: 1\nendponts: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.await(`not reloaded, the old configuration stays in force`)
	p.await(`heed\.yaml:2:1: endponts`)
	if got, want := get(base+"/after/"), "200 here"; got != want {
		t.Errorf("after the broken reload: got %q, want %q", got, want)
	}
	p.signal(syscall.SIGTERM)
	p.end()
	if !regexp.MustCompile(`"level":"ERROR","msg":"configuration not reloaded","error":".*heed.yaml:2:1: endponts`).MatchString(p.log.String()) {
		t.Errorf("the log does not tell of the broken reload:\n%s", p.log.String())
	}
}

func TestAnEndpointThatPassesNoCredentialOnSaysSoAtTheStart(t *testing.T) {
	dir := t.TempDir()
	text := "version: 1\nendpoints:\n  alone: {url: \"http://127.0.0.1:1\"}\n  known: {url: \"http://127.0.0.1:1\", auth: {kind: passthrough}}\n"
	if err := os.WriteFile(filepath.Join(dir, "heed.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := up(t, dir)
	p.await(`/alone/ → http://127\.0\.0\.1:1 \(without auth: the caller's Authorization and Cookie are not passed on\)$`)
	p.await(`/known/ → http://127\.0\.0\.1:1$`)
}

func TestLogLinesGoToStdoutOnly(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	dir := t.TempDir()
	configure(t, dir, "quiet", srv.URL)
	p := up(t, dir)
	get("http://" + p.data + "/quiet/x")
	p.signal(syscall.SIGTERM)
	p.end()
	for line := range strings.Lines(p.log.String()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("stdout has a line that is no JSON: %q", line)
		}
	}
	if !strings.Contains(p.log.String(), `"endpoint":"quiet"`) {
		t.Errorf("stdout: got %q, want a line about the call", p.log.String())
	}
}

// configure writes a heed.yaml with one endpoint on loopback.
func configure(t *testing.T, dir, name, url string) {
	t.Helper()
	text := fmt.Sprintf("version: 1\nendpoints:\n  %s:\n    url: %s\n    networks: [127.0.0.0/8]\n", name, url)
	if err := os.WriteFile(filepath.Join(dir, "heed.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get returns status and body of one request.
func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body.String())
}
