package backoff_test

import (
	"fmt"
	"time"

	"github.com/heedproject/heed/backoff"
	"github.com/heedproject/heed/policy"
)

func ExampleWait() {
	b := policy.Backoff{Formula: policy.Exponential, Base: time.Second, Cap: 5 * time.Second}
	var prev time.Duration
	for n := range 4 {
		prev = backoff.Wait(b, n, prev, nil) // this formula draws nothing
		fmt.Println(prev)
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 5s
}
