package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
	// Tell is told of each call and when it is sent. Nil: nobody.
	Tell func(f Facts, at time.Time)
}

// ReplayMany replays the broken calls that the filter selects, and returns how
// many. Without states in the filter it takes all of them but the unknown
// writes that cannot be repeated without harm: these must be asked for.
func ReplayMany(ctx context.Context, s Many, now time.Time, b Bulk) (int, error) {
	f, chosen := b.Filter, len(b.Filter.States) > 0
	if !chosen {
		f.States = []State{Dead, Quarantined, Unknown}
	}
	n := 0
	for {
		page, err := s.List(ctx, f)
		if err != nil {
			return n, err
		}
		for _, c := range page.Calls {
			if !chosen && c.State == Unknown && !c.Repeatable {
				continue
			}
			at := now.Add(time.Duration(n) * b.Every)
			if !b.Dry {
				err = s.Replay(ctx, now, Replay{ID: c.ID, At: at, Expires: b.Expires})
			}
			if errors.Is(err, ErrState) || errors.Is(err, ErrNotFound) {
				continue // somebody else was quicker
			}
			if err != nil {
				return n, fmt.Errorf("replayed %d calls, then: %w", n, err)
			}
			if n++; b.Tell != nil {
				b.Tell(c, at)
			}
		}
		if f.After = page.Next; f.After == "" {
			return n, nil
		}
	}
}
