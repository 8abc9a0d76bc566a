package sqlite_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// held is a disk that takes nothing until it is let.
type held struct{ let chan error }

func (h held) sync() error { return <-h.let }

func TestACallIsAcknowledgedWhenTheDiskHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := held{make(chan error)}
		s := open(t, sqlite.Synced(options(t), h.sync))
		acknowledged := false
		go func() {
			enqueue(t, s, get("a"))
			acknowledged = true
		}()
		synctest.Wait()
		if f, err := s.Get(t.Context(), "a"); err != nil || f.State != queue.Queued || acknowledged {
			t.Errorf("while the disk is busy: got %s, %v, acknowledged %v, want it queued and not acknowledged", f.State, err, acknowledged)
		}
		h.let <- nil
		synctest.Wait()
		if !acknowledged {
			t.Error("the disk has it: got no acknowledgement")
		}
	})
}

func TestAClaimWaitsForTheDiskIfItMustNotBeForgotten(t *testing.T) {
	for _, tt := range []struct {
		name               string
		repeatable, begins bool
		waits              bool
	}{
		{name: "may be sent twice", repeatable: true},
		{name: "is begun later", begins: true},
		{name: "counts as begun", waits: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := held{make(chan error, 1)}
				s := open(t, sqlite.Synced(options(t), h.sync))
				c := get("a")
				c.Repeatable = tt.repeatable
				h.let <- nil
				enqueue(t, s, c)
				claimed := make(chan int, 1)
				go func() {
					b, err := s.Claim(t.Context(), time.Now(), queue.Ask{Max: 1, Lease: time.Minute, Begins: tt.begins})
					if err != nil {
						t.Error(err)
					}
					claimed <- len(b.Claims)
				}()
				synctest.Wait()
				if waits := len(claimed) == 0; waits != tt.waits {
					t.Errorf("waits for the disk: got %v, want %v", waits, tt.waits)
				}
				if tt.waits {
					h.let <- nil
				}
				if got := <-claimed; got != 1 {
					t.Errorf("claimed: got %d calls, want 1", got)
				}
			})
		})
	}
}

func TestADiskThatFailsIsNotTrustedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := held{make(chan error, 1)}
		o := sqlite.Synced(options(t), h.sync)
		s := open(t, o)
		h.let <- errors.New("no")
		for _, id := range []string{"a", "b"} {
			if _, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get(id)}); !errors.Is(err, queue.ErrStorage) {
				t.Errorf("enqueue %s: got %v, want ErrStorage", id, err)
			}
		}
		if _, err := s.Claim(t.Context(), time.Now(), queue.Ask{Max: 1, Lease: time.Minute, Begins: true}); !errors.Is(err, queue.ErrStorage) {
			t.Errorf("claim: got %v, want ErrStorage", err)
		}
		if _, err := s.Get(t.Context(), "b"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("what was handed in after it failed: got %v, want ErrNotFound", err)
		}
	})
}

func TestProducersOfASlowDiskShareItsTurns(t *testing.T) {
	const producers, each, turn = 16, 10, 10 * time.Millisecond
	turns, _ := produce(t, producers, each, turn)
	if most := 4 * each; turns > most {
		t.Errorf("turns of the disk: got %d for %d calls of %d producers, want at most %d", turns, producers*each, producers, most)
	}
}

// TestNobodyIsWaitedForWhenAllProducersAreThere has a disk whose turns are
// shorter than what a group would linger.
func TestNobodyIsWaitedForWhenAllProducersAreThere(t *testing.T) {
	const producers, each, turn = 16, 100, 100 * time.Microsecond
	turns, took := produce(t, producers, each, turn)
	if most := 2 * time.Duration(turns) * turn; took > most {
		t.Errorf("got %d turns of the disk in %v, want them in at most %v", turns, took, most)
	}
}

// produce has producers enqueue a call at a time, and tells how many turns a
// disk took and how long all of it lasted.
func produce(t *testing.T, producers, each int, turn time.Duration) (turns int, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, sqlite.Synced(options(t), func() error {
			turns++
			time.Sleep(turn)
			return nil
		}))
		began := time.Now()
		var wg sync.WaitGroup
		for range producers {
			wg.Go(func() {
				for range each {
					enqueue(t, s, get(""))
				}
			})
		}
		wg.Wait()
		took = time.Since(began)
	})
	return turns, took
}

func TestWhoLooksForAKeyDoesNotWaitForAWriterThatIsHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let, held := make(chan struct{}), false
		s := open(t, sqlite.Moved(options(t), func() error {
			if held {
				<-let
			}
			return nil
		}))
		enqueue(t, s, get("a"))
		if err := s.Cancel(t.Context(), time.Now(), "a"); err != nil {
			t.Fatal(err)
		}
		held = true
		go s.Purge(t.Context(), []string{"a"}) // moves the log
		synctest.Wait()
		ctx, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		c := get("b")
		c.Key = "k"
		if taken, err := s.Taken(ctx, time.Now(), &c); taken || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v, want no answer within the time", taken, err)
		}
		close(let)
	})
}
