// Package jira simulates the REST API of Jira Cloud, version 3: issues to
// make, change, move and search, one at a time or many, for whoever has an API
// token or an access token of OAuth 2.0.
//
// What it holds to, from developer.atlassian.com: a burst limit for every
// endpoint and method, 100/s for GET and POST, 50/s for PUT and DELETE; 20
// writes in 2 s and 100 in 30 s to one issue; for OAuth apps alone points of
// the hour, over all tenants and in one; 429 with Retry-After, RateLimit-Reason
// and, where an hour must end, X-RateLimit-Reset as a date; RateLimit and
// RateLimit-Policy as structured fields, without r as long as much is left.
// /search/jql has nextPageToken and isLast and no total, refuses a query
// without a restriction, and gives ids alone unless fields= asks for more; the
// older /search is gone, with 410. An access token lives an hour, and a refresh
// token can be used once.
//
// Chosen here, for want of a documented number: a request costs one point, a
// bulk one for each issue. The three projects are HEED, OPS and DOC; HEED has
// 120 issues at first. JQL knows project, status, key, assignee, labels and
// summary, with =, !=, ~ and AND, and ORDER BY created or key.
package jira

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

const base = "/rest/api/3"

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "jira",
		Access:     "Basic authentication with an email address and any API token, or Bearer with a token of POST /oauth/token; 401 without",
		Hosts:      []string{"atlassian.net", "api.atlassian.com", "auth.atlassian.com"},
		Dialect:    sim.Dialect{Refuse: refuse, Quota: quota, Envelope: envelope},
		Limits:     limits(),
		Authorize:  authorize,
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "expired").Put(x.Credential(), true) },
		Operations: operations,
	}
}

var operations = []sim.Operation{
	{Name: "oauth.token", Route: "POST /oauth/token", Do: giveToken, Free: true},
	{Name: "myself.get", Route: "GET " + base + "/myself", Do: myself, CostOf: points},
	{Name: "projects.search", Route: "GET " + base + "/project/search", Do: searchProjects, CostOf: points},
	{Name: "issues.create", Route: "POST " + base + "/issue", Do: createIssue, CostOf: points},
	{Name: "issues.create_bulk", Route: "POST " + base + "/issue/bulk", Do: createIssues, CostOf: pointsPerIssue},
	{Name: "issues.get", Route: "GET " + base + "/issue/{id}", Do: getIssue, CostOf: points},
	{Name: "issues.edit", Route: "PUT " + base + "/issue/{id}", Do: editIssue, CostOf: points},
	{Name: "issues.delete", Route: "DELETE " + base + "/issue/{id}", Do: deleteIssue, CostOf: points},
	{Name: "transitions.list", Route: "GET " + base + "/issue/{id}/transitions", Do: listTransitions, CostOf: points},
	{Name: "transitions.do", Route: "POST " + base + "/issue/{id}/transitions", Do: doTransition, CostOf: points},
	{Name: "comments.list", Route: "GET " + base + "/issue/{id}/comment", Do: listComments, CostOf: points},
	{Name: "comments.create", Route: "POST " + base + "/issue/{id}/comment", Do: createComment, CostOf: points},
	{Name: "search.get", Route: "GET " + base + "/search/jql", Do: searchGet, CostOf: points},
	{Name: "search.post", Route: "POST " + base + "/search/jql", Do: searchPost, CostOf: points},
	{Name: "search.count", Route: "POST " + base + "/search/approximate-count", Do: count, CostOf: points},
	{Name: "search.removed", Route: "GET " + base + "/search", Do: removed, CostOf: points},
	{Name: "bulk.delete", Route: "POST " + base + "/bulk/issues/delete", Do: bulkDelete, CostOf: pointsPerIssue},
	{Name: "bulk.progress", Route: "GET " + base + "/bulk/queue/{task}", Do: progress, CostOf: points},
}

// The reasons that RateLimit-Reason gives; the limits bear their names.
const (
	burst    = "jira-burst-based"
	oneIssue = "jira-per-issue-on-write"
	appHour  = "jira-quota-global-based"
	siteHour = "jira-quota-tenant-based"
)

// limits has a burst limit for each endpoint and method, and those that many
// share.
func limits() []rate.Limit {
	writes := []string{"PUT " + base + "/issue/{id}", "DELETE " + base + "/issue/{id}",
		"POST " + base + "/issue/{id}/transitions", "POST " + base + "/issue/{id}/comment"}
	all := []rate.Limit{
		{Name: oneIssue, Kind: rate.SlidingWindow, Capacity: 20, Window: 2 * time.Second, Scope: rate.PathValue, Value: "id", Routes: writes},
		{Name: oneIssue, Kind: rate.SlidingWindow, Capacity: 100, Window: 30 * time.Second, Scope: rate.PathValue, Value: "id", Routes: writes},
		{Name: appHour, Kind: rate.FixedWindow, Capacity: 65_000, Window: time.Hour, Weighted: true, Scope: rate.Everyone},
		{Name: siteHour, Kind: rate.FixedWindow, Capacity: 100_000, Window: time.Hour, Weighted: true},
	}
	for _, o := range operations {
		l := rate.Limit{Name: burst, Kind: rate.TokenBucket, Capacity: 100, Refill: 100, Routes: []string{o.Route}}
		if strings.HasPrefix(o.Route, "PUT ") || strings.HasPrefix(o.Route, "DELETE ") {
			l.Capacity, l.Refill = 50, 50
		}
		if !o.Free {
			all = append(all, l)
		}
	}
	return all
}

