package queue

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// gates is how many quota keys the jobs of heed belong to.
const gates = 16

// slots is how many jobs are under way at once, here and in River: as many as
// 15,000 a second are of calls that take 70 ms each.
const slots = 1024

// heed is one of its stores.
type heed struct{ queue.Store }

func openSQLite(ctx context.Context, dir string) (subject, error) {
	s, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "queue.db"), Keys: queue.NewKeys(queue.NewKey())})
	if err != nil {
		return nil, err
	}
	return heed{s}, nil
}

func openPostgres(ctx context.Context, dsn string) (subject, error) {
	s, err := postgres.Open(ctx, postgres.Options{Address: postgres.Address(dsn), Keys: queue.NewKeys(queue.NewKey()),
		Schema: benchSchema()})
	if err != nil {
		return nil, err
	}
	return heed{s}, nil
}

// benchSchema names a schema that nobody has used.
func benchSchema() string { return fmt.Sprintf("bench_%d", time.Now().UnixNano()) }

// The jobs of the hot key are there before those of the others.
const (
	hotJobs, coldJobs = 45_000, 5_000
	running           = 8                     // of one key
	lasts             = 50 * time.Millisecond // an attempt
)

// fair measures how long the cold jobs take without the hot ones, and with.
func (h heed) fair(ctx context.Context) (f Fair, err error) {
	for _, hot := range []int{0, hotJobs} {
		if err := h.gated(ctx, hot, func(int) int { return 0 }); err != nil {
			return f, err
		}
		if err := h.gated(ctx, coldJobs, func(n int) int { return 1 + n%(gates-1) }); err != nil {
			return f, err
		}
		took, err := h.cold(ctx)
		if err != nil {
			return f, err
		}
		f.Alone, f.Behind = f.Behind, took.Seconds()
	}
	return f, nil
}

func (h heed) gated(ctx context.Context, n int, gate func(n int) int) error {
	for ; n > 0; n -= 500 {
		batch := make([]queue.Call, min(500, n))
		for i := range batch {
			batch[i] = job(gate(n + i))
		}
		if _, err := h.Enqueue(ctx, time.Now(), batch); err != nil {
			return err
		}
	}
	return nil
}

// cold works until the cold jobs are done. The attempts take their time, as
// those of an API do: slots are what the keys share.
func (h heed) cold(ctx context.Context) (time.Duration, error) {
	var left atomic.Int64
	left.Store(coldJobs)
	done, failed := make(chan struct{}), make(chan error, 1)
	w := queue.Worker{
		Feed: h, Name: "bench", Slots: gates * running, Share: running,
		Send: func(_ context.Context, c queue.Call) queue.Outcome {
			<-time.After(lasts)
			if c.Gate != "k0" && left.Add(-1) == 0 {
				close(done)
			}
			return queue.Outcome{State: queue.Done, Class: "ok"}
		},
		Failed: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	}
	begun := time.Now()
	w.Start(ctx)
	defer w.Stop()
	select {
	case <-done:
		return time.Since(begun), nil
	case err := <-failed:
		return 0, err
	}
}

func job(n int) queue.Call {
	return queue.Call{
		Facts: queue.Facts{Endpoint: "sierra", Gate: fmt.Sprintf("k%d", n%gates), Method: "POST", Template: "/patrons/{id}",
			Priority: queue.DefaultPriority, Repeatable: true},
		Request: queue.Request{Path: "/patrons/17", Body: noise(1024), Key: queue.NewID(time.Now())},
	}
}

func (h heed) put(ctx context.Context, n int) error {
	_, err := h.Enqueue(ctx, time.Now(), []queue.Call{job(n)})
	return err
}

func (h heed) fill(ctx context.Context, n int) error {
	for n > 0 {
		batch := make([]queue.Call, min(500, n))
		for i := range batch {
			batch[i] = job(n - i)
		}
		if _, err := h.Enqueue(ctx, time.Now(), batch); err != nil {
			return err
		}
		n -= len(batch)
	}
	return nil
}

func (h heed) work(ctx context.Context, n int, most time.Duration) (int, error) {
	var done atomic.Int64
	all, failed := make(chan struct{}), make(chan error, 1)
	w := queue.Worker{
		Feed: h, Name: "bench", Slots: slots, Share: slots / gates, Begins: true,
		Send: func(context.Context, queue.Call) queue.Outcome {
			return queue.Outcome{State: queue.Done, Class: "ok", Attempts: []queue.Attempt{{At: time.Now(), Status: 200, Class: "ok"}},
				Answer: &queue.Result{Status: 200, Body: []byte("ok")}}
		},
		Settled: func(s []queue.Settlement) {
			if now := done.Add(int64(len(s))); now >= int64(n) && now-int64(len(s)) < int64(n) {
				close(all)
			}
		},
		Failed: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	}
	w.Start(ctx)
	var err error
	select {
	case <-all:
	case err = <-failed:
	case <-time.After(most):
	}
	got := int(done.Load())
	w.Stop()
	return got, err
}

func (h heed) claim(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	got, err := h.Claim(ctx, begun, queue.Ask{Worker: "bench", Max: perClaim, Share: perClaim, Lease: time.Minute})
	took := time.Since(begun)
	if err != nil || len(got.Claims) != perClaim {
		return 0, fmt.Errorf("claim: got %d calls: %w", len(got.Claims), err)
	}
	ends := make([]queue.Settlement, perClaim)
	for i, c := range got.Claims {
		ends[i] = queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}}
	}
	_, err = h.Settle(ctx, time.Now(), ends)
	return took, err
}

func (h heed) close() error { return h.Close() }
