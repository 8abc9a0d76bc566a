package token_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/token"
)

// rejected returns the credential in use, as a 401 would name it.
func rejected(t *testing.T, s *token.Source) token.Token {
	t.Helper()
	got, err := s.Current(t.Context())
	if err != nil {
		t.Fatalf("Current: %v", err)
	}
	return got
}

func TestRejectedTokenIsReplacedAtOnce(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		got, err := s.Renew(t.Context(), rejected(t, s))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "renewed", string(got.Value), "t2")
		equal(t, "current", current(t, s), "t2")
	})
}

func TestConcurrentRejectionsFetchOnce(t *testing.T) {
	i := &issuer{life: time.Hour, takes: time.Second}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		old := rejected(t, s)
		var all sync.WaitGroup
		var got atomic.Int64
		for range 100 {
			all.Go(func() {
				if v, err := s.Renew(t.Context(), old); err == nil && v.Value == "t2" {
					got.Add(1)
				}
			})
		}
		all.Wait()
		equal(t, "served", got.Load(), 100)
		equal(t, "fetches", i.count(), 2)
	})
}

func TestLateRejectionFindsTheNewerToken(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		old := rejected(t, s)
		for range 2 {
			if got, err := s.Renew(t.Context(), old); err != nil || got.Value != "t2" {
				t.Fatalf("got %v, %v", got, err)
			}
		}
		equal(t, "fetches", i.count(), 2)
	})
}

func TestRejectionDuringABackgroundRenewalWaitsForThat(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		old := rejected(t, s)
		i.slow(10 * time.Second)
		time.Sleep(48*time.Minute + time.Second)
		if got, err := s.Renew(t.Context(), old); err != nil || got.Value != "t2" {
			t.Errorf("got %v, %v", got, err)
		}
		equal(t, "fetches", i.count(), 2)
	})
}

func TestOtherTrafficGoesOnDuringARenewal(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		old := rejected(t, s)
		i.slow(time.Second)
		go func() { _, _ = s.Renew(t.Context(), old) }()
		synctest.Wait()
		before := time.Now()
		equal(t, "meanwhile", current(t, s), "t1")
		equal(t, "waited", time.Since(before), 0)
	})
}

func TestFailedRenewalKeepsTheOldTokenAndItsRenewal(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		old := rejected(t, s)
		i.fail(1)
		if _, err := s.Renew(t.Context(), old); !errors.Is(err, errDown) {
			t.Errorf("got %v", err)
		}
		if _, err := s.Renew(t.Context(), old); !errors.Is(err, errDown) {
			t.Errorf("within the pause: %v", err)
		}
		equal(t, "fetches", i.count(), 2)
		equal(t, "current", current(t, s), "t1")
		time.Sleep(48 * time.Minute)
		synctest.Wait()
		equal(t, "at 80 %", current(t, s), "t3")
	})
}

func TestRenewalStartsTheLifeAnew(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		old := rejected(t, s)
		time.Sleep(40 * time.Minute)
		if _, err := s.Renew(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		time.Sleep(47 * time.Minute)
		synctest.Wait()
		equal(t, "fetches before 80 % of the second life", i.count(), 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "fetches at 80 %", i.count(), 3)
	})
}

func TestTokensOfOneInstantAreToldApart(t *testing.T) {
	i := &issuer{}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		first := rejected(t, s)
		second, err := s.Renew(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "later", second.Issued.After(first.Issued), true)
	})
}

func TestRenewalsThatDoNotHelpAreSlowed(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		denied := 0
		for range 60 { // a minute of nothing but 401
			if _, err := s.Renew(t.Context(), rejected(t, s)); err != nil {
				denied++
				e, ok := errors.AsType[*token.Error](err)
				if !ok || !e.RetryAt.After(time.Now()) {
					t.Fatalf("got %v, want an instant to come", err)
				}
			}
			time.Sleep(time.Second)
		}
		if n := i.count(); n > 10 {
			t.Errorf("%d fetches, %d denied", n, denied)
		}
		time.Sleep(2 * time.Minute)
		if _, err := s.Renew(t.Context(), rejected(t, s)); err != nil {
			t.Errorf("after two quiet minutes: %v", err)
		}
	})
}

func TestCancelledRenewalFetchesNothing(t *testing.T) {
	i := &issuer{}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		old := rejected(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Renew(ctx, old); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		equal(t, "fetches", i.count(), 1)
	})
}

func TestFixedCredentialCannotBeRenewed(t *testing.T) {
	for _, s := range []*token.Source{token.Static("", "x"), token.Basic("u", "p"), token.Query("key", "x")} {
		equal(t, "renewable", s.Renewable(), false)
		if _, err := s.Renew(t.Context(), rejected(t, s)); !errors.Is(err, token.ErrFixed) {
			t.Errorf("got %v", err)
		}
		if _, err := s.Current(t.Context()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		s.Close()
	}
}

func TestOnlySourcesWithAnIssuerAreRenewable(t *testing.T) {
	var none *token.Source
	equal(t, "nil", none.Renewable(), false)
	equal(t, "issuer", (&token.Source{Fetcher: &issuer{}}).Renewable(), true)
}
