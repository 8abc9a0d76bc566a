package token_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/token"
)

// issuer is a fake that numbers its tokens and notes when it was asked.
type issuer struct {
	life time.Duration // 0: not said

	mu    sync.Mutex
	takes time.Duration // of one fetch
	fails int           // so many fetches from now on fail
	asked []time.Time
	old   []mask.Secret
}

var errDown = errors.New("issuer down")

func (i *issuer) Fetch(ctx context.Context, old token.Token) (token.Token, error) {
	i.mu.Lock()
	i.asked, i.old = append(i.asked, time.Now()), append(i.old, old.Value)
	n, fail, takes := len(i.asked), i.fails > 0, i.takes
	i.fails--
	i.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return token.Token{}, context.Cause(ctx)
	}
	if fail {
		return token.Token{}, errDown
	}
	t := token.Token{Value: mask.Secret(fmt.Sprint("t", n))}
	if i.life > 0 {
		t.Expires = time.Now().Add(i.life)
	}
	return t, nil
}

func (i *issuer) fail(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fails = n
}

func (i *issuer) slow(takes time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.takes = takes
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.asked)
}

// current returns the value of the credential in use, or fails the test.
func current(t *testing.T, s *token.Source) string {
	t.Helper()
	got, err := s.Current(t.Context())
	if err != nil {
		t.Fatalf("Current: %v", err)
	}
	return string(got.Value)
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%s: -got +want\n%s", what, diff)
	}
}

// bubble runs f with a Source over i that is exact about when it renews.
func bubble(t *testing.T, i *issuer, f func(t *testing.T, s *token.Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &token.Source{Fetcher: i, Jitter: -1, Seed: 1}
		defer s.Close()
		f(t, s)
	})
}

func TestFirstUseFetches(t *testing.T) {
	i := &issuer{}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		equal(t, "token", current(t, s), "t1")
		equal(t, "again", current(t, s), "t1")
		equal(t, "fetches", i.count(), 1)
	})
}

func TestCredentialIsRenewedAt80PercentOfItsLife(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		begin := time.Now()
		current(t, s)
		time.Sleep(48*time.Minute - 1)
		synctest.Wait()
		equal(t, "fetches just before", i.count(), 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		equal(t, "fetches at 80 %", i.count(), 2)
		equal(t, "instant", i.asked[1].Sub(begin), 48*time.Minute)
		equal(t, "token", current(t, s), "t2")
	})
}

func TestRefreshAtMovesTheRenewal(t *testing.T) {
	i := &issuer{life: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		s := &token.Source{Fetcher: i, Jitter: -1, RefreshAt: 0.5}
		defer s.Close()
		current(t, s)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		equal(t, "fetches", i.count(), 2)
	})
}

func TestJitterSpreadsTheRenewalAndFollowsTheSeed(t *testing.T) {
	renewed := func(seed uint64) (after time.Duration) {
		i := &issuer{life: 1000 * time.Second}
		synctest.Test(t, func(t *testing.T) {
			s := &token.Source{Fetcher: i, Seed: seed}
			defer s.Close()
			begin := time.Now()
			current(t, s)
			time.Sleep(900 * time.Second)
			synctest.Wait()
			after = i.asked[1].Sub(begin)
		})
		return after
	}
	seen := map[time.Duration]bool{}
	for seed := uint64(1); seed <= 20; seed++ {
		after := renewed(seed)
		if after < 780*time.Second || after > 820*time.Second {
			t.Errorf("seed %d: renewed after %v, want within 80 ± 2 %%", seed, after)
		}
		seen[after] = true
		equal(t, "same seed", renewed(seed), after)
	}
	if len(seen) < 15 {
		t.Errorf("20 seeds gave %d instants", len(seen))
	}
}

func TestTrafficKeepsTheOldTokenWhileItIsRenewed(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		i.slow(20 * time.Second)
		time.Sleep(48*time.Minute + 10*time.Second)
		synctest.Wait()
		equal(t, "fetches", i.count(), 2)
		before := time.Now()
		equal(t, "meanwhile", current(t, s), "t1")
		equal(t, "waited", time.Since(before), 0)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		equal(t, "afterwards", current(t, s), "t2")
	})
}

