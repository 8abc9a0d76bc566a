package check_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/check"
)

func TestHowAFleetSpreadsIsNotJudgedOnAMachineThatWakesItLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cases := check.All()
		for i := range cases {
			judge := cases[i].Judge
			cases[i].Judge = func(e *check.Evidence) check.Verdict { e.Late = 200 * time.Millisecond; return judge(e) }
		}
		r := graded(t, behaved(), check.Options{Cases: cases, Only: []string{"fleet"}})
		for _, one := range r.Results {
			if one.Mark != check.Unknown || !strings.Contains(one.Cause, "wakes sleepers up to 200 ms late") {
				t.Errorf("%s: got %s: %s", one.ID, one.Mark, one.Cause)
			}
		}
	})
}
