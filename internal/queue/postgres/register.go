package postgres

import (
	"context"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// Taken implements queue.Register.
func (s *Store) Taken(ctx context.Context, now time.Time, c *queue.Call) (bool, error) {
	var prints [][]byte
	for _, d := range s.keys.Prints(c) {
		prints = append(prints, d.Key)
	}
	taken := false
	if len(prints) == 0 {
		return false, nil
	}
	err := s.rows(ctx, "SELECT id FROM taken WHERE print = ANY($1) AND until > $2 LIMIT 1", []any{prints, nanos(now)}, func(pgx.Rows) error {
		taken = true
		return nil
	})
	return taken, err
}
