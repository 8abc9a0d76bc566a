package call_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

func ExampleCall_Next() {
	p := policy.Policy{Retry: policy.Retry{Budget: time.Minute}}.WithDefaults()
	now, rng := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), rand.New(rand.NewPCG(1, 2))
	c := call.Begin(&p, now, 0, time.Time{})
	c.Method = "GET"
	throttled := classify.Verdict{Class: classify.Throttled, Executed: classify.No, Retry: classify.Any}

	c.Attempts++
	d := c.Next(now, throttled, hint.Hint{Wait: 20 * time.Second, HasWait: true}, rng)
	fmt.Println(d.Action == call.Again, d.Source, d.Delay.Round(2*time.Second))

	now = d.At
	c.Attempts++
	d = c.Next(now, throttled, hint.Hint{Wait: 50 * time.Second, HasWait: true}, rng)
	fmt.Println(d.Action == call.End, d.Reason)
	// Output:
	// true retry_after 20s
	// true quota-wait-exceeds-deadline
}
