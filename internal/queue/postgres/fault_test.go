//go:build linux

package postgres_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/jackc/pgx/v5"
)

// private is a server of these tests' own, which may be broken; it is started
// when it is first wanted. It has few connections, so that they can be used up.
var private struct {
	sync.Once
	address string
	err     error
	stop    func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if private.stop != nil {
		private.stop()
	}
	os.Exit(code)
}

func startPrivate() (address string, stop func(), err error) {
	c := exec.Command("../../../tools/postgres.sh", "sh", "-c", `echo "$HEED_TEST_POSTGRES"; cat`)
	c.Env = append(os.Environ(), "HEED_TEST_POSTGRES_OPTIONS=-c max_connections=30 -c superuser_reserved_connections=0 -c max_wal_senders=0")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close() // ends cat, and with it the server
		io.Copy(io.Discard, out)
		c.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), stop, err
}

// breakable is a store of a schema of its own on the private server.
func breakable(t *testing.T) postgres.Options {
	o := options(t) // there is a server on this machine
	private.Do(func() { private.address, private.stop, private.err = startPrivate() })
	if private.err != nil {
		t.Fatalf("start a private server: %v", private.err)
	}
	o.Address = postgres.Address(private.address)
	t.Cleanup(func() { ask(t, private.address, "DROP SCHEMA IF EXISTS "+o.Schema+" CASCADE") })
	return o
}

// configure changes a setting of the private server until the test ends.
func configure(t *testing.T, name, value string) {
	t.Helper()
	ask(t, private.address, "SET default_transaction_read_only = off", "ALTER SYSTEM SET "+name+" = "+value, "SELECT pg_reload_conf()")
}

// crash kills one session of a server as the system does when it is out of
// memory: the server ends all others and recovers from its log.
func crash(t *testing.T, address string) {
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	var pid int
	if err := c.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestACrashOfTheServerLosesNothingThatWasAcknowledged(t *testing.T) {
	o := breakable(t)
	s := open(t, o)
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	failures, after := 0, 0
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 20_000 {
				id := fmt.Sprintf("%d-%d", n, i)
				_, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get(id, "k")})
				mu.Lock()
				if err == nil {
					acknowledged[id] = true
				} else if failures++; !errors.Is(err, queue.ErrStorage) {
					t.Errorf("enqueue while it is down: got %v, want ErrStorage", err)
				}
				if failures > 0 && err == nil {
					after++
				}
				enough := after >= 200
				mu.Unlock()
				if enough {
					return
				}
				if n == 0 && i == 50 {
					crash(t, string(o.Address))
				}
			}
		})
	}
	wg.Wait()
	if failures == 0 {
		t.Error("no enqueue met the crash")
	}
	stored := listed(t, s)
	for id := range acknowledged {
		if !stored[id] {
			t.Errorf("call %s was acknowledged and is not there", id)
		}
	}
}

// TestACrashThatUndoesAClaimFencesItOff claims, and crashes the server before
// the claim is on its disk: whoever claims the calls next has them alone. The
// write that was begun is on the disk.
func TestACrashThatUndoesAClaimFencesItOff(t *testing.T) {
	o := breakable(t)
	configure(t, "wal_writer_delay", "10000")
	s := open(t, o)
	now := time.Now().Add(time.Minute) // of all claims
	begun := get("begun", "k")
	begun.Method, begun.Repeatable = "POST", false
	enqueue(t, s, begun)
	ask := queue.Ask{Worker: "w", Max: 8, Share: 8, Lease: time.Hour, Begins: true}
	first, err := s.Claim(t.Context(), now, ask)
	if err != nil || len(first.Claims) != 1 {
		t.Fatalf("claim: got %d calls, %v, want one", len(first.Claims), err)
	}
	if lost, err := s.Begin(t.Context(), first.Claims); err != nil || len(lost) > 0 {
		t.Fatalf("begin: got %v, %v", lost, err)
	}
	enqueue(t, s, get("claimed", "k"))
	undone, err := s.Claim(t.Context(), now, ask)
	if err != nil || len(undone.Claims) != 1 {
		t.Fatalf("claim: got %d calls, %v, want one", len(undone.Claims), err)
	}
	crash(t, string(o.Address))
	var again []queue.Claim
	for len(again) == 0 && time.Now().Before(now) {
		b, err := s.Claim(t.Context(), now, ask)
		if err != nil && !errors.Is(err, queue.ErrStorage) {
			t.Fatal(err)
		}
		again = b.Claims
	}
	if len(again) != 1 || again[0].ID != "claimed" {
		t.Fatalf("claimed after the crash: got %d calls, want the one whose claim it undid", len(again))
	}
	lost, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{
		done(undone.Claims[0]), done(first.Claims[0]), done(again[0]),
	})
	if err != nil || len(lost) != 1 || lost[0] != "claimed" {
		t.Errorf("settled under the claim that was undone, the one before it and the one after the crash: got %v, %v lost, want only that", lost, err)
	}
}

func done(c queue.Claim) queue.Settlement {
	return queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}}
}

// listed names all calls of a store.
func listed(t *testing.T, s *postgres.Store) map[string]bool {
	all := map[string]bool{}
	for f := (queue.Filter{Limit: 1000}); ; {
		p, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Calls {
			all[c.ID] = true
		}
		if f.After = p.Next; f.After == "" {
			return all
		}
	}
}

