package token

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heedproject/heed/backoff"
	"github.com/heedproject/heed/policy"
)

// pauses is how long an issuer is left alone after a failed fetch. Equal
// jitter never asks again at once.
var pauses = policy.Backoff{Formula: policy.Equal, Base: time.Second, Cap: 30 * time.Second}

// soonest is the least time between two fetches of a credential that is due:
// an issuer that hands out what it has cached may give it a life of nothing.
const soonest = time.Second

// flight is one fetch and those who wait for it.
type flight struct {
	background bool
	old        Token
	done       chan struct{} // closed when token and err are there
	token      Token
	err        error
}

// start begins a fetch. It is called with the lock held.
func (s *Source) start(background bool) *flight {
	st := &s.state
	if st.ctx == nil {
		st.ctx, st.stop = context.WithCancel(context.Background())
		st.rng = newRand(s.Seed)
	}
	if st.timer != nil {
		st.timer.Stop()
	}
	f := &flight{background: background, done: make(chan struct{})}
	if h := s.held.Load(); h != nil {
		f.old = h.Token
		s.lookAt(h, h.Expires)
	}
	st.flight = f
	s.tasks.Go(func() { s.fly(f) })
	return f
}

func newRand(seed uint64) *rand.Rand {
	if seed == 0 {
		seed = rand.Uint64()
	}
	return rand.New(rand.NewPCG(seed, 0x746f6b656e)) // the stream's name: token
}

// lookAt tells Current when there is something to decide about h again: at t,
// or when h expires.
func (s *Source) lookAt(h *held, t time.Time) {
	if h.Expires.Before(t) {
		t = h.Expires
	}
	next := &held{Token: h.Token, due: h.due, look: t}
	next.asked.Store(h.asked.Load())
	s.held.Store(next)
}

// fly fetches, and lands whatever the Fetcher does.
func (s *Source) fly(f *flight) {
	began := time.Now().Round(0)
	token, err := Token{}, errExit
	defer func() { s.land(f, began, token, err) }()
	token, err = s.fetch(f.old)
}

func (s *Source) fetch(old Token) (t Token, err error) {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(s.state.ctx, timeout, errSlow)
	defer cancel()
	defer func() {
		if thrown := recover(); thrown != nil {
			err = panicked(thrown)
		}
	}()
	return s.Fetcher.Fetch(ctx, old)
}

// land makes the outcome known: to Current, to those who wait, to OnRenew.
func (s *Source) land(f *flight, began time.Time, t Token, err error) {
	s.mu.Lock()
	now := time.Now()
	if err == nil {
		t, err = s.dated(t, began, now)
	}
	s.state.flight = nil
	if err == nil {
		s.accept(t, now, !f.background)
		f.token = t
	} else {
		f.err = s.refuse(err, now)
	}
	s.mu.Unlock()
	close(f.done)
	if s.OnRenew != nil {
		s.OnRenew(Renewal{At: now, Expires: f.token.Expires, Err: f.err, Background: f.background})
	}
}

// dated bounds the life of t. Its instants are wall-clock time alone, because
// the monotonic clock stands still while a machine sleeps and the credential
// ages all the same.
func (s *Source) dated(t Token, began, now time.Time) (Token, error) {
	if t.Issued.IsZero() {
		t.Issued = began
	}
	if last := s.state.issued; !t.Issued.After(last) {
		t.Issued = last.Add(1)
	}
	if t.Expires.IsZero() && s.Lifetime > 0 {
		t.Expires = began.Add(s.Lifetime)
	}
	t.Issued, t.Expires = t.Issued.Round(0), t.Expires.Round(0)
	if !t.Expires.IsZero() && !now.Before(t.Expires) {
		return Token{}, errExpired
	}
	return t, nil
}

// accept puts t in place of the credential before it.
func (s *Source) accept(t Token, now time.Time, asked bool) {
	st := &s.state
	st.failures, st.failure, st.again, st.issued = 0, nil, time.Time{}, t.Issued
	h := &held{Token: t}
	h.asked.Store(asked)
	if !t.Expires.IsZero() {
		h.due = s.due(t, now)
		h.look = h.due
		s.wake(h.due.Sub(now))
	}
	s.held.Store(h)
}

// due is when to renew t.
func (s *Source) due(t Token, now time.Time) time.Time {
	share, jitter := s.RefreshAt, s.Jitter
	if share <= 0 {
		share = 0.8
	}
	if jitter == 0 {
		jitter = 0.02
	}
	share += max(jitter, 0) * (2*s.state.rng.Float64() - 1)
	life := t.Expires.Sub(t.Issued)
	due := t.Issued.Add(time.Duration(math.Round(min(max(share, 0), 1) * float64(life))))
	if first := now.Add(soonest).Round(0); due.Before(first) {
		due = first
	}
	if t.Expires.Before(due) {
		return t.Expires
	}
	return due
}

// refuse notes the failure and leaves the issuer alone for a while.
func (s *Source) refuse(err error, now time.Time) error {
	st := &s.state
	if st.closed {
		return ErrClosed
	}
	again := now.Add(backoff.Wait(pauses, st.failures, 0, st.rng))
	if e, ok := errors.AsType[*Error](err); ok && e.RetryAt.After(again) {
		again = e.RetryAt
	}
	st.failures++
	st.failure, st.again = withRetry(err, again), again
	if h := s.held.Load(); h != nil && !h.look.IsZero() && h.valid(now) {
		next := again
		if h.due.After(next) {
			next = h.due
		}
		s.lookAt(h, next.Round(0))
		s.wake(next.Sub(now))
	}
	return st.failure
}

// wake sets the timer for a renewal in the background.
func (s *Source) wake(after time.Duration) {
	st := &s.state
	if st.closed {
		return
	}
	if st.timer == nil {
		st.timer = time.AfterFunc(after, s.tick)
		return
	}
	st.timer.Reset(after)
}

// brake slows renewals that do not help.
type brake struct {
	count int       // renewals in a row, each soon after the one before
	last  time.Time // the latest
}

var errRejected error = why("credentials are rejected as soon as they are renewed: check what they may be used for, and the clocks")

// The brake lets a few renewals through at any pace, then spaces them.
const (
	freeRenewals = 3
	brakeMax     = time.Minute
)

// press counts a renewal at now, unless it must wait for the returned instant.
func (b *brake) press(now time.Time) time.Time {
	if b.count > 0 && now.Sub(b.last) >= brakeMax {
		b.count = 0
	}
	if b.count >= freeRenewals {
		pause := min(time.Second<<min(b.count-freeRenewals, 10), brakeMax)
		if until := b.last.Add(pause); now.Before(until) {
			return until
		}
	}
	b.count, b.last = b.count+1, now
	return time.Time{}
}
