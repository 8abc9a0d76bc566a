package jira_test

import (
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/jira"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	many := func(n int, ask func() packtest.Answer) (w packtest.Answer) {
		for range n {
			w = ask()
		}
		return w
	}
	for name, ask := range map[string]func(r *rig) packtest.Answer{
		"a burst": func(r *rig) packtest.Answer {
			return many(101, func() packtest.Answer { return r.ask("GET", "/issue/HEED-1", "") })
		},
		"too many writes to one issue": func(r *rig) packtest.Answer {
			return many(21, func() packtest.Answer { return r.ask("PUT", "/issue/HEED-1", `{"fields":{"summary":"x"}}`) })
		},
		"a quota that is far from its end": func(r *rig) packtest.Answer { return r.asApp()("GET", "/issue/HEED-1", "") },
		"many issues, of which one failed": func(r *rig) packtest.Answer {
			return r.ask("POST", "/issue/bulk", `{"issueUpdates":[`+leak+`,{"fields":{}}]}`)
		},
		"many issues": func(r *rig) packtest.Answer {
			return r.ask("POST", "/issue/bulk", `{"issueUpdates":[`+leak+`,`+leak+`]}`)
		},
		"an issue that is refused": func(r *rig) packtest.Answer {
			return r.ask("POST", "/issue", `{"fields":{"project":{"key":"OPS"},"issuetype":{}}}`)
		},
		"a token that is over": func(r *rig) packtest.Answer { return r.Send("GET", base+"/myself", "") },
	} {
		got, want := ask(open(t, sim.World{})), packtest.Golden(t, jira.Pack(), name)
		if short := packtest.Alike(got, want); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
		for _, h := range []string{"RateLimit-Reason", "RateLimit-Policy", "X-RateLimit-Limit"} {
			if want.Header.Get(h) != "" && got.Header.Get(h) == "" {
				t.Errorf("%s: got no %s", name, h)
			}
		}
	}
}

// The login page, which only a step brings about.
func TestTheLoginPageIsLikeItsGoldenExchange(t *testing.T) {
	r := open(t, sim.World{Steps: "issues.get: envelope"})
	want := packtest.Golden(t, jira.Pack(), "the login page of another site")
	if short := packtest.Alike(r.ask("GET", "/issue/HEED-1", ""), want); short != "" {
		t.Errorf("got %s", short)
	}
}
