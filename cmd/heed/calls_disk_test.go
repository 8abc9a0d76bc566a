//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// order sends an order to the admin port and returns the status.
func (p *process) order(path, body string) int {
	p.t.Helper()
	resp, err := http.Post("http://"+p.admin+path, "application/json", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// stuff fills a file until its disk is full.
func stuff(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// smallDisk mounts a file system of 12 MiB for the test.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("heed-test", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("no small disk can be made here: mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAGatewayStartsOnADiskThatIsFull(t *testing.T) {
	dir := smallDisk(t)
	p := keeper(t, dir)
	var ids []string
	for n := range 100 { // which lie in a log that is larger than the room that is kept
		status, id := hand(t, p, fmt.Sprintf("k%d", n), 32<<10)
		if status != http.StatusAccepted {
			t.Fatalf("got %d, want 202", status)
		}
		ids = append(ids, id)
	}
	p.signal(syscall.SIGKILL)
	p.end()
	stuff(t, filepath.Join(dir, "ballast"))
	p = keeper(t, dir)
	p.works()
	p.remembers(ids)
}

func TestAFullDiskCanBeEmptiedWithTheTool(t *testing.T) {
	dir := smallDisk(t)
	p := keeper(t, dir)
	var ids []string
	for n := range 20 {
		status, id := hand(t, p, fmt.Sprintf("k%d", n), 16<<10)
		if status != http.StatusAccepted {
			t.Fatalf("got %d, want 202", status)
		}
		ids = append(ids, id)
	}
	stuff(t, filepath.Join(dir, "ballast"))
	for n := 0; ; n++ { // what is left in the files of the queue
		status, id := hand(t, p, fmt.Sprintf("more%d", n), 16<<10)
		if status == http.StatusInsufficientStorage {
			break
		}
		if status != http.StatusAccepted || n > 500 {
			t.Fatalf("call %d: got %d, want 202 until the disk is full", n, status)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if got := p.order("/_heed/calls/"+id+"/cancel", ""); got != http.StatusOK {
			t.Fatalf("cancel on a full disk: got %d, want 200", got)
		}
	}
	if got := p.order("/_heed/calls/purge", `{"filter":{"states":["cancelled"]}}`); got != http.StatusOK {
		t.Errorf("purge on a full disk: got %d, want 200", got)
	}
	p.works()
}

// fullWithALog is a gateway on a disk that somebody else has filled, while the
// log of its queue held many calls for which the file had not grown yet.
func fullWithALog(t *testing.T) (p *process, ids []string) {
	t.Helper()
	dir := smallDisk(t)
	p = keeper(t, dir)
	for n := range 60 {
		status, id := hand(t, p, fmt.Sprintf("k%d", n), 40<<10)
		if status != http.StatusAccepted {
			t.Fatalf("call %d: got %d, want 202", n, status)
		}
		ids = append(ids, id)
	}
	stuff(t, filepath.Join(dir, "ballast"))
	return p, ids
}

func TestCallsAreCancelledAndPurgedOnADiskThatIsFullWithoutMovingTheirLog(t *testing.T) {
	p, ids := fullWithALog(t)
	for n, id := range ids {
		if got := p.order("/_heed/calls/"+id+"/cancel", ""); got != http.StatusOK {
			t.Fatalf("cancel %d on a full disk: got %d, want 200", n, got)
		}
	}
	if got := p.order("/_heed/calls/purge", `{"filter":{"states":["cancelled"]}}`); got != http.StatusOK {
		t.Errorf("purge on a full disk: got %d, want 200", got)
	}
	p.works()
}
