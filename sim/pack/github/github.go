// Package github simulates the REST API of GitHub, and the little of its
// GraphQL that is needed to read and open issues.
//
// What it holds to, from docs.github.com: a primary limit for each resource,
// core 5,000 an hour, search 30 and code search 10 a minute, GraphQL 5,000
// points an hour, and for those without a token 60 an hour and 10 a minute;
// 403 with X-RateLimit-Remaining: 0 when it is used up; secondary limits of 100
// requests at once, 900 reads and 180 writes a minute, 80 new issues and
// comments a minute, 2,000 points of GraphQL a minute, answered with 403 and
// Retry-After while much may be left of the primary limit, and with a ban for
// those who go on; a conditional request that is answered with 304 costs a
// caller with a token nothing; pages by Link; a search that ends at 1,000
// results; 202 for what is still being computed; a credential that was wrong
// too often shuts all of them out for a while. In GraphQL a throttle is 200.
//
// Webhooks are registered per repository, signed with X-Hub-Signature-256, and
// sent once; in the simulator each hears of all repositories.
//
// Chosen here: a search that names no repo: runs out of time and is incomplete,
// statistics and forks take 2 s, ten wrong credentials in a minute are too
// often. There is one repository at first, octo/heed, with 65 issues.
package github

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "github",
		Access:     "Authorization: Bearer TOKEN that begins with ghp_, gho_, ghu_, ghs_ or github_pat_; without one GET works, writes and /user are 401; ten wrong ones are 403 for all",
		Hosts:      []string{"api.github.com"},
		Dialect:    sim.Dialect{Refuse: refuse, Tell: tell, Envelope: envelope},
		Limits:     limits,
		Credential: credential,
		Authorize:  authorize,
		Webhooks:   sim.Webhooks{Sign: sim.SignGitHub, Retries: []time.Duration{}, Events: []string{"issues", "issue_comment"}}, // it never repeats by itself
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "revoked").Put(x.Credential(), true) },
		Operations: []sim.Operation{
			{Name: "rate_limit.get", Route: "GET /rate_limit", Do: rateLimit, Free: true},
			read("user.get", "/user", getUser),
			read("user.repos", "/user/repos", listRepos),
			write("repos.create", "POST /user/repos", createRepo),
			read("repos.get", "/repos/{owner}/{repo}", getRepo),
			write("repos.fork", "POST /repos/{owner}/{repo}/forks", fork),
			read("repos.contributors", "/repos/{owner}/{repo}/stats/contributors", contributors),
			read("issues.list", "/repos/{owner}/{repo}/issues", listIssues),
			write("issues.create", "POST /repos/{owner}/{repo}/issues", createIssue),
			read("issues.get", "/repos/{owner}/{repo}/issues/{number}", getIssue),
			write("issues.update", "PATCH /repos/{owner}/{repo}/issues/{number}", updateIssue),
			read("comments.list", "/repos/{owner}/{repo}/issues/{number}/comments", listComments),
			write("comments.create", "POST /repos/{owner}/{repo}/issues/{number}/comments", createComment),
			read("hooks.list", "/repos/{owner}/{repo}/hooks", listHooks),
			write("hooks.create", "POST /repos/{owner}/{repo}/hooks", createHook),
			write("hooks.delete", "DELETE /repos/{owner}/{repo}/hooks/{id}", deleteHook),
			read("search.issues", "/search/issues", searchIssues),
			read("search.code", "/search/code", searchCode),
			{Name: "graphql.query", Route: "POST /graphql", Do: query, CostOf: queryCost},
		},
	}
}

// read is an operation that can be asked under the condition that something
// changed.
func read(name, path string, do func(*sim.Exchange) sim.Answer) sim.Operation {
	return sim.Operation{Name: name, Route: "GET " + path, Do: conditional(do), CostOf: readCost(do)}
}

func write(name, route string, do func(*sim.Exchange) sim.Answer) sim.Operation {
	return sim.Operation{Name: name, Route: route, Do: do, CostOf: share}
}

