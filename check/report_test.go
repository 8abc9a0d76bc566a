package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/check"
)

func TestAGradeIsThinWhereLessThanHalfOfWhatAppliesWasSeen(t *testing.T) {
	results := func(weights map[check.Mark]int) (all []check.Result) {
		for mark, weight := range weights {
			all = append(all, check.Result{Mark: mark, Weight: weight})
		}
		return all
	}
	for _, one := range []struct {
		name    string
		weights map[check.Mark]int
		want    check.Grade
	}{
		{"most was seen", map[check.Mark]int{check.Pass: 3, check.Fail: 1, check.Unknown: 4, check.NA: 90},
			check.Grade{Grade: "C", Score: 0.75, Passed: 1, Failed: 1, Unknown: 1, NA: 1}},
		{"little was seen", map[check.Mark]int{check.Pass: 2, check.Unknown: 6},
			check.Grade{Grade: "A+", Score: 1, Passed: 1, Unknown: 1, Thin: true}},
		{"nothing was seen", map[check.Mark]int{check.Unknown: 6}, check.Grade{Grade: "-", Unknown: 1}},
	} {
		if diff := cmp.Diff(check.Sum(results(one.weights)), one.want); diff != "" {
			t.Errorf("%s: %s", one.name, diff)
		}
	}
}
