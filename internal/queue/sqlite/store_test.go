package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

func options(t testing.TB) sqlite.Options {
	return sqlite.Options{Path: filepath.Join(t.TempDir(), "queue.db"), Keys: queue.NewKeys(queue.NewKey())}
}

func get(id string) queue.Call {
	return queue.Call{
		Facts:   queue.Facts{ID: id, Endpoint: "sierra", Gate: "k", Method: "GET", Template: "/", Repeatable: true},
		Request: queue.Request{Path: "/"},
	}
}

func enqueue(t testing.TB, s *sqlite.Store, calls ...queue.Call) {
	t.Helper()
	if _, err := s.Enqueue(t.Context(), time.Now(), calls); err != nil {
		t.Fatal(err)
	}
}

func claim(t testing.TB, s *sqlite.Store) []queue.Claim {
	t.Helper()
	b, err := s.Claim(t.Context(), time.Now(), queue.Ask{Max: 100, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return b.Claims
}

func TestASecondOwnerIsRefused(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, get("a"))
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrOwned) {
		t.Errorf("second open: got %v, want ErrOwned", err)
	}
	if got := len(claim(t, s)); got != 1 {
		t.Errorf("the first goes on: got %d calls, want 1", got)
	}
	s.Close()
	open(t, o)
}

func TestAStartFreesTheLeasesOfTheLast(t *testing.T) {
	o := options(t)
	s := open(t, o)
	write := get("w")
	write.Repeatable = false
	enqueue(t, s, get("r"), write)
	before := claim(t, s)
	s.Close()

	s = open(t, o)
	after := claim(t, s)
	if len(after) != 1 || after[0].ID != "r" {
		t.Fatalf("claimed at once: got %v, want r", after)
	}
	if f, err := s.Get(t.Context(), "w"); err != nil || f.State != queue.Unknown {
		t.Errorf("the write: got %v, %v, want unknown", f.State, err)
	}
	for _, c := range before {
		lost, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}}})
		if err != nil || len(lost) != 1 {
			t.Errorf("settle %s under a lease of the last epoch: got %v, %v, want it lost", c.ID, lost, err)
		}
	}
}

func TestADamagedFileIsRefusedAndLeftAsItIs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func([]byte)
	}{
		{"no database", func(b []byte) { copy(b, "this is no database at all") }},
		{"a page overwritten", func(b []byte) {
			for i := range b[4096:] {
				b[4096+i] = 0xa5
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			s := open(t, o)
			enqueue(t, s, get("a"), get("b"))
			s.Close()
			b, err := os.ReadFile(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			tt.damage(b)
			if err := os.WriteFile(o.Path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err = sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrCorrupt) || !strings.Contains(err.Error(), "restore") {
				t.Errorf("open: got %v, want ErrCorrupt that says what to do", err)
			}
			after, err := os.ReadFile(o.Path)
			if err != nil || !bytes.Equal(after, b) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	o := options(t)
	open(t, o).Close()
	meddle(t, o.Path, "PRAGMA user_version = 99")
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrSchema) {
		t.Errorf("open: got %v, want ErrSchema", err)
	}
}

func TestAFileOfABuildBeforeTheFirstReleaseIsRefusedWithARemedy(t *testing.T) {
	o := options(t)
	open(t, o).Close()
	meddle(t, o.Path, "PRAGMA user_version = 2")
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrStorage) || !strings.Contains(err.Error(), "heed calls export") {
		t.Errorf("open: got %v, want ErrStorage that says how to get the calls out", err)
	}
}

func TestAnotherProgramsDatabaseIsRefused(t *testing.T) {
	o := options(t)
	meddle(t, o.Path, "CREATE TABLE theirs (a)")
	if _, err := sqlite.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("open: got %v, want that it is another program's", err)
	}
}

func meddle(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func TestAMissingFolderIsNamed(t *testing.T) {
	o := options(t)
	o.Path = filepath.Join(filepath.Dir(o.Path), "nowhere", "queue.db")
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrStorage) || !strings.Contains(err.Error(), "make it") {
		t.Errorf("open: got %v, want ErrStorage that says to make it", err)
	}
}

func TestARingWithoutTheKeyOfTheRecordsIsRefused(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, get("a"))
	s.Close()
	was := o.Keys.Active()
	o.Keys = queue.NewKeys(queue.NewKey())
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrKey) || !strings.Contains(err.Error(), was) {
		t.Errorf("open: got %v, want ErrKey that names %s", err, was)
	}
}

