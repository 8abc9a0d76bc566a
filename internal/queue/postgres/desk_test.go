package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
)

// harbour is a desk with two clerks whose groups are under way until they are
// let go.
type harbour struct {
	*postgres.Desk
	t      *testing.T
	let    chan struct{}
	closed chan struct{}
	wg     sync.WaitGroup // of the clerks
	steps  sync.WaitGroup

	mu     sync.Mutex
	groups [][]int
}

func newHarbour(t *testing.T) *harbour {
	h := &harbour{t: t, let: make(chan struct{}), closed: make(chan struct{})}
	h.Desk = postgres.ServeDesk(h.closed, &h.wg, 2, func(group []int) {
		slices.Sort(group)
		h.mu.Lock()
		h.groups = append(h.groups, group)
		h.mu.Unlock()
		<-h.let
	})
	return h
}

// hand hands steps over, one after the other.
func (h *harbour) hand(steps ...int) {
	for _, n := range steps {
		h.steps.Go(func() {
			if err := h.Do(context.Background(), n); err != nil {
				h.t.Errorf("step %d: got %v, want it carried out", n, err)
			}
		})
		synctest.Wait()
	}
}

// land lets n groups go.
func (h *harbour) land(n int) {
	for range n {
		h.let <- struct{}{}
	}
	synctest.Wait()
}

func (h *harbour) close() {
	close(h.closed)
	close(h.let)
	h.wg.Wait()
	h.steps.Wait()
}

func TestAGroupDepartsWhenAsManyWaitAsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t)
		h.hand(1, 2)    // one for each clerk
		h.hand(3, 4, 5) // both are away
		h.land(2)       // now one is, with three
		h.hand(6, 7)    // too few
		h.hand(8)
		if diff := cmp.Diff(h.groups, [][]int{{1}, {2}, {3, 4, 5}, {6, 7, 8}}); diff != "" {
			t.Errorf("groups differ (-got +want):\n%s", diff)
		}
		h.close()
	})
}

func TestWhatWaitsDepartsWhenNothingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t)
		h.hand(1, 2, 3, 4, 5)
		h.land(2)
		h.hand(6) // one, while three are under way
		h.land(1)
		if diff := cmp.Diff(h.groups, [][]int{{1}, {2}, {3, 4, 5}, {6}}); diff != "" {
			t.Errorf("groups differ (-got +want):\n%s", diff)
		}
		h.close()
	})
}

func TestAStepThatIsGivenUpWhileItWaitsIsNotCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t)
		h.hand(1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		h.steps.Go(func() {
			if err := h.Do(ctx, 3); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		h.land(2)
		h.hand(4)
		if diff := cmp.Diff(h.groups, [][]int{{1}, {2}, {4}}); diff != "" {
			t.Errorf("groups differ (-got +want):\n%s", diff)
		}
		h.close()
	})
}

func TestWhatWaitsWhenAStoreIsClosedIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t)
		h.hand(1, 2)
		for range 2 {
			h.steps.Go(func() {
				if err := h.Do(context.Background(), 3); !errors.Is(err, queue.ErrClosed) {
					t.Errorf("a step that waits: got %v, want %v", err, queue.ErrClosed)
				}
			})
		}
		synctest.Wait()
		h.close()
		if err := h.Do(context.Background(), 4); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("a step that comes later: got %v, want %v", err, queue.ErrClosed)
		}
	})
}

func TestAGroupOfLargeStepsIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t)
		h.hand(1, 2, 5<<20, 5<<20+1, 5<<20+2)
		h.land(5)
		h.steps.Wait()
		for _, g := range h.groups {
			if len(g) > 1 {
				t.Errorf("a group: got %v, want none of several of 5 MiB", g)
			}
		}
		close(h.closed)
		h.wg.Wait()
	})
}
