package queue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// leasing is a store of one call that takes its lease back when it has run out.
type leasing struct {
	mu     sync.Mutex
	until  time.Time
	token  int64
	broken atomic.Bool
}

func (l *leasing) Claim(_ context.Context, now time.Time, ask queue.Ask) (queue.Batch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken.Load() {
		return queue.Batch{}, queue.ErrStorage
	}
	if l.until.After(now) {
		return queue.Batch{Next: l.until}, nil
	}
	l.until = now.Add(ask.Lease)
	l.token++
	return queue.Batch{Claims: []queue.Claim{{Call: queue.Call{Facts: queue.Facts{ID: "a", Repeatable: true}},
		Lease: queue.Lease{Token: l.token, Until: l.until}}}}, nil
}

func (l *leasing) Renew(_ context.Context, until time.Time, claims []queue.Claim) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken.Load() {
		return nil, queue.ErrStorage
	}
	if claims[0].Lease.Token != l.token {
		return []string{"a"}, nil
	}
	l.until = until
	return nil, nil
}

func (l *leasing) Settle(_ context.Context, now time.Time, _ []queue.Settlement) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = now.Add(time.Hour)
	return nil, nil
}

func TestACallThatIsUnderWayIsNotSentAgainAfterAnOutageOfTheStore(t *testing.T) {
	for _, outage := range []time.Duration{31, 33, 36, 40} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int32
			f := &leasing{}
			w := queue.Worker{Feed: f, Lease: 30 * time.Second, Send: func(ctx context.Context, _ queue.Call) queue.Outcome {
				sent.Add(1)
				select {
				case <-time.After(2 * time.Minute):
				case <-ctx.Done():
				}
				return queue.Outcome{State: queue.Done}
			}}
			w.Start(t.Context())
			time.Sleep(time.Second)
			f.broken.Store(true)
			time.Sleep(outage * time.Second)
			f.broken.Store(false)
			time.Sleep(3 * time.Minute)
			w.Stop()
			same(t, "times it was sent", sent.Load(), int32(1))
		})
	}
}

func TestACallThatWasTakenBackIsNotSentTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		var sent atomic.Int32
		f := &leasing{}
		w := queue.Worker{Feed: f, Lease: 30 * time.Second, Poll: time.Second, Send: func(ctx context.Context, _ queue.Call) queue.Outcome {
			if sent.Add(1) == 1 {
				<-ctx.Done()
				cause = context.Cause(ctx)
			}
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		time.Sleep(1500 * time.Millisecond)
		f.mu.Lock()
		f.until = time.Time{} // as if the machine had slept
		f.mu.Unlock()
		time.Sleep(3 * time.Second)
		w.Stop()
		if same(t, "times it was sent", sent.Load(), int32(2)); !errors.Is(cause, queue.ErrLeaseLost) {
			t.Errorf("the first sending ended by %v, want %v", cause, queue.ErrLeaseLost)
		}
	})
}