func TestAnOldKeyStaysInTheRingAsLongAsItIsNeeded(t *testing.T) {
	old, fresh := queue.NewKey(), queue.NewKey()
	both, ring := queue.NewKeys(fresh, old), queue.NewKeys(fresh)
	o := options(t)
	o.Keys = queue.NewKeys(old)
	s := open(t, o)
	keyed := get("a")
	keyed.Key = "k"
	enqueue(t, s, keyed)
	s.Close()
	o.Keys = both
	s = open(t, o)
	if _, err := s.Reseal(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	o.Keys = ring
	if _, err := sqlite.Open(t.Context(), o); !errors.Is(err, queue.ErrKey) {
		t.Errorf("open while an idempotency key is known under the old key: got %v, want ErrKey", err)
	}
	o.Keys = both
	s = open(t, o)
	if _, err := s.Sweep(t.Context(), time.Now().Add(queue.DefaultKeyWindow), 10); err != nil {
		t.Fatal(err)
	}
	s.Close()
	o.Keys = ring
	open(t, o)
}

func TestAFullDiskIsToldAndGetsOverIt(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, get("first"))
	big := get("")
	big.Body = bytes.Repeat([]byte("x"), 64<<10)
	if err := s.LimitPages(t.Context(), 60); err != nil { // SQLite answers as for a full disk
		t.Fatal(err)
	}
	acknowledged, err := 0, error(nil)
	for range 20 {
		if _, err = s.Enqueue(t.Context(), time.Now(), []queue.Call{big}); err != nil {
			break
		}
		acknowledged++
	}
	if !errors.Is(err, queue.ErrFull) {
		t.Fatalf("enqueue: got %v, want ErrFull", err)
	}
	if err := s.LimitPages(t.Context(), 1<<30); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, get("last"))
	counts, err := s.Counts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].N != acknowledged+2 {
		t.Errorf("counts: got %v, %v, want %d queued: those acknowledged and no other", counts, err, acknowledged+2)
	}
	if got := len(claim(t, s)); got != acknowledged+2 {
		t.Errorf("claimed: got %d, want %d", got, acknowledged+2)
	}
}

func TestACallUnderWayWhenTheStoreClosesIsToldSo(t *testing.T) {
	s := open(t, options(t))
	s.Close()
	if _, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("a")}); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("enqueue: got %v, want ErrClosed", err)
	}
	if _, err := s.Get(t.Context(), "a"); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("get: got %v, want ErrClosed", err)
	}
}

func TestAStoreThatClosesStoresWhatItAcknowledgesAndNothingElse(t *testing.T) {
	o := sqlite.Unsynced(options(t))
	s := open(t, o)
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	many := make(chan struct{})
	for range 32 {
		wg.Go(func() {
			for {
				_, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("")})
				if errors.Is(err, queue.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if stored++; stored == 200 {
					close(many)
				}
				mu.Unlock()
			}
		})
	}
	<-many
	s.Close()
	wg.Wait()
	counts, err := open(t, o).Counts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].N != stored {
		t.Errorf("counts: got %v, %v, want the %d that were acknowledged", counts, err, stored)
	}
}

