package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// CheckClock is checkClock.
var CheckClock = checkClock

// Sort is sort.
var Sort = sort

// Setting reads a setting of a session of the store.
func (s *Store) Setting(ctx context.Context, name string, to *string) error {
	return s.rows(ctx, "SELECT current_setting($1)", []any{name}, func(r pgx.Rows) error { return r.Scan(to) })
}
