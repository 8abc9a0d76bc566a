package token

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Source keeps one credential fresh for all who use it. Its fields are not
// changed after the first use; it is safe for use by many goroutines.
type Source struct {
	// Fetcher gets the credential. Required.
	Fetcher Fetcher
	// RefreshAt is the share of its life after which the credential is
	// renewed in the background. Default 0.8.
	RefreshAt float64
	// Jitter moves that instant by up to this share of the life either way,
	// so that processes started together do not refresh together. Default
	// 0.02; negative: none.
	Jitter float64
	// Seed makes the jitter repeatable. 0: random.
	Seed uint64
	// Timeout bounds one fetch. Default 30 s.
	Timeout time.Duration
	// Lifetime is the life of a credential whose issuer says none. 0: it
	// holds until it is rejected.
	Lifetime time.Duration
	// OnRenew is told of every fetch that ended. It is called without a lock
	// held, by the goroutine that fetched: by two at once if it is slow. Close
	// waits for it, so it must not call Close. nil: nobody is told.
	OnRenew func(Renewal)

	held  atomic.Pointer[held]
	mu    sync.Mutex // guards what follows
	state state
	tasks sync.WaitGroup
}

// Renewal is a fetch that ended. It holds nothing secret.
type Renewal struct {
	At         time.Time
	Expires    time.Time // zero: does not expire, or failed
	Err        error     // nil: there is a new credential
	Background bool      // nobody waited for it
}

// held is the credential in use. A new one takes its place; only asked changes.
type held struct {
	Token
	due time.Time // when to renew it
	// look is the instant until which there is nothing to decide. Zero: ever.
	look time.Time
	// asked tells that it was used, and so that its successor will be.
	asked atomic.Bool
}

func (h *held) valid(now time.Time) bool {
	return h.Expires.IsZero() || now.Before(h.Expires)
}

// state is what a Source knows beside the credential.
type state struct {
	closed bool
	ctx    context.Context // of all flights; Close ends it
	stop   context.CancelFunc
	rng    *rand.Rand
	flight *flight     // the fetch in the air
	timer  *time.Timer // starts the next one in the background
	issued time.Time   // of the latest token

	failures int
	failure  *Error    // the latest, until a fetch succeeds
	again    time.Time // no fetch before this
	brake    brake
}

// Renewable tells whether a rejected credential can be replaced. It is false
// for Static, Basic, Query and nil.
func (s *Source) Renewable() bool {
	if s == nil {
		return false
	}
	_, is := s.Fetcher.(fixed)
	return !is
}

// Ready tells whether Current has a credential at now that need not be waited
// for.
func (s *Source) Ready(now time.Time) bool {
	h := s.held.Load()
	return h != nil && h.valid(now) || !s.Renewable()
}

// Current returns the credential. It waits only while there is no valid one.
// Of those who wait each gives up with its own ctx; the fetch goes on for the
// others.
func (s *Source) Current(ctx context.Context) (Token, error) {
	h := s.held.Load()
	if h == nil {
		return s.decide(ctx)
	}
	if h.look.IsZero() {
		return h.Token, nil
	}
	if !h.asked.Load() { // looked at first: a store would fight over the cache line
		h.asked.Store(true)
	}
	if time.Now().Before(h.look) {
		return h.Token, nil
	}
	return s.decide(ctx)
}

// decide is Current for a credential that is missing, due or expired.
func (s *Source) decide(ctx context.Context) (Token, error) {
	s.mu.Lock()
	now := time.Now()
	if h := s.held.Load(); h != nil && h.valid(now) {
		if !now.Before(h.look) {
			s.ahead(now)
		}
		s.mu.Unlock()
		return h.Token, nil
	}
	return s.board(ctx, now)
}

// Renew returns a credential newer than rejected, which the server did not
// accept. One fetch serves all whose credential was rejected, and none is made
// if there is a newer one already. Until it ends Current hands out the old one:
// a 401 may be about one path only, and must not stop everybody.
//
// Credentials that are rejected as soon as they were renewed are not the cause
// of the 401: after a few, Renew fails for a growing time without a fetch.
func (s *Source) Renew(ctx context.Context, rejected Token) (Token, error) {
	if !s.Renewable() {
		return Token{}, ErrFixed
	}
	s.mu.Lock()
	now := time.Now()
	if h := s.held.Load(); h != nil && h.Issued.After(rejected.Issued) && h.valid(now) {
		s.mu.Unlock()
		return h.Token, nil
	}
	if s.state.flight == nil && !s.state.closed && !now.Before(s.state.again) {
		if until := s.state.brake.press(now); now.Before(until) {
			s.mu.Unlock()
			return Token{}, withRetry(errRejected, until)
		}
	}
	return s.board(ctx, now)
}

// board waits for the fetch in the air, or for one of its own. It is called
// with the lock held and releases it.
func (s *Source) board(ctx context.Context, now time.Time) (Token, error) {
	f, err := s.next(ctx, now)
	s.mu.Unlock()
	if err != nil {
		return Token{}, err
	}
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return Token{}, fmt.Errorf("token source: waiting for a credential: %w", ctx.Err())
	}
}

func (s *Source) next(ctx context.Context, now time.Time) (*flight, error) {
	st := &s.state
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("token source: no credential yet: %w", ctx.Err())
	case st.closed:
		return nil, ErrClosed
	case st.flight != nil:
		return st.flight, nil
	case s.Fetcher == nil:
		return nil, errNoFetcher
	case now.Before(st.again):
		return nil, st.failure
	}
	return s.start(false), nil
}

// ahead renews in the background. It is called with the lock held.
func (s *Source) ahead(now time.Time) {
	if st := &s.state; st.flight == nil && !st.closed && !now.Before(st.again) {
		s.start(true)
	}
}

// tick is ahead for the timer.
func (s *Source) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if h := s.held.Load(); h != nil && h.asked.Load() && h.valid(now) {
		s.ahead(now)
	}
}

// Close ends the background work and returns when it has ended. Afterwards
// Current still returns the credential while that is valid, but nothing
// renews it.
func (s *Source) Close() {
	s.mu.Lock()
	st := &s.state
	st.closed = true
	if st.timer != nil {
		st.timer.Stop()
	}
	if st.stop != nil {
		st.stop()
	}
	s.mu.Unlock()
	s.tasks.Wait()
}