func TestACallerThatHasGoneStoresNothing(t *testing.T) {
	s := open(t, options(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Enqueue(ctx, time.Now(), []queue.Call{get("a")}); !errors.Is(err, context.Canceled) {
		t.Errorf("enqueue: got %v, want Canceled", err)
	}
	if _, err := s.Get(t.Context(), "a"); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("get: got %v, want ErrNotFound", err)
	}
}

func TestAListOfFewAmongManyIsNoScan(t *testing.T) {
	s := open(t, options(t))
	for _, tt := range []struct {
		name  string
		f     queue.Filter
		index string
	}{
		{"tenant", queue.Filter{Tenant: "t"}, "tenants"},
		{"tenant, next page", queue.Filter{Tenant: "t", After: "7"}, "tenants"},
		{"correlation id", queue.Filter{CorrelationID: "c"}, "correlations"},
		{"correlation id of a tenant", queue.Filter{CorrelationID: "c", Tenant: "t"}, "correlations"},
		{"the dead", queue.Filter{States: []queue.State{queue.Dead}}, "broken"},
		{"what a person should look at", queue.Filter{States: []queue.State{queue.Dead, queue.Quarantined, queue.Unknown}}, "broken"},
	} {
		if plan := s.Plan(t, tt.f); !strings.Contains(plan, "SEARCH c USING INDEX "+tt.index+" ") {
			t.Errorf("%s: got this plan, want one that uses index %s:\n%s", tt.name, tt.index, plan)
		}
	}
}

// canary stands for whatever must not lie open on the disk.
const canary = "CANARY-7c1f"

func secretCall() queue.Call {
	c := get("a")
	c.Path, c.Key, c.Callback, c.Body = "/p/"+canary+"?token="+canary, canary+"-key", "https://x.example/"+canary, []byte(canary)
	c.Header = http.Header{"X-" + canary: {canary}}
	return c
}

// onDisk reads the database and all that lies beside it.
func onDisk(t *testing.T, path string) []byte {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 2 {
		t.Fatalf("files: got %v, %v", files, err)
	}
	var all []byte
	for _, f := range files {
		if strings.HasSuffix(f, "-owner") {
			continue // reading it would break its lock
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

func TestNothingThatACallSaysLiesOpenOnTheDisk(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, secretCall())
	c := claim(t, s)[0]
	_, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: "a", Lease: c.Lease, Outcome: queue.Outcome{State: queue.Quarantined,
		Reason: "invalid-answer", Answer: &queue.Result{Status: 200, Header: http.Header{"Etag": {canary}}, Body: []byte(canary)}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Edit(t.Context(), time.Now(), "a", secretCall().Request); err != nil {
		t.Fatal(err)
	}
	all := onDisk(t, o.Path)
	if !bytes.Contains(all, []byte("invalid-answer")) {
		t.Fatal("the search finds nothing: not even the reason, which lies open")
	}
	if bytes.Contains(all, []byte(canary)) {
		t.Error("the canary lies open on the disk")
	}
}

func TestWhatIsPurgedIsGoneFromTheDisk(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, secretCall())
	c := claim(t, s)[0]
	dead := queue.Outcome{State: queue.Dead, Reason: "permanent"}
	if _, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: "a", Lease: c.Lease, Outcome: dead}}); err != nil {
		t.Fatal(err)
	}
	sealed := s.Sealed(t, "a")
	if !bytes.Contains(onDisk(t, o.Path), sealed) {
		t.Fatal("the search does not find the sealed record before the purge")
	}
	if n, err := s.Purge(t.Context(), []string{"a"}); n != 1 || err != nil {
		t.Fatalf("purge: got %d, %v, want 1", n, err)
	}
	if bytes.Contains(onDisk(t, o.Path), sealed) {
		t.Error("the sealed record is still on the disk")
	}
	if info, err := os.Stat(o.Path + "-wal"); err != nil || info.Size() != 0 {
		t.Errorf("write-ahead log: got %v, %v, want it empty", info.Size(), err)
	}
}
