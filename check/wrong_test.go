package check_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/check"
)

// wrong is a client that breaks one rule.
type wrong struct {
	name string
	// breaks replaces one habit of the client that behaves. Claims may go with it.
	breaks func(h *habits)
	// fails are the cases of the rule, as path.Match has them: these and no others
	// must be failed.
	fails []string
}

// everything is the whole matrix.
var everything = check.All()

// wrongs are all of them.
func wrongs() []wrong {
	return slices.Concat(wrongHints(), wrongNumbers(), wrongQuotas(), wrongRetries(), wrongPauses(), wrongBeliefs(),
		wrongWrites(), wrongTimes(), wrongShares(), wrongJobs(), wrongTongues())
}

// drop takes claims away, and what they say.
func (h *habits) drop(claims ...check.Claim) {
	h.Claims = slices.DeleteFunc(h.Claims, func(c check.Claim) bool {
		name, _, _ := strings.Cut(string(c), "=")
		return slices.Contains(claims, check.Claim(name))
	})
}

// meant are the ids of all cases that a wrong client must fail.
func (w wrong) meant(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, pattern := range w.fails {
		before := len(ids)
		for _, c := range everything {
			if ok, err := path.Match(pattern, c.ID); err != nil {
				t.Fatal(err)
			} else if ok && !slices.Contains(ids, c.ID) {
				ids = append(ids, c.ID)
			}
		}
		if len(ids) == before {
			t.Errorf("%q names no case that is not named before", pattern)
		}
	}
	slices.Sort(ids)
	return ids
}

// tried are the groups of cases at which a wrong client is tried: all of them,
// but with the race detector, which takes six times as long, its own and every
// fourth of the others, which change from client to client.
func (w wrong) tried(t *testing.T, at int) (only []string) {
	t.Helper()
	if !raced {
		return nil
	}
	own := w.meant(t)
	groups := 0
	for i, c := range everything {
		if i > 0 && c.Group() == everything[i-1].Group() {
			continue
		}
		groups++
		if (groups+at)%4 == 0 || slices.ContainsFunc(own, func(id string) bool { return strings.HasPrefix(id, c.Group()+"/") }) {
			only = append(only, c.Group())
		}
	}
	return only
}

func TestAClientThatBreaksOneRuleFailsTheCasesOfThatRuleAndNoOthers(t *testing.T) {
	for i, w := range wrongs() {
		t.Run(strings.ReplaceAll(w.name, " ", "-"), func(t *testing.T) {
			want := w.meant(t)
			synctest.Test(t, func(t *testing.T) {
				h := behaved()
				w.breaks(&h)
				r := graded(t, h, check.Options{Only: w.tried(t, i)})
				var got, why []string
				for _, one := range r.Results {
					if one.Mark == check.Fail {
						got = append(got, one.ID)
						why = append(why, fmt.Sprintf("%s: %s", one.ID, one.Cause))
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(got, want); diff != "" {
					t.Errorf("fails (-) where it should (+):\n%s\n%s", diff, strings.Join(why, "\n"))
				}
			})
		})
	}
}

func TestEveryCaseIsFailedByAWrongClient(t *testing.T) {
	failed := map[string]bool{}
	for _, w := range wrongs() {
		for _, id := range w.meant(t) {
			failed[id] = true
		}
	}
	for _, c := range everything {
		if !failed[c.ID] {
			t.Errorf("%s is failed by no wrong client: nothing shows that it judges anything", c.ID)
		}
	}
}
