package queue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed/internal/queue"
)

// feed is a store of calls that are due at an instant, in memory.
type feed struct {
	mu      sync.Mutex
	due     map[string]time.Time
	settled map[string]queue.Outcome
	renewed int
	lose    map[string]bool
	broken  error
	claims  int
}

func newFeed(due map[string]time.Time) *feed {
	return &feed{due: due, settled: map[string]queue.Outcome{}, lose: map[string]bool{}}
}

func (f *feed) Claim(_ context.Context, now time.Time, ask queue.Ask) (b queue.Batch, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims++
	if f.broken != nil {
		return b, f.broken
	}
	for id, at := range f.due {
		switch {
		case at.After(now):
			if b.Next.IsZero() || at.Before(b.Next) {
				b.Next = at
			}
		case len(b.Claims) < ask.Max:
			delete(f.due, id)
			b.Claims = append(b.Claims, queue.Claim{Call: queue.Call{Facts: queue.Facts{ID: id}}, Lease: queue.Lease{Until: now.Add(ask.Lease)}})
		}
	}
	return b, nil
}

func (f *feed) Settle(_ context.Context, _ time.Time, all []queue.Settlement) (lost []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return nil, f.broken
	}
	for _, s := range all {
		f.settled[s.ID] = s.Outcome
	}
	return nil, nil
}

func (f *feed) Renew(_ context.Context, _ time.Time, all []queue.Claim) (lost []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed++
	for _, c := range all {
		if f.lose[c.ID] {
			lost = append(lost, c.ID)
		}
	}
	return lost, nil
}

func (f *feed) states() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for id, o := range f.settled {
		out[id] = o.State.String()
	}
	return out
}

func done(context.Context, queue.Call) queue.Outcome { return queue.Outcome{State: queue.Done} }

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%s (-got +want):\n%s", what, diff)
	}
}

func TestACallIsSentWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(700 * time.Millisecond)
		var sent time.Time
		w := queue.Worker{Feed: newFeed(map[string]time.Time{"a": at}), Send: func(context.Context, queue.Call) queue.Outcome {
			sent = time.Now()
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		time.Sleep(2 * time.Second)
		w.Stop()
		same(t, "sent at", sent, at)
	})
}

func TestAWakenedWorkerDoesNotWaitForItsPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(map[string]time.Time{})
		w := queue.Worker{Feed: f, Send: done, Poll: time.Hour}
		w.Start(t.Context())
		synctest.Wait()
		f.mu.Lock()
		f.due["a"] = time.Now()
		f.mu.Unlock()
		w.Wake()
		synctest.Wait()
		same(t, "settled", f.states(), map[string]string{"a": "done"})
		w.Stop()
	})
}

func TestNoMoreAreClaimedThanThereAreSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(map[string]time.Time{"a": {}, "b": {}, "c": {}})
		var mu sync.Mutex
		now, most := 0, 0
		w := queue.Worker{Feed: f, Slots: 2, Send: func(context.Context, queue.Call) queue.Outcome {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		time.Sleep(5 * time.Second)
		w.Stop()
		same(t, "at once", most, 2)
		same(t, "settled", len(f.states()), 3)
	})
}

func TestLeasesAreRenewedWhileACallIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(map[string]time.Time{"a": {}})
		w := queue.Worker{Feed: f, Lease: 6 * time.Second, Send: func(context.Context, queue.Call) queue.Outcome {
			time.Sleep(5500 * time.Millisecond)
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		time.Sleep(6 * time.Second)
		w.Stop()
		same(t, "renewals", f.renewed, 5)
	})
}

// stepped is a feed whose leases are those of a wall clock that is set forward as
// soon as they were given, and which keeps in order what is asked of it.
type stepped struct {
	*feed
	asked []string
}

func (f *stepped) Claim(ctx context.Context, now time.Time, ask queue.Ask) (queue.Batch, error) {
	b, err := f.feed.Claim(ctx, now, ask)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, "claim")
	for i := range b.Claims {
		b.Claims[i].Lease.Until = now.Add(-10 * time.Minute)
	}
	return b, err
}

func (f *stepped) Renew(ctx context.Context, until time.Time, all []queue.Claim) ([]string, error) {
	f.mu.Lock()
	f.asked = append(f.asked, "renew")
	f.mu.Unlock()
	return f.feed.Renew(ctx, until, all)
}

func TestLeasesThatRanOutByTheWallClockAreRenewedBeforeMoreIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &stepped{feed: newFeed(map[string]time.Time{"a": {}})}
		w := queue.Worker{Feed: f, Poll: time.Second, Send: func(context.Context, queue.Call) queue.Outcome {
			time.Sleep(2500 * time.Millisecond)
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		time.Sleep(2250 * time.Millisecond)
		f.mu.Lock()
		same(t, "asked", f.asked, []string{"claim", "renew", "claim", "claim"})
		f.mu.Unlock()
		w.Stop()
	})
}

func TestACallWhoseLeaseIsLostIsEndedAndNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(map[string]time.Time{"a": {}})
		f.lose["a"] = true
		var cause error
		w := queue.Worker{Feed: f, Lease: 6 * time.Second, Send: func(ctx context.Context, _ queue.Call) queue.Outcome {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return queue.Outcome{State: queue.Dead}
		}}
		w.Start(t.Context())
		time.Sleep(2 * time.Second)
		w.Stop()
		if !errors.Is(cause, queue.ErrLeaseLost) {
			t.Errorf("cause: got %v, want ErrLeaseLost", cause)
		}
		same(t, "settled", f.states(), map[string]string{})
	})
}

func TestStopWaitsForCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(map[string]time.Time{"a": {}})
		w := queue.Worker{Feed: f, Send: func(context.Context, queue.Call) queue.Outcome {
			time.Sleep(3 * time.Second)
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		synctest.Wait()
		w.Stop()
		same(t, "settled", f.states(), map[string]string{"a": "done"})
	})
}

func TestStopEndsWhatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(map[string]time.Time{"a": {}, "b": time.Now().Add(time.Hour)})
		w := queue.Worker{Feed: f, StopWithin: 4 * time.Second, Send: func(ctx context.Context, _ queue.Call) queue.Outcome {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), queue.ErrStopping) {
				t.Errorf("cause: got %v, want ErrStopping", context.Cause(ctx))
			}
			return queue.Outcome{State: queue.Queued, Reason: queue.ReasonHandedBack}
		}}
		w.Start(t.Context())
		synctest.Wait()
		begin := time.Now()
		w.Stop()
		same(t, "took", time.Since(begin), 4*time.Second)
		same(t, "settled", f.states(), map[string]string{"a": "queued"})
	})
}

func TestWhatTheStoreDoesNotTakeIsKeptAndNothingIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(map[string]time.Time{"a": {}})
		var failed atomic.Int64
		w := queue.Worker{Feed: f, Send: func(_ context.Context, c queue.Call) queue.Outcome {
			if c.ID == "a" {
				f.mu.Lock()
				f.broken = queue.ErrFull
				f.due["b"] = time.Time{}
				f.claims = 0
				f.mu.Unlock()
			}
			return queue.Outcome{State: queue.Done}
		}, Failed: func(error) { failed.Add(1) }}
		w.Start(t.Context())
		time.Sleep(2500 * time.Millisecond)
		f.mu.Lock()
		same(t, "claims while results wait", f.claims, 0)
		f.broken = nil
		f.mu.Unlock()
		same(t, "told", failed.Load(), int64(3))
		time.Sleep(time.Second)
		w.Stop()
		same(t, "settled", f.states(), map[string]string{"a": "done", "b": "done"})
	})
}

func TestTheBellRingsForTheCallThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b queue.Bell
		r := &reader{state: queue.Running}
		go func() {
			time.Sleep(time.Second)
			r.set(queue.Done)
			b.Settled([]queue.Settlement{{ID: "a"}})
		}()
		begin := time.Now()
		f, err := b.Await(t.Context(), r, "a", time.Hour)
		same(t, "state", f.State, queue.Done)
		same(t, "error", err, nil)
		same(t, "took", time.Since(begin), time.Second)
	})
}

func TestAWaitForACallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b queue.Bell
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		f, err := b.Await(ctx, &reader{state: queue.Running}, "a", time.Second)
		same(t, "state", f.State, queue.Running)
		same(t, "error", err, nil)
	})
}

// reader knows one call.
type reader struct {
	queue.Reader
	mu    sync.Mutex
	state queue.State
}

func (r *reader) set(s queue.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
}

func (r *reader) Get(context.Context, string) (queue.Facts, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return queue.Facts{State: r.state}, nil
}

// heavy is a feed that takes its time for every step of settlements, and knows
// how many there were of each and what was renewed.
type heavy struct {
	*feed
	takes time.Duration
	steps []int
	kept  map[string]bool
}

func (f *heavy) Settle(ctx context.Context, now time.Time, all []queue.Settlement) ([]string, error) {
	time.Sleep(f.takes)
	f.mu.Lock()
	f.steps = append(f.steps, len(all))
	f.mu.Unlock()
	return f.feed.Settle(ctx, now, all)
}

func (f *heavy) Renew(ctx context.Context, until time.Time, all []queue.Claim) ([]string, error) {
	f.mu.Lock()
	for _, c := range all {
		f.kept[c.ID] = true
	}
	f.mu.Unlock()
	return f.feed.Renew(ctx, until, all)
}

// answered are five calls that have large answers at once.
func answered(takes time.Duration) (*heavy, *queue.Worker) {
	f := &heavy{feed: newFeed(map[string]time.Time{"a": {}, "b": {}, "c": {}, "d": {}, "e": {}}), takes: takes, kept: map[string]bool{}}
	body := make([]byte, 10<<20)
	return f, &queue.Worker{Feed: f, Send: func(context.Context, queue.Call) queue.Outcome {
		return queue.Outcome{State: queue.Done, Answer: &queue.Result{Body: body}}
	}}
}

var allDone = map[string]string{"a": "done", "b": "done", "c": "done", "d": "done", "e": "done"}

func TestLargeAnswersAreStoredInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w := answered(time.Second)
		w.Start(t.Context())
		time.Sleep(20 * time.Second)
		w.Stop()
		same(t, "settled", f.states(), allDone)
		same(t, "in each step", f.steps, []int{1, 1, 1, 1, 1})
	})
}

func TestAWorkerThatStopsStoresAllLargeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w := answered(time.Second)
		w.Start(t.Context())
		time.Sleep(time.Second / 2)
		w.Stop()
		same(t, "settled", f.states(), allDone)
	})
}

func TestTheLeaseOfAnAnswerThatWaitsToBeStoredIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w := answered(20 * time.Second)
		w.Start(t.Context())
		time.Sleep(19 * time.Second) // of the first
		f.mu.Lock()
		same(t, "renewed", len(f.kept), 4)
		f.mu.Unlock()
		w.Stop()
	})
}
