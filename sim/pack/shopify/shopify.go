// Package shopify simulates a shop with the Admin API of Shopify, REST and
// GraphQL, on one state: products and orders.
//
// What it holds to, from shopify.dev: REST has a leaky bucket of 40 that leaks
// 2 a second, X-Shopify-Shop-Api-Call-Limit as used/capacity with every answer,
// 429 with Retry-After: 2.0, and pages by Link with page_info, beside which no
// filter is taken. GraphQL has a bucket of 1,000 points that fills by 50 a
// second; a query pays what it asks for and gets back what it did not use; a
// throttle is 200 with the code THROTTLED and what is missing; a query of more
// than 1,000 points is refused with MAX_COST_EXCEEDED for nothing; what may not
// be read is ACCESS_DENIED beside the data that may; a mutation that is not
// valid has userErrors. A bulk operation is created, runs and is completed, one
// at a time, and its result is a file of JSON lines.
//
// Webhooks are registered by topic and signed with X-Shopify-Hmac-Sha256 and
// the secret shpss_of_the_simulator.
//
// Costs: an object is 1 point, a connection 2 and its objects, a mutation 10.
// Chosen here: a bulk operation starts after 1 s and takes 2 s. There are 60
// products at first. Every version of the API is the same one.
package shopify

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// GraphQL returns the same shop under the name shopify-graphql, with the golden
// exchanges of GraphQL in place of those of REST.
func GraphQL() sim.Pack {
	p := Pack()
	p.Name, p.Golden, p.Hosts = "shopify-graphql", "", nil
	return p
}

// events are the topics of which emit tells.
var events = []string{"products/create", "products/update", "products/delete", "orders/create", "orders/cancelled", "bulk_operations/finish"}

const base = "/admin/api/{version}/"

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "shopify",
		Access:     "X-Shopify-Access-Token that begins with shp, such as shpat_1; 401 without",
		Hosts:      []string{"myshopify.com"},
		Dialect:    sim.Dialect{Refuse: refuse, Quota: quota, Envelope: envelope},
		Limits:     limits,
		Credential: func(r *http.Request) string { return r.Header.Get("X-Shopify-Access-Token") },
		Authorize:  authorize,
		Webhooks:   sim.Webhooks{Sign: sim.SignShopify, Timeout: 5 * time.Second, Retries: retries, Events: events},
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "revoked").Put(x.Credential(), true) },
		Golden:     "shopify-rest",
		Operations: []sim.Operation{
			{Name: "graphql.query", Route: "POST " + base + "graphql.json", Do: query, CostOf: requested},
			{Name: "bulk.download", Route: "GET /bulk/{id}.jsonl", Do: download, Free: true},
			{Name: "shop.get", Route: "GET " + base + "shop.json", Do: getShop},
			{Name: "products.list", Route: "GET " + base + "products.json", Do: listProducts},
			{Name: "products.count", Route: "GET " + base + "products/count.json", Do: countProducts},
			{Name: "products.create", Route: "POST " + base + "products.json", Do: createProduct},
			{Name: "products.get", Route: "GET " + base + "products/{id}.json", Do: getProduct},
			{Name: "products.update", Route: "PUT " + base + "products/{id}.json", Do: updateProduct},
			{Name: "products.delete", Route: "DELETE " + base + "products/{id}.json", Do: deleteProduct},
			{Name: "webhooks.create", Route: "POST " + base + "webhooks.json", Do: createHook},
			{Name: "webhooks.list", Route: "GET " + base + "webhooks.json", Do: listHooks},
			{Name: "webhooks.delete", Route: "DELETE " + base + "webhooks/{id}.json", Do: deleteHook},
			{Name: "orders.list", Route: "GET " + base + "orders.json", Do: listOrders},
			{Name: "orders.create", Route: "POST " + base + "orders.json", Do: createOrder},
			{Name: "orders.get", Route: "GET " + base + "orders/{id}.json", Do: getOrder},
			{Name: "orders.cancel", Route: "POST " + base + "orders/{id}/cancel.json", Do: cancelOrder},
			{Name: "orders.close", Route: "POST " + base + "orders/{id}/close.json", Do: closeOrder},
		},
	}
}

