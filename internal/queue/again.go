package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Doubtful tells that the call is a write of which nobody knows whether it was
// carried out, and that to send it again may do it twice.
func (f *Facts) Doubtful() bool { return f.State == Unknown && !f.Repeatable }

// Admits tells whether a call that is as f says is sent again. It is the one
// place that decides it: stores ask it in the step that sends the call.
func (a *Replay) Admits(f *Facts) error {
	switch {
	case !f.State.Broken() && f.State != Cancelled:
		return fmt.Errorf("replay call %s: it is %s: %w", f.ID, f.State, ErrState)
	case f.Doubtful() && !a.EvenUnknown:
		return fmt.Errorf("replay call %s: it is %s: %w", f.ID, f.State, ErrDoubtful)
	}
	return nil
}

// Many is what a replay of many calls needs of a store.
type Many interface {
	List(ctx context.Context, f Filter) (Page, error)
	Replay(ctx context.Context, now time.Time, again Replay) error
}

// Bulk says which calls are replayed and how fast.
type Bulk struct {
	Filter Filter
	// Every is the time between the first attempts of two calls. 0: at once.
	// It is stored with the calls, so that a restart keeps the pace.
	Every   time.Duration
	Expires time.Time // zero: never
	Dry     bool      // only tell
	// EvenUnknown takes the Doubtful ones too. Without it they are left out,
	// whatever the filter says.
	EvenUnknown bool
	// Tell is told of each call and when it is sent. Nil: nobody.
	Tell func(f Facts, at time.Time)
}

// ReplayMany replays the calls that the filter selects, without states in it
// the broken ones. It returns how many, and how many unknown writes it left out.
func ReplayMany(ctx context.Context, s Many, now time.Time, b Bulk) (did, left int, err error) {
	f := b.Filter
	if len(f.States) == 0 {
		f.States = []State{Dead, Quarantined, Unknown}
	}
	for {
		page, err := s.List(ctx, f)
		if err != nil {
			return did, left, err
		}
		for _, c := range page.Calls {
			again := Replay{ID: c.ID, At: now.Add(time.Duration(did) * b.Every), Expires: b.Expires, EvenUnknown: b.EvenUnknown}
			if err = again.Admits(&c); err == nil && !b.Dry {
				err = s.Replay(ctx, now, again)
			}
			switch {
			case errors.Is(err, ErrDoubtful):
				left++
			case errors.Is(err, ErrState) || errors.Is(err, ErrNotFound):
				// somebody else was quicker
			case err != nil:
				return did, left, fmt.Errorf("replayed %d calls, then: %w", did, err)
			default:
				if did++; b.Tell != nil {
					b.Tell(c, again.At)
				}
			}
		}
		if f.After = page.Next; f.After == "" {
			return did, left, nil
		}
	}
}