func TestThousandCallersShareOneFetch(t *testing.T) {
	i := &issuer{life: time.Hour, takes: time.Second}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		var all sync.WaitGroup
		var got atomic.Int64
		for range 1000 {
			all.Go(func() {
				if v, err := s.Current(t.Context()); err == nil && v.Value == "t1" {
					got.Add(1)
				}
			})
		}
		all.Wait()
		equal(t, "served", got.Load(), 1000)
		equal(t, "fetches", i.count(), 1)
	})
}

func TestThousandCallersStartOneRenewalAtTheDueInstant(t *testing.T) {
	i := &issuer{life: time.Hour, takes: time.Second}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		time.Sleep(50 * time.Minute)
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { _, _ = s.Current(t.Context()) })
		}
		all.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "fetches", i.count(), 2)
	})
}

func TestIdleSourceStopsFetching(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		equal(t, "fetches", i.count(), 2)
		equal(t, "wakes up", current(t, s), "t3")
	})
}

func TestUseAfterTheDueInstantStartsTheRenewal(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		time.Sleep(48 * time.Minute) // t2, which nobody asks for
		time.Sleep(50 * time.Minute)
		equal(t, "token", current(t, s), "t2")
		synctest.Wait()
		equal(t, "token", current(t, s), "t3")
	})
}

func TestFailedBackgroundRenewalIsRepeatedUntilItSucceeds(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		i.fail(4)
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		equal(t, "fetches", i.count(), 6)
		equal(t, "token", current(t, s), "t6")
		for n, step := range []time.Duration{1, 2, 4, 8} {
			pause := i.asked[n+2].Sub(i.asked[n+1])
			if pause < step*time.Second/2 || pause > step*time.Second {
				t.Errorf("pause %d is %v, want between half of and whole %d s", n, pause, step)
			}
		}
	})
}

func TestOldTokenServesUntilItExpiresWhileRenewalFails(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		i.fail(1 << 30)
		time.Sleep(time.Hour - 1)
		equal(t, "just before", current(t, s), "t1")
		time.Sleep(time.Nanosecond)
		if _, err := s.Current(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("after expiry: got %v, want the issuer's failure", err)
		}
		n := i.count()
		if n > 60 {
			t.Errorf("%d fetches in 12 minutes", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "fetches after expiry, unasked", i.count(), n)
	})
}

func TestExpiredTokenBlocksUntilThereIsANewOne(t *testing.T) {
	i := &issuer{life: time.Hour, takes: 3 * time.Second}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		time.Sleep(10 * time.Hour)
		before := time.Now()
		equal(t, "token", current(t, s), "t3")
		equal(t, "waited", time.Since(before), 3*time.Second)
	})
}

func TestLifetimeStandsInWhereTheIssuerSaysNone(t *testing.T) {
	i := &issuer{}
	synctest.Test(t, func(t *testing.T) {
		s := &token.Source{Fetcher: i, Jitter: -1, Lifetime: 10 * time.Minute}
		defer s.Close()
		current(t, s)
		time.Sleep(8 * time.Minute)
		synctest.Wait()
		equal(t, "fetches", i.count(), 2)
	})
}

func TestTokenWithoutAnEndIsKept(t *testing.T) {
	i := &issuer{}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		time.Sleep(1000 * time.Hour)
		equal(t, "token", current(t, s), "t1")
	})
}

func TestExpiredGiftIsAFailure(t *testing.T) {
	i := &issuer{life: -time.Second}
	synctest.Test(t, func(t *testing.T) {
		s := &token.Source{Fetcher: fetch(func(context.Context, token.Token) (token.Token, error) {
			return token.Token{Value: "x", Expires: time.Now().Add(-time.Second)}, nil
		})}
		defer s.Close()
		if _, err := s.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "already expired") {
			t.Errorf("got %v", err)
		}
	})
	equal(t, "fetches", i.count(), 0)
}

type fetch func(context.Context, token.Token) (token.Token, error)