// The limits of the standard plan.
const (
	calls  = "calls"
	points = "points"
)

var limits = []rate.Limit{
	{Name: calls, Kind: rate.LeakyBucket, Capacity: 40, Refill: 2, Routes: []string{
		"* " + base + "shop.json", "* " + base + "products.json", "* " + base + "products/**", "* " + base + "orders.json",
		"* " + base + "orders/**", "* " + base + "webhooks.json", "* " + base + "webhooks/**"}},
	{Name: points, Kind: rate.TokenBucket, Capacity: 1000, Refill: 50, Weighted: true, Routes: []string{"POST " + base + "graphql.json"}},
}

// retries of a webhook are eight in four hours (shopify.dev, webhooks).
var retries = slices.Repeat([]time.Duration{30 * time.Minute}, 8)

// quota tells of calls; points are told in the body.
func quota(an *sim.Answer, told []rate.Told) {
	for _, t := range told {
		if t.Limit.Name != points {
			an.Set("X-Shopify-Shop-Api-Call-Limit", strconv.Itoa(int(math.Ceil(t.Used)))+"/"+strconv.Itoa(int(t.Capacity)))
		}
	}
}

// trouble is how REST tells errors: a text, or texts by field.
type trouble struct {
	Errors any `json:"errors"`
}

// messages are the words for a kind.
var messages = map[sim.Kind]string{
	sim.Unauthorized: "[API] Invalid API key or access token (unrecognized login or wrong password)",
	sim.Throttled:    "Exceeded 2 calls per second for api client. Reduce request rates to resume uninterrupted service.",
	sim.NotFound:     "Not Found",
	sim.Failed:       "Internal Server Error",
	sim.Overloaded:   "Service Unavailable",
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	if r.Kind == sim.Throttled && r.Status == 0 && graphql(x) {
		return throttled(x, r)
	}
	t := trouble{messages[r.Kind]}
	switch {
	case r.Operations != nil:
		t.Errors = "Not Found; there are: " + strings.Join(r.Operations, ", ")
	case r.Field != "":
		t.Errors = map[string][]string{r.Field: {r.Detail}}
	case t.Errors == "":
		t.Errors = r.Detail
	}
	an := sim.JSON(r.StatusOr(r.Kind.DefaultStatus()), t)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	switch {
	case r.Kind == sim.Throttled && r.Limit != nil:
		an.Set("Retry-After", "2.0")
	case r.Kind == sim.Throttled && r.Wait > 0:
		an.Set("Retry-After", strconv.FormatFloat(math.Ceil(r.Wait.Seconds()*10)/10, 'f', 1, 64))
	default:
		sim.RetryAfter(x, &an, r)
	}
	return an
}

// graphql tells which of the two APIs is asked.
func graphql(x *sim.Exchange) bool { return strings.HasSuffix(x.Path, "/graphql.json") }

// envelope is an error in a 200: of GraphQL its own, of REST one that lost its
// status.
func envelope(x *sim.Exchange) sim.Answer {
	if graphql(x) {
		return told(nil, ailing{Message: "Internal error. Looks like something went wrong on our end.",
			Extensions: map[string]any{"code": "INTERNAL_SERVER_ERROR", "requestId": x.ID("")}})
	}
	return sim.JSON(http.StatusOK, trouble{messages[sim.Failed]})
}

func authorize(x *sim.Exchange) *sim.Refusal {
	revoked, _ := sim.Rows[bool](x, "revoked").Get(x.Credential())
	if revoked || !strings.HasPrefix(x.Credential(), "shp") {
		return &sim.Refusal{Kind: sim.Unauthorized}
	}
	return nil
}

func getShop(x *sim.Exchange) sim.Answer {
	type shop struct {
		ID       int    `json:"id"`
		Name     string `json:"name"`
		Domain   string `json:"myshopify_domain"`
		Currency string `json:"currency"`
		Zone     string `json:"iana_timezone"`
	}
	return sim.JSON(200, struct {
		Shop shop `json:"shop"`
	}{shop{1, "Gauges and Lamps", "heed.myshopify.com", "EUR", "Europe/Vienna"}})
}
