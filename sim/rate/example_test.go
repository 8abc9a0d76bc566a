package rate_test

import (
	"fmt"
	"time"

	"github.com/heedproject/heed/sim/rate"
)

func ExampleMeter() {
	l := rate.Limit{Name: "requests", Capacity: 2, Refill: 1} // a token bucket, one a second
	var m rate.Meter
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for range 3 {
		wait := m.Ask(&l, now, 1)
		if wait == 0 {
			m.Spend(&l, now, 1)
		}
		fmt.Println(wait)
	}
	// Output:
	// 0s
	// 0s
	// 1s
}
