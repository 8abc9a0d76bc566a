// Package queue measures durable queues side by side: heed's stores beside
// River on SQLite and Postgres. Each measurement is a process of its own, and the
// contestants take turns, so that what else the machine does meets all alike.
//
// Every job is 1 KB. An enqueue is one job of one producer, on disk when it
// returns; a job is worked when its success is on disk too. heed seals each
// job and checks its idempotency key; River does neither, which favours it.
package queue

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Contestants are the names, in the order in which they take turns.
var Contestants = []string{"heed sqlite", "heed postgres", "river sqlite", "river postgres"}

// subject is one queue under measure.
type subject interface {
	// put hands over one job; it is on disk when put returns.
	put(ctx context.Context, n int) error
	// fill puts n jobs in, however that is done fastest.
	fill(ctx context.Context, n int) error
	// work works off jobs until all of n are done or the time is over, and
	// returns how many were.
	work(ctx context.Context, n int, most time.Duration) (int, error)
	// claim takes eight jobs, and says how long that took.
	claim(ctx context.Context) (time.Duration, error)
	close() error
}

// open opens a contestant: files lie in dir, tables in the database of dsn.
func open(ctx context.Context, name, dir, dsn string) (subject, error) {
	switch name {
	case "heed sqlite":
		return openSQLite(ctx, dir)
	case "heed postgres":
		return openPostgres(ctx, dsn)
	case "river sqlite":
		return openRiverSQLite(ctx, dir)
	case "river postgres":
		return openRiverPostgres(ctx, dsn)
	}
	return nil, fmt.Errorf("there is no contestant %q; there are %s", name, strings.Join(Contestants, ", "))
}

// Task is one measurement of one contestant.
type Task struct {
	Name string
	Dir  string        // for files
	DSN  string        // of Postgres
	Time time.Duration // of each phase of Flow
	Rows []int         // backlogs for Claims, growing
}

// Flow is how fast jobs go in, and are worked off.
type Flow struct {
	Enqueued, EnqueueCPU float64 // per second; µs per job
	Worked, WorkCPU      float64
}

// Claims is how long a claim takes with a backlog, and what the process needs.
type Claims struct {
	Rows     []int
	P50, P99 []float64 // µs
	RSS      []float64 // MiB
}

// Fair is how long the jobs of 15 keys take, by themselves and behind those of
// a hot one.
type Fair struct {
	Alone, Behind float64 // seconds
}

// producers hand over one job at a time each.
const producers = 64

// Measure runs one task and prints what came of it as JSON.
func Measure(ctx context.Context, what string, t Task) error {
	s, err := open(ctx, t.Name, t.Dir, t.DSN)
	if err != nil {
		return err
	}
	var out any
	switch what {
	case "flow":
		out, err = flow(ctx, s, t.Time)
	case "claims":
		out, err = claims(ctx, s, t.Rows)
	case "fair":
		h, ok := s.(heed)
		if !ok {
			return fmt.Errorf("%s has no keys among which it could be fair", t.Name)
		}
		out, err = h.fair(ctx)
	default:
		err = fmt.Errorf("there is no task %q", what)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return fmt.Errorf("%s, %s: %w", t.Name, what, err)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func flow(ctx context.Context, s subject, most time.Duration) (f Flow, err error) {
	var n atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	begun, used := time.Now(), cpu()
	for range producers {
		all.Go(func() {
			for time.Since(begun) < most {
				if err := s.put(ctx, int(n.Add(1))); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if e := failed.Load(); e != nil {
		return f, *e
	}
	in := float64(max(n.Load(), 1))
	f.Enqueued, f.EnqueueCPU = in/time.Since(begun).Seconds(), float64((cpu()-used).Microseconds())/in
	if err := s.fill(ctx, int(in)); err != nil { // so that the workers do not run dry
		return f, err
	}
	begun, used = time.Now(), cpu()
	done, err := s.work(ctx, 2*int(in), most)
	f.Worked, f.WorkCPU = float64(done)/time.Since(begun).Seconds(), float64((cpu()-used).Microseconds())/float64(max(done, 1))
	return f, err
}

// claimed is how many claims are timed with each backlog.
const claimed = 500

func claims(ctx context.Context, s subject, rows []int) (c Claims, err error) {
	have := 0
	for _, want := range rows {
		if err := s.fill(ctx, want-have); err != nil {
			return c, err
		}
		have = want
		took := make([]float64, claimed)
		for i := range took {
			d, err := s.claim(ctx)
			if err != nil {
				return c, err
			}
			took[i] = float64(d.Nanoseconds()) / 1e3
			if err := s.fill(ctx, perClaim); err != nil {
				return c, err
			}
		}
		slices.Sort(took)
		rss, err := memory()
		if err != nil {
			return c, err
		}
		c.Rows = append(c.Rows, want)
		c.P50, c.P99 = append(c.P50, took[claimed/2]), append(c.P99, took[claimed*99/100])
		c.RSS = append(c.RSS, rss)
	}
	return c, nil
}

// noise is bytes that nothing can compress. To make them takes no time worth
// measuring, as it would not be the queue's.
func noise(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rand.Uint64())
	}
	return b[:n]
}

// perClaim is how many jobs one claim takes.
const perClaim = 8

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory is the resident memory of this process in MiB.
func memory() (float64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kib, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseFloat(kib, 64)
	return n / 1024, err
}