// points are counted for apps, which have access tokens; API tokens have burst
// limits alone.
func points(x *sim.Exchange) float64 {
	if strings.HasPrefix(x.Credential(), "Bearer ") {
		return 1
	}
	return 0
}

func pointsPerIssue(x *sim.Exchange) float64 {
	var b struct {
		Updates []struct{} `json:"issueUpdates"`
		Keys    []string   `json:"selectedIssueIdsOrKeys"`
	}
	_ = x.Decode(&b) // what cannot be read is refused by the operation, and costs as one
	return points(x) * float64(max(len(b.Updates), len(b.Keys), 1))
}

// near is the part of a quota below which headers become explicit.
const near = 0.2

// names of the quotas in RateLimit.
var names = map[string]string{appHour: "global-app-quota", siteHour: "tenant-app-quota"}

// quota tells of the burst limit or the quota of which least is left, and of
// the quotas if the caller is an app.
func quota(an *sim.Answer, told []rate.Told) {
	var least rate.Told
	var policies, left []string
	app, tight := false, false
	for _, t := range told {
		app = app || t.Limit.Name == siteHour && t.Used > 0
	}
	for _, t := range told {
		name := names[t.Limit.Name]
		if t.Limit.Name == oneIssue || name != "" && !app {
			continue
		}
		if least.Limit == nil || t.Remaining*least.Capacity < least.Remaining*t.Capacity {
			least = t
		}
		if name == "" {
			continue
		}
		policies = append(policies, `"`+name+`";q=`+whole(t.Capacity)+";w="+sim.WholeSeconds(t.Limit.Window))
		field := `"` + name + `"`
		if t.Remaining < near*t.Capacity {
			field, tight = field+";r="+whole(t.Remaining), true
		}
		left = append(left, field+";t="+sim.WholeSeconds(t.Reset))
	}
	if least.Limit != nil {
		an.Set("X-RateLimit-Limit", whole(least.Capacity))
		an.Set("X-RateLimit-Remaining", whole(least.Remaining))
	}
	if left != nil {
		an.Set("RateLimit-Policy", strings.Join(policies, ", "))
		an.Set("RateLimit", strings.Join(left, ", "))
	}
	if tight {
		an.Set("X-RateLimit-NearLimit", "true")
	}
}

func whole(f float64) string { return strconv.Itoa(int(f)) }

// trouble is how Jira tells errors.
type trouble struct {
	Messages []string          `json:"errorMessages"`
	Errors   map[string]string `json:"errors"`
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	if r.Kind == sim.Unauthorized {
		return sim.JSON(r.StatusOr(http.StatusUnauthorized), struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{http.StatusUnauthorized, "Unauthorized; " + r.Detail})
	}
	t := trouble{[]string{}, map[string]string{}}
	switch {
	case r.Field != "":
		t.Errors[r.Field] = r.Detail
	case r.Operations != nil:
		t.Messages = append(t.Messages, r.Detail+"; there are: "+strings.Join(r.Operations, ", "))
	default:
		t.Messages = append(t.Messages, r.Detail)
	}
	an := sim.JSON(r.StatusOr(r.Kind.DefaultStatus()), t)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	sim.RetryAfter(x, &an, r)
	if r.Kind == sim.Throttled {
		throttle(x, &an, r)
	}
	return an
}

// throttle adds why, and for quotas of the hour until when.
func throttle(x *sim.Exchange, an *sim.Answer, r sim.Refusal) {
	reason := burst
	if r.Limit != nil && strings.HasPrefix(r.Limit.Name, "jira-") {
		reason = r.Limit.Name
	}
	an.Set("RateLimit-Reason", reason)
	if reason == appHour || reason == siteHour {
		an.Set("X-RateLimit-Reset", x.Now().Add(r.Wait).UTC().Format(time.RFC3339))
	}
}

// envelope is what a caller gets who asks a site that is not there: its login
// page.
func envelope(*sim.Exchange) sim.Answer {
	return sim.Text(http.StatusOK, "text/html;charset=UTF-8",
		"<!DOCTYPE html><html><head><title>Log in with Atlassian account</title></head><body></body></html>\n")
}
