//go:build unix

package sqlite_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
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

// meter starts the clock, and returns what reports calls per second and the
// processor time of each: on a machine that does other work, only that tells
// something.
func meter(b *testing.B) func() {
	b.ResetTimer()
	before := cpu()
	return func() {
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		b.ReportMetric(float64((cpu()-before).Nanoseconds())/1e3/float64(b.N), "cpu-µs/call")
	}
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
	fill(b, s, b.N)
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

// fill puts n calls into the store.
func fill(b *testing.B, s *sqlite.Store, n int) {
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
			s := benchStore(b)
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
