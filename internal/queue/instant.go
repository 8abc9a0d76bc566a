package queue

import (
	"math"
	"time"
)

// Nanos is an instant as stores keep it: nanoseconds since 1970, 0 for none.
// They reach from 1678 to 2262. What lies beyond is the first or the last of
// them: one that is far ahead must not come round as one that is long past.
func Nanos(t time.Time) int64 {
	switch n := t.UnixNano(); {
	case t.IsZero():
		return 0
	case t.After(last):
		return last.UnixNano()
	case t.Before(first):
		return first.UnixNano()
	case n == 0: // 1970 itself is an instant
		return 1
	default:
		return n
	}
}

// A year is left at both ends for what is added and taken off.
var (
	first = time.Unix(0, math.MinInt64).AddDate(1, 0, 0)
	last  = time.Unix(0, math.MaxInt64).AddDate(-1, 0, 0)
)
