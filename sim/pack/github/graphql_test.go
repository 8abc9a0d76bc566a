package github_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/rate"
)

type answer struct {
	Data struct {
		Repository *struct {
			Issues struct {
				TotalCount int
				Nodes      []issue
				PageInfo   struct {
					HasNextPage bool
					EndCursor   string
				}
			}
			Issue issue
			ID    string
		}
		CreateIssue struct{ Issue issue }
		RateLimit   struct {
			Cost, Remaining, Limit int
			ResetAt                string
		}
	}
	Errors []struct{ Type, Message string }
}

func (r *rig) query(text string, variables map[string]any) (packtest.Answer, answer) {
	r.T.Helper()
	body, err := json.Marshal(map[string]any{"query": text, "variables": variables})
	if err != nil {
		r.T.Fatal(err)
	}
	w := r.ask("POST", "/graphql", string(body))
	var a answer
	w.Into(&a)
	return w, a
}

func TestGraphQLReadsIssuesPageByPage(t *testing.T) {
	r := open(t, sim.World{})
	const q = `query($after: String) { repository(owner: "octo", name: "heed") {
		issues(first: 50, after: $after) { totalCount nodes { number title } pageInfo { hasNextPage endCursor } } } }`
	_, first := r.query(q, nil)
	_, second := r.query(q, map[string]any{"after": first.Data.Repository.Issues.PageInfo.EndCursor})
	a, b := first.Data.Repository.Issues, second.Data.Repository.Issues
	if a.TotalCount != 65 || len(a.Nodes) != 50 || !a.PageInfo.HasNextPage || len(b.Nodes) != 15 || b.PageInfo.HasNextPage {
		t.Errorf("got %d, %d then %d", a.TotalCount, len(a.Nodes), len(b.Nodes))
	}
}

func TestGraphQLOpensAnIssueThatRESTFinds(t *testing.T) {
	r := open(t, sim.World{})
	_, repo := r.query(`{ repository(owner: "octo", name: "heed") { id } }`, nil)
	_, made := r.query(`mutation($in: CreateIssueInput!) { createIssue(input: $in) { issue { number title } } }`,
		map[string]any{"in": map[string]any{"repositoryId": repo.Data.Repository.ID, "title": "A leak"}})
	if n := made.Data.CreateIssue.Issue.Number; n != 66 || r.get(66).Title != "A leak" {
		t.Errorf("got %+v", made)
	}
}

func TestGraphQLTellsErrorsIn200(t *testing.T) {
	r := open(t, sim.World{})
	for text, want := range map[string]string{
		`{ repository(owner: "octo", name: "none") { id } }`: "NOT_FOUND Could not resolve",
		`{ viewer { shoes } }`:                               " Field 'shoes' doesn't exist",
		`{ viewer {`:                                         " syntax error",
		`{ repository(owner:"octo",name:"heed") { issues(first: 1000) { nodes { comments(first: 1000) { id } } } } }`: "MAX_NODE_LIMIT_EXCEEDED ",
	} {
		w, a := r.query(text, nil)
		if w.Status != 200 || len(a.Errors) != 1 || !strings.HasPrefix(a.Errors[0].Type+" "+a.Errors[0].Message, want) {
			t.Errorf("%s: got %d %s", text, w.Status, w.Body)
		}
	}
}

func TestAGraphQLThrottleIs200WithATypeAndAReset(t *testing.T) {
	r := open(t, sim.World{
		Limits: []rate.Limit{{Name: "graphql", Kind: rate.FixedWindow, Capacity: 3, Window: time.Hour, Weighted: true, Routes: []string{"POST /graphql"}}},
		Clock:  sim.Clock{Start: packtest.Noon},
	})
	const wide = `{ repository(owner:"octo",name:"heed") { issues(first: 100) { nodes { comments(first: 1) { id } } } } rateLimit { cost remaining limit resetAt } }`
	_, a := r.query(`{ rateLimit { cost remaining limit resetAt } }`, nil)
	if l := a.Data.RateLimit; l.Cost != 1 || l.Remaining != 2 || l.Limit != 3 || l.ResetAt != "2026-11-30T13:00:00Z" {
		t.Errorf("got %+v", l)
	}
	r.query(wide, nil) // 200 nodes: two points
	w, a := r.query(wide, nil)
	if w.Status != 200 || len(a.Errors) != 1 || a.Errors[0].Type != "RATE_LIMITED" || !strings.HasPrefix(quota(w), "graphql 0/3 until ") {
		t.Errorf("got %d %q %s", w.Status, quota(w), w.Body)
	}
}
