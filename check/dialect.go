package check

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// dialect is how one provider says that nothing is left, without a Retry-After
// that any client would read.
type dialect struct {
	provider, name, title, source string
	wait                          time.Duration
	status                        int
	fields                        func(now time.Time) [][2]string
	body                          string
}

// dialects are forms that a client must know the provider for. Where a real
// wait is a minute or more it is shortened; what the fields mean is not changed.
var dialects = []dialect{
	{"github", "403-github", "403 with X-RateLimit-Remaining: 0 of GitHub", "docs.github.com, rate limits for the REST API",
		quotaWait, 403, func(now time.Time) [][2]string {
			return [][2]string{{"X-RateLimit-Limit", "60"}, {"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Used", "60"},
				{"X-RateLimit-Resource", "core"}, {"X-RateLimit-Reset", strconv.FormatInt(later(now).Unix(), 10)}}
		}, `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`},
	{"shopify-rest", "429-shopify-full", "429 with 40/40 in X-Shopify-Shop-Api-Call-Limit", "shopify.dev, REST Admin API rate limits: 2 calls leak a second",
		500 * time.Millisecond, 429, fields([2]string{"X-Shopify-Shop-Api-Call-Limit", "40/40"}),
		`{"errors":"Exceeded 2 calls per second for api client."}`},
	{"shopify-rest", "429-shopify-float", "429 with Retry-After: 2.0", "shopify.dev, REST Admin API rate limits",
		quotaWait, 429, fields([2]string{"Retry-After", "2.0"}, [2]string{"X-Shopify-Shop-Api-Call-Limit", "40/40"}),
		`{"errors":"Exceeded 2 calls per second for api client."}`},
	{"hubspot", "429-hubspot", "429 with policyName SECONDLY", "developers.hubspot.com, usage guidelines",
		time.Second, 429, fields([2]string{"X-HubSpot-RateLimit-Secondly", "19"}, [2]string{"X-HubSpot-RateLimit-Secondly-Remaining", "0"}),
		`{"status":"error","message":"You have reached your secondly limit.","errorType":"RATE_LIMIT","policyName":"SECONDLY"}`},
	{"jira", "429-jira", "429 with X-RateLimit-Reset as ISO 8601", "developer.atlassian.com, rate limiting for Jira Cloud",
		quotaWait, 429, func(now time.Time) [][2]string {
			return [][2]string{{"RateLimit-Reason", "jira-quota-tenant-based"}, {"X-RateLimit-Limit", "65000"},
				{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", later(now).UTC().Format(time.RFC3339)}}
		}, `{"errorMessages":["Rate limit exceeded."],"errors":{}}`},
	{"openai", "429-openai", "429 with X-RateLimit-Reset-Requests: 2s", "developers.openai.com, rate limits",
		quotaWait, 429, fields([2]string{"X-RateLimit-Limit-Requests", "500"}, [2]string{"X-RateLimit-Remaining-Requests", "0"},
			[2]string{"X-RateLimit-Reset-Requests", "2s"}), openAI},
	{"openai", "429-openai-ms", "429 with Retry-After-Ms: 2000", "openai/openai-python _base_client.py",
		quotaWait, 429, fields([2]string{"Retry-After-Ms", "2000"}), openAI},
	{"anthropic", "429-anthropic", "429 with Anthropic-RateLimit-Requests-Reset", "docs.anthropic.com, rate limits",
		quotaWait, 429, func(now time.Time) [][2]string {
			return [][2]string{{"Anthropic-RateLimit-Requests-Limit", "50"}, {"Anthropic-RateLimit-Requests-Remaining", "0"},
				{"Anthropic-RateLimit-Requests-Reset", later(now).UTC().Format(time.RFC3339)}}
		}, `{"type":"error","error":{"type":"rate_limit_error","message":"requests per minute"}}`},
	{"discord", "429-discord", "429 with retry_after: 2.0 in the body", "discord-api-docs, rate limits",
		quotaWait, 429, fields([2]string{"X-RateLimit-Limit", "5"}, [2]string{"X-RateLimit-Remaining", "0"},
			[2]string{"X-RateLimit-Reset-After", "2.0"}, [2]string{"X-RateLimit-Scope", "user"}),
		`{"message":"You are being rate limited.","retry_after":2.0,"global":false}`},
	{"google", "429-google", "429 with a RetryInfo of 2s in the body", "googleapis google/rpc/error_details.proto",
		quotaWait, 429, fields(), `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED",` +
			`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}]}}`},
}

const openAI = `{"error":{"message":"Rate limit reached.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`

func fields(all ...[2]string) func(time.Time) [][2]string {
	return func(time.Time) [][2]string { return all }
}

// later is the first whole second that is quotaWait away, so that no reading
// of it is shorter.
func later(now time.Time) time.Time {
	return now.Add(quotaWait + time.Second - 1).Truncate(time.Second)
}

// Dialect is the claim to know how a provider tells of its limits.
func Dialect(provider string) Claim { return Dialects + "=" + Claim(provider) }

// spoken are the dialects, each heard once.
func spoken() []Case {
	var all []Case
	for _, d := range dialects {
		all = append(all, Case{ID: "quota/" + d.name, Title: d.title, Provider: d.provider,
			Rule:  Rule{"a client that knows its provider waits for what the provider tells in its own way", d.source},
			Needs: []Claim{Retries, Dialect(d.provider)}, World: d.world, Ask: []Operation{{ID: "read", Path: "/v1/items/read"}}, Judge: heeds(d.wait)})
	}
	return append(all, Case{ID: "quota/200-shopify-graphql", Title: "200 with THROTTLED: 2 seconds until the query can be paid", Provider: "shopify-graphql",
		Rule:  Rule{"a query that was throttled waits until the bucket holds its cost", "shopify.dev, GraphQL Admin API errors"},
		Needs: []Claim{Retries, Writes, GraphQL, Dialect("shopify-graphql")}, World: scripted(throttledGraph),
		Ask: []Operation{query("read")}, Judge: heeds(quotaWait)})
}

// world throttles once in the dialect.
func (d dialect) world(Place) sim.World {
	one := func(x *sim.Exchange) sim.Answer {
		an := sim.Text(d.status, "application/json", d.body)
		an.Fields = append(an.Fields, d.fields(x.Now())...)
		return an
	}
	return sim.World{Packs: []sim.Pack{provider(func(*sim.Exchange) []say { return []say{one} })}, Limits: []rate.Limit{}}
}

// query is an operation of a GraphQL API.
func query(id string) Operation {
	return Operation{ID: id, Method: http.MethodPost, Path: "/v1/graphql/" + id, Body: `{"query":"{ entries { title } }"}`}
}

func getGraph(*sim.Exchange) sim.Answer {
	return sim.JSON(200, map[string]any{"data": map[string]any{"entries": entries}})
}

// throttledGraph is a query of 100 points where none is left and 50 come back
// in a second.
func throttledGraph(*sim.Exchange) sim.Answer {
	return sim.Text(200, "application/json", `{"data":null,"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],`+
		`"extensions":{"cost":{"requestedQueryCost":100,"actualQueryCost":null,`+
		`"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":0,"restoreRate":50.0}}}}`)
}

// failedGraph is an error that only the body tells of (GraphQL specification of
// October 2021, section 7.1).
func failedGraph(x *sim.Exchange) sim.Answer {
	return sim.Text(200, "application/json", fmt.Sprintf(`{"data":null,"errors":[{"message":"Internal error. Request ID: %s",`+
		`"extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}`, x.ID("req-")))
}
