package policy_test

import (
	"fmt"
	"time"

	"github.com/heedproject/heed/policy"
)

func ExamplePolicy_Validate() {
	p := policy.Policy{
		Retry:   policy.Retry{Budget: -time.Second},
		Backoff: policy.Backoff{Formula: "linear"},
	}
	for _, problem := range p.Validate() {
		fmt.Println(problem.Path)
	}
	// Output:
	// retry.budget
	// backoff.formula
}

func ExamplePolicy_WithDefaults() {
	p := policy.Policy{Retry: policy.Retry{Budget: 5 * time.Minute}}.WithDefaults()
	fmt.Println(p.Retry.Budget, p.Retry.Ceiling, p.Backoff.Formula, p.Breaker.Consecutive, p.Key.Methods)
	// Output: 5m0s 5m0s full 10 [POST PATCH]
}

func ExampleMatch() {
	fmt.Println(policy.Match("/v1/*/items", "/v1/a/items"), policy.Match("/v1/*", "/v1/a/items"), policy.Match("/v1/**", "/v1/a/items"))
	// Output: true false true
}