func (f fetch) Fetch(ctx context.Context, old token.Token) (token.Token, error) { return f(ctx, old) }

func TestFailureIsToldAtOnceUntilTheInstantItNames(t *testing.T) {
	i := &issuer{}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		i.fail(1)
		_, err := s.Current(t.Context())
		e, ok := errors.AsType[*token.Error](err)
		if !ok || !errors.Is(err, errDown) {
			t.Fatalf("got %v, want a token.Error", err)
		}
		wait := time.Until(e.RetryAt)
		if wait < 500*time.Millisecond || wait > time.Second {
			t.Errorf("told to wait %v", wait)
		}
		time.Sleep(wait - 1)
		_, again := s.Current(t.Context())
		equal(t, "the same error", again == err, true)
		equal(t, "fetches", i.count(), 1)
		time.Sleep(time.Nanosecond)
		equal(t, "token", current(t, s), "t2")
	})
}

func TestIssuersRetryAfterIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(5 * time.Minute)
		s := &token.Source{Fetcher: fetch(func(context.Context, token.Token) (token.Token, error) {
			return token.Token{}, &token.Error{Op: "test", Status: 429, RetryAt: at}
		})}
		defer s.Close()
		_, err := s.Current(t.Context())
		e, ok := errors.AsType[*token.Error](err)
		if !ok || !e.RetryAt.Equal(at) {
			t.Errorf("got %v, want %v", err, at)
		}
	})
}

func TestFetchIsBoundByTimeout(t *testing.T) {
	for _, tc := range []struct{ set, want time.Duration }{{0, 30 * time.Second}, {5 * time.Second, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := &token.Source{Fetcher: &issuer{takes: time.Hour}, Timeout: tc.set}
			defer s.Close()
			before := time.Now()
			if _, err := s.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer in time") {
				t.Errorf("got %v", err)
			}
			equal(t, "waited", time.Since(before), tc.want)
		})
	}
}

func TestOneCallersCancellationLeavesTheFetchToTheOthers(t *testing.T) {
	i := &issuer{takes: time.Second}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		ctx, cancel := context.WithCancel(t.Context())
		quit := make(chan error, 1)
		go func() { _, err := s.Current(ctx); quit <- err }()
		synctest.Wait()
		got := make(chan token.Token, 1)
		go func() { v, _ := s.Current(t.Context()); got <- v }()
		synctest.Wait()
		cancel()
		if err := <-quit; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled caller: %v", err)
		}
		equal(t, "other caller", string((<-got).Value), "t1")
		equal(t, "fetches", i.count(), 1)
	})
}

func TestCancelledCallerFetchesNothing(t *testing.T) {
	i := &issuer{}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Current(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		equal(t, "fetches", i.count(), 0)
	})
}

func TestFetcherIsHandedTheTokenItReplaces(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		time.Sleep(49 * time.Minute)
		synctest.Wait()
		equal(t, "old", i.old, []mask.Secret{"", "t1"})
	})
}

func TestOnRenewIsToldOfEveryFetch(t *testing.T) {
	i := &issuer{life: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		var got []string
		s := &token.Source{Fetcher: i, Jitter: -1, Seed: 1, OnRenew: func(r token.Renewal) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprint(r.At.Sub(begin).Truncate(time.Minute), r.Background, r.Err != nil, r.Expires.IsZero()))
		}}
		current(t, s)
		i.fail(1)
		time.Sleep(49 * time.Minute)
		s.Close()
		equal(t, "renewals", got, []string{"0s false false false", "48m0s true true true", "48m0s true false false"})
	})
}

func TestFreshCredentialCostsNoAllocation(t *testing.T) {
	s := &token.Source{Fetcher: &issuer{life: time.Hour}}
	defer s.Close()
	current(t, s)
	ctx := t.Context()
	equal(t, "allocations", testing.AllocsPerRun(100, func() { _, _ = s.Current(ctx) }), 0)
}

func BenchmarkCurrent(b *testing.B) {
	s := &token.Source{Fetcher: &issuer{life: time.Hour}}
	defer s.Close()
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Current(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
