package check_test

import (
	"testing"
	"testing/synctest"

	"github.com/heedproject/heed/check"
)

// graded lets a client loose on cases in a bubble.
func graded(t *testing.T, h habits, o check.Options) *check.Report {
	t.Helper()
	m := newMemory()
	courier := m.transport()
	o.Client = client(h, m)
	o.Network = check.Network{Listen: m.Listen, Courier: courier}
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	courier.CloseIdleConnections()
	return r
}

func TestAClientThatBreaksNoRulePassesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := graded(t, behaved(), check.Options{})
		for _, one := range r.Results {
			if one.Mark != check.Pass {
				t.Errorf("%s: %s: %s", one.ID, one.Mark, one.Cause)
			}
		}
		if r.Grade != "A+" {
			t.Errorf("got %s", r.Grade)
		}
	})
}