func TestAServerWithoutFsyncIsRefused(t *testing.T) {
	o := breakable(t)
	configure(t, "fsync", "off")
	defer configure(t, "fsync", "on")
	var err error
	for err == nil { // the server hears of it soon
		var s *postgres.Store
		if s, err = postgres.Open(t.Context(), o); err == nil {
			s.Close()
		}
	}
	isErr(t, "open", err, queue.ErrStorage)
	says(t, err, "set fsync = on")
}

func TestASessionThatDoesNotWaitForTheDiskIsMadeTo(t *testing.T) {
	o := options(t)
	o.Address = postgres.Address(with(t, string(o.Address), func(_ *url.URL, q url.Values) { q.Set("synchronous_commit", "off") }))
	var got string
	if err := open(t, o).Setting(t.Context(), "synchronous_commit", &got); err != nil || got != "on" {
		t.Errorf("synchronous_commit of the store's sessions: got %q, %v, want on", got, err)
	}
}

func TestGatewaysWaitForEachOtherWhateverTheIsolationOfTheServer(t *testing.T) {
	o := options(t)
	o.Address = postgres.Address(with(t, string(o.Address), func(_ *url.URL, q url.Values) {
		q.Set("default_transaction_isolation", "serializable")
	}))
	var isolation string
	if err := open(t, o).Setting(t.Context(), "transaction_isolation", &isolation); err != nil || isolation != "read committed" {
		t.Errorf("isolation: got %q, %v, want read committed", isolation, err)
	}
}

func TestAServerThatTurnsReadOnlyIsToldAndUsedAgain(t *testing.T) {
	s := open(t, breakable(t))
	enqueue(t, s, get("a", "k"))
	configure(t, "default_transaction_read_only", "on")
	defer configure(t, "default_transaction_read_only", "off")
	var err error
	for n := 0; err == nil; n++ { // the sessions hear of it soon
		_, err = s.Enqueue(t.Context(), time.Now(), []queue.Call{get(fmt.Sprint("b", n), "k")})
	}
	isErr(t, "enqueue", err, queue.ErrStorage)
	says(t, err, "takes no writes")
	if got := state(t, s, "a"); got != queue.Queued {
		t.Errorf("what is stored can still be read: got %s, want queued", got)
	}
	configure(t, "default_transaction_read_only", "off")
	for err != nil {
		_, err = s.Enqueue(t.Context(), time.Now(), []queue.Call{get("c", "k")})
	}
	if got := state(t, s, "c"); got != queue.Queued {
		t.Errorf("when it takes writes again: got %s, want queued", got)
	}
}

func TestAServerWithoutAConnectionLeftIsToldAndUsedAgain(t *testing.T) {
	o := breakable(t)
	var held []*pgx.Conn
	for {
		c, err := pgx.Connect(t.Context(), string(o.Address))
		if err != nil {
			break
		}
		held = append(held, c)
	}
	_, err := postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrStorage)
	says(t, err, "max_connections")
	for _, c := range held {
		c.Close(t.Context())
	}
	for err != nil { // the server takes a moment to notice
		var s *postgres.Store
		if s, err = postgres.Open(t.Context(), o); err == nil {
			enqueue(t, s, get("a", "k"))
			s.Close()
		}
	}
}

func TestAFullDiskIsToldAndGotOver(t *testing.T) {
	o := breakable(t)
	dir := tinyDisk(t)
	ask(t, private.address, "CREATE TABLESPACE tiny LOCATION '"+dir+"'")
	t.Cleanup(func() {
		ask(t, private.address, "DROP SCHEMA "+o.Schema+" CASCADE", "DROP TABLESPACE tiny")
	})
	o.Address = postgres.Address(with(t, private.address, func(_ *url.URL, q url.Values) { q.Set("default_tablespace", "tiny") }))
	s := open(t, o)
	big := get("", "k")
	big.Body = make([]byte, 64<<10)
	acknowledged, err := 0, error(nil)
	for range 1000 {
		if _, err = s.Enqueue(t.Context(), time.Now(), []queue.Call{big}); err != nil {
			break
		}
		acknowledged++
	}
	isErr(t, "enqueue", err, queue.ErrFull)
	resize(t, dir, "64m")
	enqueue(t, s, big)
	counts, err := s.Counts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].N != acknowledged+1 {
		t.Errorf("counts: got %v, %v, want %d queued: those acknowledged and no other", counts, err, acknowledged+1)
	}
	if got := len(claim(t, s, time.Now())); got != min(acknowledged+1, 100) {
		t.Errorf("claimed: got %d, want %d", got, min(acknowledged+1, 100))
	}
}

// tinyDisk is a file system of 8 MB that belongs to the server's user.
func tinyDisk(t *testing.T) string {
	owner, err := user.Lookup("postgres")
	if err != nil || os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	dir, err := os.MkdirTemp("", "heed-tiny-disk-") // whose parents others may pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=8m,mode=0700,uid=%d,gid=%d", uid, gid)); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount the small file system: %v", err)
		}
	})
	return dir
}

func resize(t *testing.T, dir, size string) {
	t.Helper()
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
		t.Fatal(err)
	}
}
