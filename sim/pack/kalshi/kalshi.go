// Package kalshi simulates the trading API of Kalshi, version 2: markets to
// read, a portfolio to trade in, and the account's own limits.
//
// What it holds to, from docs.kalshi.com: whoever touches the portfolio signs
// the time in milliseconds, the method and the path with RSA-PSS and SHA-256,
// so that a request that is sent again must be signed again; requests cost
// tokens of a bucket for reads or of one for writes, a batch as many as its
// items, and GET /account/limits and GET /account/endpoint_costs tell both; a
// throttle is 429 without any header. Not documented, and chosen here: a time
// may be off by 5 s, and a second order with the same client_order_id is
// refused with 409.
//
// A signature is verified once a public key was registered for its key id, at
// POST /trade-api/v2/api_keys; before, only its form is.
package kalshi

import (
	"net/http"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

const base = "/trade-api/v2"

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "kalshi",
		Access:     "KALSHI-ACCESS-KEY, -TIMESTAMP in ms and -SIGNATURE in base64, which is verified once POST /trade-api/v2/api_keys told the public key; 401 without, but markets are open",
		Hosts:      []string{"api.elections.kalshi.com", "demo-api.kalshi.co"},
		Dialect:    sim.Dialect{Refuse: refuse, Quota: quota, Envelope: envelope},
		Limits:     limits,
		Credential: func(r *http.Request) string { return r.Header.Get("Kalshi-Access-Key") },
		Authorize:  authorize,
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "revoked keys").Put(x.Credential(), true) },
		Operations: []sim.Operation{
			{Name: "exchange.status", Route: "GET " + base + "/exchange/status", Do: exchangeStatus},
			{Name: "markets.list", Route: "GET " + base + "/markets", Do: listMarkets, Cost: usual},
			{Name: "markets.get", Route: "GET " + base + "/markets/{ticker}", Do: getMarket, Cost: usual},
			{Name: "markets.orderbook", Route: "GET " + base + "/markets/{ticker}/orderbook", Do: getBook, Cost: usual},
			{Name: "portfolio.balance", Route: "GET " + base + "/portfolio/balance", Do: getBalance, Cost: usual},
			{Name: "orders.list", Route: "GET " + base + "/portfolio/orders", Do: listOrders, Cost: usual},
			{Name: "orders.create", Route: "POST " + base + "/portfolio/orders", Do: createOrder, Cost: usual},
			{Name: "orders.create_batch", Route: "POST " + base + "/portfolio/orders/batched", Do: createOrders, CostOf: perItem(usual)},
			{Name: "orders.cancel_batch", Route: "DELETE " + base + "/portfolio/orders/batched", Do: cancelOrders, CostOf: perItem(cheap)},
			{Name: "orders.get", Route: "GET " + base + "/portfolio/orders/{id}", Do: getOrder, Cost: cheap},
			{Name: "orders.cancel", Route: "DELETE " + base + "/portfolio/orders/{id}", Do: cancelOrder, Cost: cheap},
			{Name: "orders.amend", Route: "POST " + base + "/portfolio/orders/{id}/amend", Do: amendOrder, Cost: usual},
			{Name: "account.limits", Route: "GET " + base + "/account/limits", Do: accountLimits, Cost: usual},
			{Name: "account.endpoint_costs", Route: "GET " + base + "/account/endpoint_costs", Do: endpointCosts, Cost: usual},
			{Name: "api_keys.create", Route: "POST " + base + "/api_keys", Do: registerKey, Free: true},
		},
	}
}

// Tokens that a request costs (docs.kalshi.com, rate limits).
const (
	usual = 10
	cheap = 2
)

// limits are those of the tier Basic; the bucket of writes holds two seconds.
var limits = []rate.Limit{
	{Name: "read", Kind: rate.TokenBucket, Capacity: 200, Refill: 200, Weighted: true, Routes: []string{"GET /**"}},
	{Name: "write", Kind: rate.TokenBucket, Capacity: 200, Refill: 100, Weighted: true,
		Routes: []string{"POST " + base + "/portfolio/**", "DELETE " + base + "/portfolio/**"}},
}

// perItem bills a batch for each of its orders.
func perItem(tokens float64) func(*sim.Exchange) float64 {
	return func(x *sim.Exchange) float64 {
		var b batch
		_ = x.Decode(&b) // what cannot be read is refused by the operation, and costs as one
		return tokens * float64(max(len(b.Orders), len(b.IDs), 1))
	}
}

// quota tells nothing: Kalshi has no headers for what is left.
func quota(*sim.Answer, []rate.Told) {}

// fault is what stands under "error".
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Service string `json:"service,omitempty"`
}

func failed(status int, code, message string) sim.Answer {
	return sim.JSON(status, struct {
		Error fault `json:"error"`
	}{fault{code, message, "sim"}})
}

// codes are the words for a kind.
var codes = map[sim.Kind]string{
	sim.BadRequest:   "invalid_parameters",
	sim.Unauthorized: "authentication_error",
	sim.Forbidden:    "permission_denied",
	sim.NotFound:     "not_found",
	sim.Conflict:     "conflict",
	sim.Banned:       "permission_denied",
	sim.Failed:       "internal_server_error",
	sim.Overloaded:   "service_unavailable",
	sim.TooLarge:     "payload_too_large",
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	code, ok := codes[r.Kind]
	switch {
	case r.Kind == sim.Throttled:
		return sim.JSON(r.StatusOr(http.StatusTooManyRequests), struct {
			Error string `json:"error"`
		}{"too many requests"})
	case !ok:
		return sim.Plain(x, r)
	}
	return failed(r.StatusOr(r.Kind.DefaultStatus()), code, r.Detail)
}

// envelope is an error that lost its status on the way.
func envelope(*sim.Exchange) sim.Answer {
	return failed(http.StatusOK, "internal_server_error", "the request was not processed")
}

func exchangeStatus(*sim.Exchange) sim.Answer {
	return sim.JSON(200, struct {
		Exchange bool `json:"exchange_active"`
		Trading  bool `json:"trading_active"`
	}{true, true})
}

// bucket is a limit as GET /account/limits tells it in production; the
// published specification has plain numbers there.
type bucket struct {
	Refill   float64 `json:"refill_rate"`
	Capacity float64 `json:"bucket_capacity"`
}

func accountLimits(x *sim.Exchange) sim.Answer {
	all := x.World().Limits
	if all == nil {
		all = limits
	}
	told := map[string]any{"usage_tier": "basic"}
	for _, l := range all {
		told[l.Name] = bucket{l.Refill, l.Capacity}
	}
	return sim.JSON(200, told)
}

// price is what one endpoint costs.
type price struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Cost   int    `json:"cost"`
}

func endpointCosts(*sim.Exchange) sim.Answer {
	return sim.JSON(200, struct {
		Default int     `json:"default_cost"`
		Costs   []price `json:"endpoint_costs"`
	}{usual, []price{
		{"GET", base + "/portfolio/orders/{order_id}", cheap},
		{"DELETE", base + "/portfolio/orders/{order_id}", cheap},
		{"DELETE", base + "/portfolio/orders/batched", cheap},
	}})
}
