//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// kept is a gateway with a queue at a place of the test's choosing, whose calls
// are not due for long.
const kept = `version: 1
queue: {path: %s/queue.db, keys: ["file:%s"]}
endpoints:
  api:
    url: %s
    networks: [127.0.0.0/8]
`

// keeper starts a gateway whose queue lies in dir.
func keeper(t *testing.T, dir string) *process {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	t.Cleanup(srv.Close)
	home := t.TempDir()
	key := filepath.Join(home, "keys")
	writeFile(t, key, testKey)
	writeFile(t, filepath.Join(home, "heed.yaml"), fmt.Sprintf(kept, dir, key, srv.URL))
	return up(t, home)
}

// hand hands a call of size bytes over that is not due for long, and returns
// the status and the id.
func hand(t *testing.T, p *process, key string, size int) (status int, id string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+p.data+"/api/x", bytes.NewReader(make([]byte, size)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Prefer", "respond-async")
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Heed-Not-Before", "7200")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Heed-Call-Id")
}

// remembers wants all calls to be in the queue.
func (p *process) remembers(ids []string) {
	p.t.Helper()
	for _, id := range ids {
		var call callRow
		if err := getJSON("http://"+p.data+"/_heed/calls/"+id, &call); err != nil {
			p.t.Errorf("call %s was acknowledged: %v", id, err)
		} else if call.state().Ended() {
			p.t.Errorf("call %s was acknowledged and is not due: got %s", id, call.State)
		}
	}
}

// works wants the gateway to serve those who wait for their answer.
func (p *process) works() {
	p.t.Helper()
	if got := get("http://" + p.data + "/api/x"); got != "200 here" {
		p.t.Errorf("a call whose caller waits: got %q, want %q", got, "200 here")
	}
	if got := get("http://" + p.admin + "/healthz"); got != "200 ok\n" {
		p.t.Errorf("health: got %q, want %q", got, "200 ok\n")
	}
}

func TestAFullDiskRefusesCallsUntilThereIsSpaceAgain(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("heed-test", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no small disk can be made here: mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	writeFile(t, ballast, strings.Repeat("x", 4<<20))
	p := keeper(t, dir)
	var ids []string
	status, n := http.StatusAccepted, 0
	for ; status == http.StatusAccepted; n++ {
		var id string
		if status, id = hand(t, p, fmt.Sprintf("k%d", n), 64<<10); status == http.StatusAccepted {
			ids = append(ids, id)
		}
		if n > 200 {
			t.Fatal("a disk of 8 MiB never fills up")
		}
	}
	if status != http.StatusInsufficientStorage {
		t.Errorf("with a full disk: got %d, want 507", status)
	}
	p.works()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	status, id := hand(t, p, fmt.Sprintf("k%d", n-1), 64<<10)
	if status != http.StatusAccepted {
		t.Errorf("with space again: got %d, want 202", status)
	}
	ids = append(ids, id)
	p.remembers(ids)
	p.signal(syscall.SIGKILL)
	p.end()
	p = keeper(t, dir)
	p.remembers(ids)
}

func TestAFileThatCannotBeWrittenRefusesCallsUntilItCanBe(t *testing.T) {
	dir := t.TempDir()
	p := keeper(t, dir)
	_, first := hand(t, p, "before", 1<<10)
	seal := func(flag string) error {
		files, err := filepath.Glob(filepath.Join(dir, "queue.db*"))
		if err != nil {
			return err
		}
		return exec.Command("chattr", append([]string{flag}, files...)...).Run()
	}
	if err := seal("+i"); err != nil {
		t.Skipf("files cannot be made immutable here: chattr +i: %v", err)
	}
	t.Cleanup(func() { _ = seal("-i") }) // done twice, it does nothing
	status, _ := hand(t, p, "during", 1<<10)
	if status != http.StatusServiceUnavailable && status != http.StatusInsufficientStorage {
		t.Errorf("with a file that cannot be written: got %d, want 503 or 507", status)
	}
	p.works()
	if err := seal("-i"); err != nil {
		t.Fatal(err)
	}
	status, second := hand(t, p, "during", 1<<10)
	if status != http.StatusAccepted {
		t.Errorf("with a file that can be written again: got %d, want 202", status)
	}
	p.remembers([]string{first, second})
}

func TestADamagedDatabaseIsRefusedAndLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	p := keeper(t, dir)
	for n := range 50 {
		if status, _ := hand(t, p, fmt.Sprintf("k%d", n), 4<<10); status != http.StatusAccepted {
			t.Fatalf("got %d, want 202", status)
		}
	}
	p.signal(syscall.SIGTERM)
	if got := p.end(); got != exitOK {
		t.Fatalf("exit code: got %d, want %d", got, exitOK)
	}
	file := filepath.Join(dir, "queue.db")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]int{"its head": 0, "a page in the middle": len(whole) / 2} {
		t.Run(name, func(t *testing.T) {
			damaged := bytes.Clone(whole)
			for i := range 4096 {
				damaged[at&^4095+i] ^= 0x5a
			}
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			said, code := refusal(t, dir)
			if code == exitOK {
				t.Error("heed up took a damaged database")
			}
			if !strings.Contains(said, file) || !strings.Contains(said, "damaged") || !strings.Contains(said, "restore") {
				t.Errorf("got %q, want which file is damaged and what to do", said)
			}
			after, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := sha256.Sum256(after), sha256.Sum256(damaged); got != want {
				t.Error("the file was changed")
			}
		})
	}
}

// refusal starts a gateway that is not expected to serve, and returns what it
// says and its exit code.
func refusal(t *testing.T, dir string) (said string, code int) {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	key := filepath.Join(home, "keys")
	writeFile(t, key, testKey)
	writeFile(t, filepath.Join(home, "heed.yaml"), fmt.Sprintf(kept, dir, key, "http://127.0.0.1:1"))
	cmd := exec.CommandContext(t.Context(), program, "up", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Dir = home
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run() // the code says all
	return stderr.String(), cmd.ProcessState.ExitCode()
}
