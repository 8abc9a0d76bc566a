package check_test

import (
	"context"
	"fmt"

	"github.com/heedproject/heed/check"
)

// A client that tries once and claims nothing more.
func ExampleRun() {
	report, err := check.Run(context.Background(), check.Options{Client: check.Bare(check.Writes), Only: []string{"transient/unkeyed-503-503"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Results {
		fmt.Println(r.ID, r.Mark)
	}
	// Output: transient/unkeyed-503-503 pass
}
