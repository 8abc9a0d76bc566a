//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

func TestAQueueInPostgresIsSealedAgainWhileItsGatewayRuns(t *testing.T) {
	dsn := os.Getenv("HEED_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("HEED_TEST_POSTGRES names no server: ./test starts one")
	}
	fresh := queue.NewKey().Reveal()
	home := t.TempDir()
	ring := filepath.Join(home, "keys")
	writeFile(t, filepath.Join(home, "dsn"), dsn)
	writeFile(t, ring, testKey)
	name := fmt.Sprintf("kept-%d", time.Now().UnixNano()) // no other run of the test has it
	writeFile(t, filepath.Join(home, "heed.yaml"), fmt.Sprintf(shared, home, name, "https://api.example.com", 1))
	g := up(t, home)
	id := later(t, g, name)
	g.signal(syscall.SIGTERM)
	g.end()

	writeFile(t, ring, fresh+"\n"+testKey)
	g = up(t, home)
	said := heedIn(t, home, "keys", "rotate", "--reseal")
	if want := "gateways may run meanwhile"; !strings.Contains(said, want) {
		t.Errorf("got %q, want a line with %q", said, want)
	}
	// The other tests of this server know the old key only.
	t.Cleanup(func() {
		writeFile(t, ring, testKey+"\n"+fresh)
		heedIn(t, home, "keys", "rotate", "--reseal")
	})
	old := strings.Fields(testKey)[1]
	if said := heedIn(t, home, "keys", "check", "--store", "--json"); !strings.Contains(said, `"id":"`+old+`","use":"may be dropped","records":0`) {
		t.Errorf("got %s, want key %s to be droppable", said, old)
	}
	said = heedIn(t, home, "calls", "show", id, "--reveal", "was it sealed again?", "--json", "--admin", g.admin)
	if want := `"path":"/later"`; !strings.Contains(said, want) {
		t.Errorf("got %s, want %s", said, want)
	}
	heedIn(t, home, "calls", "cancel", id, "--admin", g.admin)
}

// later hands over a call that is not due for long.
func later(t *testing.T, g *process, endpoint string) (id string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.data+"/"+endpoint+"/later", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Prefer", "respond-async")
	r.Header.Set("Heed-Not-Before", "7200")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Fatalf("got %s, want 202", resp.Status)
	}
	return resp.Header.Get("Heed-Call-Id")
}

// heedIn runs a command in a folder and returns all it said.
func heedIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("heed %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