// resource is the primary limit that counts x.
func resource(x *sim.Exchange) string {
	switch {
	case x.Path == "/graphql":
		return "graphql"
	case x.Path == "/search/code":
		return "code_search"
	case strings.HasPrefix(x.Path, "/search/"):
		return "search"
	}
	return "core"
}

// Capacities of the primary limits, with a token.
const (
	perHour   = 5000
	perMinute = 30
)

// The primary limits bear the names that X-RateLimit-Resource gives; all
// others are secondary.
var limits = append([]rate.Limit{
	{Name: "core", Kind: rate.FixedWindow, Capacity: perHour, Window: time.Hour, Weighted: true,
		Routes: []string{"* /user/**", "* /repos/**"}},
	{Name: "search", Kind: rate.FixedWindow, Capacity: perMinute, Window: time.Minute, Weighted: true, Routes: []string{"GET /search/issues"}},
	{Name: "code_search", Kind: rate.FixedWindow, Capacity: 10, Window: time.Minute, Weighted: true, Routes: []string{"GET /search/code"}},
	{Name: "graphql", Kind: rate.FixedWindow, Capacity: perHour, Window: time.Hour, Weighted: true, Routes: []string{"POST /graphql"}},
}, secondary...)

// ban is for those who go on after a secondary limit.
var ban = rate.Penalty{First: time.Minute, Max: 8 * time.Minute, Grace: time.Second, BanAfter: 10, BanFor: time.Hour}

var secondary = []rate.Limit{
	{Name: "requests at once", Kind: rate.Concurrency, Capacity: 100},
	{Name: "reads", Kind: rate.SlidingWindow, Capacity: 900, Window: time.Minute, Routes: []string{"GET /**"}, Penalty: ban},
	{Name: "writes", Kind: rate.SlidingWindow, Capacity: 180, Window: time.Minute, Penalty: ban,
		Routes: []string{"POST /user/**", "POST /repos/**", "PATCH /repos/**", "DELETE /repos/**"}},
	{Name: "content", Kind: rate.SlidingWindow, Capacity: 80, Window: time.Minute, Penalty: ban,
		Routes: []string{"POST /repos/{owner}/{repo}/issues", "POST /repos/{owner}/{repo}/issues/{number}/comments"}},
	{Name: "points of GraphQL", Kind: rate.SlidingWindow, Capacity: 2000, Window: time.Minute, Weighted: true, Penalty: ban,
		Routes: []string{"POST /graphql"}},
}

// primary tells whether a limit has its name in headers.
func primary(l *rate.Limit) bool {
	switch l.Name {
	case "core", "search", "code_search", "graphql":
		return true
	}
	return false
}

// share is what a request costs.
func share(x *sim.Exchange) float64 { return unit(x, resource(x)) }

// unit is what a request costs at a limit: without a token so much that 60 an
// hour and 10 a minute use it up.
func unit(x *sim.Exchange, name string) float64 {
	switch {
	case x.Credential() != "":
		return 1
	case strings.HasSuffix(name, "search"):
		return perMinute / 10
	}
	return perHour / 60
}

// tell tells of the primary limit that counts x.
func tell(x *sim.Exchange, an *sim.Answer, told []rate.Told) {
	name := resource(x)
	for _, t := range told {
		if t.Limit.Name != name {
			continue
		}
		s := inRequests(x, t)
		an.Set("X-RateLimit-Limit", strconv.Itoa(s.Limit))
		an.Set("X-RateLimit-Remaining", strconv.Itoa(s.Remaining))
		an.Set("X-RateLimit-Used", strconv.Itoa(s.Used))
		an.Set("X-RateLimit-Reset", strconv.FormatInt(s.Reset, 10))
		an.Set("X-RateLimit-Resource", name)
	}
}

// inRequests is what is left of a limit, in requests of this caller.
func inRequests(x *sim.Exchange, t rate.Told) shown {
	one := unit(x, t.Limit.Name)
	most, rest := int(t.Capacity/one), int(t.Remaining/one)
	return shown{most, most - rest, rest, t.End(x.Now()).Unix()}
}

