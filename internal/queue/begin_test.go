package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// slow is a feed whose disk takes a second.
type slow struct {
	*feed
	claim, settle time.Duration
}

func (s *slow) Claim(ctx context.Context, now time.Time, ask queue.Ask) (queue.Batch, error) {
	time.Sleep(s.claim)
	return s.feed.Claim(ctx, now, ask)
}

func (s *slow) Settle(ctx context.Context, now time.Time, all []queue.Settlement) ([]string, error) {
	time.Sleep(s.settle)
	return s.feed.Settle(ctx, now, all)
}

func TestAClaimDoesNotWaitForASettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(100 * time.Millisecond)
		f := &slow{feed: newFeed(map[string]time.Time{"a": {}, "b": at}), settle: time.Second}
		var sent time.Time
		w := queue.Worker{Feed: f, Send: func(_ context.Context, c queue.Call) queue.Outcome {
			if c.ID == "b" {
				sent = time.Now()
			}
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		time.Sleep(3 * time.Second)
		w.Stop()
		same(t, "sent at", sent, at)
		same(t, "settled", f.states(), map[string]string{"a": "done", "b": "done"})
	})
}

func TestWhatIsClaimedWhileTheWorkerStopsIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slow{feed: newFeed(map[string]time.Time{"a": {}}), claim: time.Second}
		w := queue.Worker{Feed: f, Send: func(context.Context, queue.Call) queue.Outcome {
			t.Error("it was sent")
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		synctest.Wait()
		w.Stop()
		same(t, "reason", f.settled["a"].Reason, queue.ReasonHandedBack)
		same(t, "settled", f.states(), map[string]string{"a": "queued"})
	})
}

// beginner is a feed that knows what was begun.
type beginner struct {
	*feed
	mu    sync.Mutex
	begun []string
	gone  bool  // leases are lost
	fails error // of the store
}

func (b *beginner) Begin(_ context.Context, claims []queue.Claim) (lost []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		b.begun = append(b.begun, c.ID)
		if b.gone {
			lost = append(lost, c.ID)
		}
	}
	return lost, b.fails
}

// send runs one call through a worker and returns what Begin said, twice.
func send(t *testing.T, f queue.Feed, begins bool) (errs [2]error) {
	synctest.Test(t, func(t *testing.T) {
		w := queue.Worker{Feed: f, Begins: begins, Send: func(ctx context.Context, _ queue.Call) queue.Outcome {
			errs = [2]error{queue.Begin(ctx), queue.Begin(ctx)}
			return queue.Outcome{State: queue.Done}
		}}
		w.Start(t.Context())
		synctest.Wait()
		w.Stop()
	})
	return errs
}

func TestABegunCallIsToldToTheStoreOnce(t *testing.T) {
	f := &beginner{feed: newFeed(map[string]time.Time{"a": {}})}
	same(t, "errors", send(t, f, true), [2]error{})
	same(t, "begun", f.begun, []string{"a"})
}

func TestAWorkerThatDoesNotSayWhatItBeginsAsksNoStore(t *testing.T) {
	f := &beginner{feed: newFeed(map[string]time.Time{"a": {}})}
	same(t, "errors", send(t, f, false), [2]error{})
	same(t, "begun", len(f.begun), 0)
}

func TestACallWhoseLeaseIsLostMustNotBegin(t *testing.T) {
	f := &beginner{feed: newFeed(map[string]time.Time{"a": {}}), gone: true}
	for _, err := range send(t, f, true) {
		if !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("begin: got %v, want ErrLeaseLost", err)
		}
	}
}

func TestACallMustNotBeginWhileTheStoreFails(t *testing.T) {
	f := &beginner{feed: newFeed(map[string]time.Time{"a": {}}), fails: queue.ErrFull}
	for _, err := range send(t, f, true) {
		if !errors.Is(err, queue.ErrFull) {
			t.Errorf("begin: got %v, want ErrFull", err)
		}
	}
}

func TestBeginOutsideOfAWorkerDoesNothing(t *testing.T) {
	if err := queue.Begin(t.Context()); err != nil {
		t.Errorf("begin: got %v, want nil", err)
	}
}
