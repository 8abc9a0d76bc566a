package github_test

import (
	"strings"
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/github"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	for name, ask := range map[string]func(r *rig) packtest.Answer{
		"nothing left of the hour, with 403": func(r *rig) (w packtest.Answer) {
			for range 61 {
				w = r.Send("GET", issues+"/1", "")
			}
			return w
		},
		"a secondary limit with Retry-After": func(r *rig) (w packtest.Answer) {
			for range 81 {
				w = r.ask("POST", issues, `{"title":"x"}`)
			}
			return w
		},
		"credentials that are wrong": func(r *rig) packtest.Answer { return r.Send("GET", "/user", "", "Authorization: Bearer no") },
		"credentials that were wrong too often": func(r *rig) (w packtest.Answer) {
			for range 11 {
				w = r.Send("GET", "/user", "", "Authorization: Bearer no")
			}
			return w
		},
		"a repository that is not there, or not for us": func(r *rig) packtest.Answer { return r.ask("GET", "/repos/octo/none", "") },
		"an issue that is refused":                      func(r *rig) packtest.Answer { return r.ask("POST", issues, `{}`) },
		"GraphQL with another error": func(r *rig) packtest.Answer {
			w, _ := r.query(`{ repository(owner: "octo", name: "none") { id } }`, nil)
			return w
		},
		"statistics that are being computed": func(r *rig) packtest.Answer { return r.ask("GET", "/repos/octo/heed/stats/contributors", "") },
		"a fork that is being made":          func(r *rig) packtest.Answer { return r.ask("POST", "/repos/octo/heed/forks", "") },
		"a search that ran out of time":      func(r *rig) packtest.Answer { return r.ask("GET", "/search/issues?q=drips", "") },
		"a search":                           func(r *rig) packtest.Answer { return r.ask("GET", "/search/issues?q=repo:octo/heed", "") },
	} {
		got, want := ask(open(t, sim.World{})), packtest.Golden(t, github.Pack(), name)
		if short := packtest.Alike(got, want, "code", "type", "field", "incomplete_results"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
		for _, h := range []string{"X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Resource", "Retry-After", "Link"} {
			// Who is refused for a credential is told of no limit here.
			if want.Header.Get(h) != "" && got.Header.Get(h) == "" && !strings.HasPrefix(name, "credentials ") {
				t.Errorf("%s: got no %s", name, h)
			}
		}
	}
}
