package token_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/token"
)

func TestPanicInAFetcherIsAnErrorAndTheNextFetchWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := &token.Source{Fetcher: fetch(func(context.Context, token.Token) (token.Token, error) {
			if n++; n == 1 {
				panic("hunter2 was wrong")
			}
			return token.Token{Value: "good"}, nil
		})}
		defer s.Close()
		_, err := s.Current(t.Context())
		if err == nil || !strings.Contains(err.Error(), "panicked with a string") {
			t.Errorf("got %v", err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats what was thrown: %v", err)
		}
		time.Sleep(time.Second)
		equal(t, "token", current(t, s), "good")
	})
}

func TestMissingFetcherIsSaid(t *testing.T) {
	var s token.Source
	defer s.Close()
	if _, err := s.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "set Source.Fetcher") {
		t.Errorf("got %v", err)
	}
}

func TestCloseEndsTheFetchInTheAir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &token.Source{Fetcher: &issuer{takes: time.Hour}, Timeout: 2 * time.Hour}
		failed := make(chan error, 1)
		go func() { _, err := s.Current(t.Context()); failed <- err }()
		synctest.Wait()
		before := time.Now()
		s.Close()
		equal(t, "waited", time.Since(before), 0)
		if err := <-failed; !errors.Is(err, token.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestClosedSourceRenewsNothing(t *testing.T) {
	i := &issuer{life: time.Hour}
	bubble(t, i, func(t *testing.T, s *token.Source) {
		current(t, s)
		s.Close()
		time.Sleep(50 * time.Minute)
		equal(t, "while valid", current(t, s), "t1")
		time.Sleep(20 * time.Minute)
		if _, err := s.Current(t.Context()); !errors.Is(err, token.ErrClosed) {
			t.Errorf("after expiry: %v", err)
		}
		equal(t, "fetches", i.count(), 1)
	})
}

func TestUnusedSourceCloses(t *testing.T) {
	var s token.Source
	s.Close()
	s.Close()
}