// shown is what GET /rate_limit tells of one resource.
type shown struct {
	Limit     int   `json:"limit"`
	Used      int   `json:"used"`
	Remaining int   `json:"remaining"`
	Reset     int64 `json:"reset"`
}

// rateLimit tells of all resources, and costs nothing.
func rateLimit(x *sim.Exchange) sim.Answer {
	resources := map[string]shown{}
	for _, name := range []string{"core", "search", "code_search", "graphql"} {
		if t, ok := x.Left(name); ok {
			resources[name] = inRequests(x, t)
		}
	}
	return sim.JSON(200, struct {
		Resources map[string]shown `json:"resources"`
		Rate      shown            `json:"rate"`
	}{resources, resources["core"]})
}

// trouble is how GitHub tells errors.
type trouble struct {
	Message string  `json:"message"`
	Errors  []fault `json:"errors,omitempty"`
	Docs    string  `json:"documentation_url"`
	Status  string  `json:"status"`
}

// fault is one field that is not valid.
type fault struct {
	Resource string `json:"resource"`
	Field    string `json:"field"`
	Code     string `json:"code"`
}

const docs = "https://docs.github.com/rest"

func failed(status int, message, page string) sim.Answer {
	return sim.JSON(status, trouble{Message: message, Docs: docs + page, Status: strconv.Itoa(status)})
}

// invalid is 422 for one field.
func invalid(resource, field, code string) sim.Answer {
	return sim.JSON(422, trouble{Message: "Validation Failed", Errors: []fault{{resource, field, code}}, Docs: docs, Status: "422"})
}

// messages are the words for a kind.
var messages = map[sim.Kind]string{
	sim.NotFound: "Not Found", sim.Failed: "Server Error", sim.Overloaded: "Service unavailable", sim.BadRequest: "Problems parsing JSON",
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	switch r.Kind {
	case sim.Throttled, sim.Banned:
		return throttled(x, r)
	case sim.Unknown, sim.WrongMethod:
		an := failed(r.StatusOr(r.Kind.DefaultStatus()), "Not Found; there are: "+strings.Join(r.Operations, ", "), "")
		if r.Allow != nil {
			an.Set("Allow", strings.Join(r.Allow, ", "))
		}
		return an
	}
	message, ok := messages[r.Kind]
	if !ok {
		message = r.Detail
	}
	an := failed(r.StatusOr(r.Kind.DefaultStatus()), message, "")
	sim.RetryAfter(x, &an, r)
	return an
}

// throttled tells a primary limit in its own words, and a secondary one by
// them and by Retry-After.
func throttled(x *sim.Exchange, r sim.Refusal) sim.Answer {
	switch {
	case r.Limit == nil || !primary(r.Limit):
		an := failed(r.StatusOr(http.StatusForbidden), "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
			"/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits")
		sim.RetryAfter(x, &an, r)
		return an
	case r.Limit.Name == "graphql":
		return sim.JSON(r.StatusOr(http.StatusOK), struct {
			Data   any      `json:"data"`
			Errors []ailing `json:"errors"`
		}{nil, []ailing{{Type: "RATE_LIMITED", Message: "API rate limit exceeded for user ID 1."}}})
	case x.Credential() == "":
		return failed(r.StatusOr(http.StatusForbidden), "API rate limit exceeded for 127.0.0.1. (But here's the good news: Authenticated requests get a higher rate limit.)",
			"/overview/rate-limits-for-the-rest-api")
	}
	return failed(r.StatusOr(http.StatusForbidden), "API rate limit exceeded for user ID 1.", "/overview/rate-limits-for-the-rest-api")
}

// envelope is a GraphQL error, which has no status of its own.
func envelope(*sim.Exchange) sim.Answer {
	return sim.JSON(http.StatusOK, struct {
		Data   any      `json:"data"`
		Errors []ailing `json:"errors"`
	}{nil, []ailing{{Type: "INTERNAL", Message: "Something went wrong while executing your query."}}})
}
