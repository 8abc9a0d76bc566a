//go:build unix

package sqlite_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

func benchStore(b *testing.B) *sqlite.Store {
	return open(b, sqlite.Options{Path: filepath.Join(b.TempDir(), "queue.db"), Keys: queue.NewKeys(queue.NewKey())})
}

// kilobyte is a call of 1 KB on one of 16 gates, with an idempotency key.
func kilobyte(n int) queue.Call {
	body := make([]byte, 1024)
	rand.Read(body)
	return queue.Call{
		Facts: queue.Facts{Endpoint: "sierra", Gate: fmt.Sprintf("k%d", n%16), Method: "POST", Template: "/patrons/{id}",
			Priority: 5, Repeatable: true},
		Request: queue.Request{Path: "/patrons/17", Body: body, Key: queue.NewID(time.Now())},
	}
}

// BenchmarkEnqueue is 64 producers that each hand over one call at a time.
func BenchmarkEnqueue(b *testing.B) {
	s := benchStore(b)
	next := make(chan int)
	var wg sync.WaitGroup
	used := meter(b)
	for range 64 {
		wg.Go(func() {
			for n := range next {
				if _, err := s.Enqueue(b.Context(), time.Now(), []queue.Call{kilobyte(n)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for n := range b.N {
		next <- n
	}
	close(next)
	wg.Wait()
	used()
}

// meter starts the clock, and returns what reports calls per second, and what
// each took of the processor and had written: on a machine that does other
// work, only these tell something.
func meter(b *testing.B) func() {
	b.ResetTimer()
	before, had := cpu(), written()
	return func() {
		n := float64(b.N)
		b.ReportMetric(n/b.Elapsed().Seconds(), "calls/s")
		b.ReportMetric(float64((cpu()-before).Nanoseconds())/1e3/n, "cpu-µs/call")
		b.ReportMetric((written()-had)/1024/n, "KB-written/call")
	}
}

// written is how many bytes the process has handed to the system to write,
// where that tells.
func written() (n float64) {
	text, _ := os.ReadFile("/proc/self/io")
	_, rest, _ := strings.Cut(string(text), "wchar:")
	fmt.Sscan(rest, &n)
	return n
}

// cpu is what the process has used so far.
func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkClaimAndComplete is a worker with 256 slots whose attempts take no
// time. Each answer is kept.
func BenchmarkClaimAndComplete(b *testing.B) {
	s := benchStore(b)
	fill(b, s, b.N, 1)
	var done int
	all := make(chan struct{})
	w := queue.Worker{Feed: s, Slots: 256, Share: 16, Send: func(context.Context, queue.Call) queue.Outcome {
		return queue.Outcome{State: queue.Done, Class: "ok", Attempts: []queue.Attempt{{At: time.Now(), Status: 200, Class: "ok"}},
			Answer: &queue.Result{Status: 200, Body: []byte("ok")}}
	}, Settled: func(settled []queue.Settlement) {
		if done += len(settled); done == b.N {
			close(all)
		}
	}, Failed: func(err error) { b.Error(err) }}
	used := meter(b)
	w.Start(b.Context())
	<-all
	b.StopTimer()
	w.Stop()
	used()
}

// fill puts n calls of some tenants into the store.
func fill(b *testing.B, s *sqlite.Store, n, tenants int) {
	for i := 0; i < n; {
		batch := make([]queue.Call, min(500, n-i))
		for j := range batch {
			batch[j] = kilobyte(i + j)
			batch[j].Tenant = fmt.Sprint("t", (i+j)/16%tenants)
		}
		if _, err := s.Enqueue(b.Context(), time.Now(), batch); err != nil {
			b.Fatal(err)
		}
		i += len(batch)
	}
}

// BenchmarkClaimLatency claims and completes eight calls at a time over
// backlogs of different size and of different number of tenants.
func BenchmarkClaimLatency(b *testing.B) {
	for _, of := range []struct{ backlog, tenants int }{{1_000, 1}, {100_000, 1}, {1_000_000, 1}, {100_000, 4}, {100_000, 200}} {
		b.Run(fmt.Sprintf("%d of %d", of.backlog, of.tenants), func(b *testing.B) {
			s := benchStore(b)
			fill(b, s, of.backlog, of.tenants)
			memory := resident()
			var took []time.Duration
			var spent time.Duration
			for b.Loop() {
				begin, before := time.Now(), cpu()
				got, err := s.Claim(b.Context(), begin, queue.Ask{Max: 8, Share: 8, Lease: time.Minute})
				took, spent = append(took, time.Since(begin)), spent+cpu()-before
				if err != nil || len(got.Claims) != 8 {
					b.Fatalf("claim: got %d calls, %v", len(got.Claims), err)
				}
				b.StopTimer()
				complete(b, s, got.Claims)
				fill(b, s, 8, of.tenants)
				b.StartTimer()
			}
			slices.Sort(took)
			b.ReportMetric(memory, "MB-resident")
			b.ReportMetric(float64(spent.Microseconds())/float64(len(took)), "cpu-µs/claim")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func complete(b *testing.B, s *sqlite.Store, claims []queue.Claim) {
	ends := make([]queue.Settlement, len(claims))
	for i, c := range claims {
		ends[i] = queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}}
	}
	if _, err := s.Settle(b.Context(), time.Now(), ends); err != nil {
		b.Fatal(err)
	}
}

// resident is the memory of the process in MB, where the system tells it.
func resident() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kb float64
	fmt.Sscan(rest, &kb)
	return kb / 1024
}

// BenchmarkHotGate counts how long 5,000 calls on 15 gates take behind 45,000
// on one, 128 of all at once and eight of a gate, against those 5,000 alone.
func BenchmarkHotGate(b *testing.B) {
	for b.Loop() {
		s := benchStore(b)
		gated(b, s, 5_000, func(n int) string { return fmt.Sprint("cold", n%15) })
		alone := rounds(b, s, 5_000)
		gated(b, s, 45_000, func(int) string { return "hot" })
		gated(b, s, 5_000, func(n int) string { return fmt.Sprint("cold", n%15) })
		b.ReportMetric(float64(rounds(b, s, 5_000))/float64(alone), "times-alone")
		s.Close()
	}
}

func gated(b *testing.B, s *sqlite.Store, n int, gate func(int) string) {
	calls := make([]queue.Call, n)
	for i := range calls {
		calls[i] = kilobyte(i)
		calls[i].Gate = gate(i)
	}
	for part := range slices.Chunk(calls, 500) {
		if _, err := s.Enqueue(b.Context(), time.Now(), part); err != nil {
			b.Fatal(err)
		}
	}
}

// rounds counts the claims until n calls of cold gates are done.
func rounds(b *testing.B, s *sqlite.Store, n int) (count int) {
	for ; n > 0; count++ {
		got, err := s.Claim(b.Context(), time.Now(), queue.Ask{Max: 128, Share: 8, Lease: time.Minute})
		if err != nil || len(got.Claims) == 0 {
			b.Fatalf("claim: got %d calls, %v", len(got.Claims), err)
		}
		for _, c := range got.Claims {
			if c.Gate != "hot" {
				n--
			}
		}
		complete(b, s, got.Claims)
	}
	return count
}

// BenchmarkPlainInsert is what the disk and the driver give: one goroutine
// that puts a kilobyte into a table of its own, 64 rows to a transaction. The
// others are judged by what they take beside it.
func BenchmarkPlainInsert(b *testing.B) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "plain.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(8000)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE calls (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, key BLOB UNIQUE, body BLOB)"); err != nil {
		b.Fatal(err)
	}
	used := meter(b)
	for n := 0; n < b.N; {
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		insert, err := tx.Prepare("INSERT INTO calls (id, key, body) VALUES (?, ?, ?)")
		if err != nil {
			b.Fatal(err)
		}
		for range 64 {
			c := kilobyte(n)
			digest := sha256.Sum256([]byte(c.Key))
			if _, err := insert.Exec(queue.NewID(time.Now()), digest[:16], c.Body); err != nil {
				b.Fatal(err)
			}
			n++
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	used()
}
