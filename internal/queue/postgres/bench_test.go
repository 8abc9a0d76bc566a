//go:build unix

package postgres_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/jackc/pgx/v5"
)

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

// meter starts the clock, and returns what reports calls per second and the
// processor time of each, here and in the server if it is on this machine: on
// one that does other work only that tells something.
func meter(b *testing.B, o postgres.Options) func() {
	b.ResetTimer()
	here, there := cpu(), serverCPU(b, o)
	return func() {
		n := float64(b.N)
		b.ReportMetric(n/b.Elapsed().Seconds(), "calls/s")
		b.ReportMetric(float64((cpu()-here).Microseconds())/n, "cpu-µs/call")
		b.ReportMetric((serverCPU(b, o)-there)/1e3/n, "server-µs/call")
	}
}

// cpu is what the process has used so far.
func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// serverCPU is what the sessions of stores have used so far, in nanoseconds.
func serverCPU(b *testing.B, o postgres.Options) (sum float64) {
	c, err := pgx.Connect(b.Context(), string(o.Address))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context())
	rows, err := c.Query(b.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = 'heed'")
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		var used float64
		fmt.Sscan(string(text), &used)
		sum += used
	}
	return sum
}

// BenchmarkPlainInsert is what the server and the driver give: one session that
// puts a kilobyte into a table of its own, 64 rows to a transaction. The others
// are judged by what they take beside it.
func BenchmarkPlainInsert(b *testing.B) {
	o := options(b)
	ask(b, string(o.Address), "CREATE SCHEMA "+o.Schema, "CREATE TABLE "+o.Schema+".plain (seq bigserial PRIMARY KEY, id text UNIQUE, "+
		"key bytea UNIQUE, body bytea)")
	c, err := pgx.Connect(b.Context(), with(b, string(o.Address), func(_ *url.URL, q url.Values) { q.Set("application_name", "heed") }))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context())
	used := meter(b, o)
	for n := 0; n < b.N; n += 64 {
		ids, keys, bodies := make([]string, 64), make([][]byte, 64), make([][]byte, 64)
		for i := range ids {
			k := kilobyte(n + i)
			digest := sha256.Sum256([]byte(k.Key))
			ids[i], keys[i], bodies[i] = queue.NewID(time.Now()), digest[:16], k.Body
		}
		_, err := c.Exec(b.Context(), "INSERT INTO "+o.Schema+".plain (id, key, body) SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[])",
			ids, keys, bodies)
		if err != nil {
			b.Fatal(err)
		}
	}
	used()
}

// BenchmarkEnqueue is 64 producers that each hand over one call at a time.
func BenchmarkEnqueue(b *testing.B) {
	o := options(b)
	s := open(b, o)
	var last atomic.Int64
	var wg sync.WaitGroup
	used := meter(b, o)
	for range 64 {
		wg.Go(func() {
			for n := int(last.Add(1)); n <= b.N; n = int(last.Add(1)) {
				if _, err := s.Enqueue(b.Context(), time.Now(), []queue.Call{kilobyte(n)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	used()
}

// BenchmarkReadyRows is what the server takes in of the same rows when nobody has
// to make them: sessions that write one group after the other. BenchmarkEnqueue
// cannot be faster than that, and its producers use the processor too.
func BenchmarkReadyRows(b *testing.B) {
	for _, sessions := range []int{1, 2} {
		for _, group := range []int{32, 64} {
			b.Run(fmt.Sprintf("sessions=%d/group=%d", sessions, group), func(b *testing.B) { readyRows(b, sessions, group) })
		}
	}
}

func readyRows(b *testing.B, sessions, group int) {
	o := options(b)
	s := open(b, o)
	calls := make([]queue.Call, b.N)
	for i := range calls {
		calls[i] = kilobyte(i)
	}
	write, err := postgres.Ready(b.Context(), s, calls)
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	used := meter(b, o)
	for stripe := range sessions {
		wg.Go(func() {
			for from := int(next.Add(int64(group))) - group; from < b.N; from = int(next.Add(int64(group))) - group {
				if err := write(stripe, from, min(from+group, b.N)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	used()
}

// BenchmarkClaimAndComplete is one gateway, and then two, each a worker with
// 256 slots whose attempts take no time. Each answer is kept.
func BenchmarkClaimAndComplete(b *testing.B) {
	for _, gateways := range []int{1, 2} {
		b.Run(fmt.Sprintf("gateways=%d", gateways), func(b *testing.B) { claimAndComplete(b, gateways, 0) })
	}
	b.Run("limit=8", func(b *testing.B) { claimAndComplete(b, 1, 8) })
}

func claimAndComplete(b *testing.B, gateways, limit int) {
	o := options(b)
	stores := make([]*postgres.Store, gateways)
	for i := range stores {
		stores[i] = open(b, o)
	}
	fill(b, stores[0], b.N)
	for n := range 16 {
		if err := stores[0].SetGate(b.Context(), time.Now(), queue.GateChange{Endpoint: "sierra", Key: fmt.Sprintf("k%d", n), Limit: &limit}); err != nil {
			b.Fatal(err)
		}
	}
	var mu sync.Mutex
	var done int
	all := make(chan struct{})
	workers := make([]queue.Worker, gateways)
	for i := range workers {
		workers[i] = queue.Worker{Name: fmt.Sprint(i), Feed: stores[i], Slots: 256, Share: 16,
			Send: func(context.Context, queue.Call) queue.Outcome {
				return queue.Outcome{State: queue.Done, Class: "ok", Attempts: []queue.Attempt{{At: time.Now(), Status: 200, Class: "ok"}},
					Answer: &queue.Result{Status: 200, Body: []byte("ok")}}
			}, Settled: func(settled []queue.Settlement) {
				mu.Lock()
				defer mu.Unlock()
				if done += len(settled); done == b.N {
					close(all)
				}
			}, Failed: func(err error) { b.Error(err) }}
	}
	used := meter(b, o)
	for i := range workers {
		workers[i].Start(b.Context())
	}
	<-all
	b.StopTimer()
	used()
	for i := range workers {
		workers[i].Stop()
	}
}

// fill puts n calls into the store.
func fill(b *testing.B, s *postgres.Store, n int) {
	for i := 0; i < n; {
		batch := make([]queue.Call, min(500, n-i))
		for j := range batch {
			batch[j] = kilobyte(i + j)
		}
		if _, err := s.Enqueue(b.Context(), time.Now(), batch); err != nil {
			b.Fatal(err)
		}
		i += len(batch)
	}
}

// BenchmarkClaimLatency claims and completes eight calls at a time over
// backlogs of different size.
func BenchmarkClaimLatency(b *testing.B) {
	for _, backlog := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(backlog), func(b *testing.B) {
			s := open(b, options(b))
			fill(b, s, backlog)
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for n := range b.N {
				begin := time.Now()
				got, err := s.Claim(b.Context(), begin, queue.Ask{Max: 8, Share: 8, Lease: time.Minute})
				took = append(took, time.Since(begin))
				if err != nil || len(got.Claims) != 8 {
					b.Fatalf("claim %d: got %d calls, %v", n, len(got.Claims), err)
				}
				b.StopTimer()
				ends := make([]queue.Settlement, 8)
				for i, c := range got.Claims {
					ends[i] = queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}}
				}
				if _, err := s.Settle(b.Context(), time.Now(), ends); err != nil {
					b.Fatal(err)
				}
				fill(b, s, 8)
				b.StartTimer()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
