package sqlite

import (
	"context"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// Taken implements queue.Register. Keys that are not filed yet are the writer's
// to know, who need not put anything on the disk for it.
func (s *Store) Taken(ctx context.Context, now time.Time, c *queue.Call) (bool, error) {
	all := prints(s.keys, c)
	if len(all) == 0 {
		return false, nil
	}
	var taken bool
	err := s.hand(ctx, &op{look: true, loose: func() bool { return true }, do: func(b *book) error {
		_, taken = b.before(now, all, true)
		return nil
	}})
	return err == nil && taken, err
}
