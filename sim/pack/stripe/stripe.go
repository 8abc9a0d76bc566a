// Package stripe simulates the payments API of Stripe, version 1: charges,
// payment intents, customers and refunds, in form encoding, with Stripe's
// errors, limits and idempotency.
//
// What it holds to, from docs.stripe.com: a key is a secret key in Bearer or
// Basic; an answer is kept for 24 h from the moment the work began, a 500
// among them, and given again with Idempotent-Replayed; a request that was not
// valid, and one that met its key in flight, is not kept; a throttle is 429
// with Stripe-Rate-Limited-Reason and no Retry-After; Stripe-Should-Retry says
// what a client should do. The sandbox allows 25 requests a second.
//
// Test tokens decide the outcome: tok_visa and pm_card_visa succeed,
// tok_chargeDeclined and pm_card_chargeDeclined are declined with 402,
// pm_usBankAccount_processing stays in processing for 2 s and then succeeds.
package stripe

import (
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "stripe",
		Hosts:      []string{"api.stripe.com"},
		Dialect:    sim.Dialect{Refuse: refuse, Quota: quota, Envelope: envelope, Keys: keys},
		Limits:     limits,
		Credential: credential,
		Authorize:  authorize,
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "expired keys").Put(x.Credential(), true) },
		Operations: []sim.Operation{
			{Name: "charges.create", Route: "POST /v1/charges", Do: createCharge, Keyed: true},
			{Name: "charges.list", Route: "GET /v1/charges", Do: listOf[charge]("charges")},
			{Name: "charges.retrieve", Route: "GET /v1/charges/{id}", Do: retrieve[charge]("charges", "charge")},
			{Name: "charges.capture", Route: "POST /v1/charges/{id}/capture", Do: captureCharge, Keyed: true},
			{Name: "payment_intents.create", Route: "POST /v1/payment_intents", Do: createIntent, Keyed: true},
			{Name: "payment_intents.list", Route: "GET /v1/payment_intents", Do: listOf[intent]("payment_intents")},
			{Name: "payment_intents.retrieve", Route: "GET /v1/payment_intents/{id}", Do: retrieve[intent]("payment_intents", "payment_intent")},
			{Name: "payment_intents.confirm", Route: "POST /v1/payment_intents/{id}/confirm", Do: confirmIntent, Keyed: true},
			{Name: "payment_intents.cancel", Route: "POST /v1/payment_intents/{id}/cancel", Do: cancelIntent, Keyed: true},
			{Name: "customers.create", Route: "POST /v1/customers", Do: createCustomer, Keyed: true},
			{Name: "customers.list", Route: "GET /v1/customers", Do: listOf[customer]("customers")},
			{Name: "customers.retrieve", Route: "GET /v1/customers/{id}", Do: retrieve[customer]("customers", "customer")},
			{Name: "customers.update", Route: "POST /v1/customers/{id}", Do: updateCustomer, Keyed: true},
			{Name: "customers.delete", Route: "DELETE /v1/customers/{id}", Do: deleteCustomer},
			{Name: "refunds.create", Route: "POST /v1/refunds", Do: createRefund, Keyed: true},
			{Name: "refunds.list", Route: "GET /v1/refunds", Do: listOf[refund]("refunds")},
			{Name: "refunds.retrieve", Route: "GET /v1/refunds/{id}", Do: retrieve[refund]("refunds", "refund")},
		},
	}
}

// limits are those of a sandbox (docs.stripe.com/rate-limits, 2026).
var limits = []rate.Limit{
	{Name: "global-rate", Kind: rate.TokenBucket, Capacity: 25, Refill: 25},
	{Name: "resource-specific", Kind: rate.SlidingWindow, Capacity: 1000, Window: time.Hour,
		Scope: rate.PathValue, Value: "id", Routes: []string{"POST /v1/payment_intents/{id}/**"}},
}

// keys are the rules of docs.stripe.com/api/idempotent_requests.
var keys = sim.Keys{
	Window: 24 * time.Hour,
	Saves:  func(status int) bool { return status/100 == 2 || status == 402 || status == 500 },
}

// credential is the secret key, in Bearer or as the user of Basic.
func credential(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

func authorize(x *sim.Exchange) *sim.Refusal {
	key := x.Credential()
	expired, _ := sim.Rows[bool](x, "expired keys").Get(key)
	switch {
	case key == "":
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "You did not provide an API key."}
	case expired:
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "Expired API Key provided."}
	case !strings.HasPrefix(key, "sk_") && !strings.HasPrefix(key, "rk_"):
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "Invalid API Key provided."}
	}
	return nil
}

// fault is what stands under "error".
type fault struct {
	Type        string `json:"type"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message"`
	Param       string `json:"param,omitempty"`
	DeclineCode string `json:"decline_code,omitempty"`
	Charge      string `json:"charge,omitempty"`
}

func failed(x *sim.Exchange, status int, f fault) sim.Answer {
	return sim.JSON(status, struct {
		Error fault `json:"error"`
	}{f}).With("Request-Id", x.ID("req_"))
}

func done(x *sim.Exchange, v any) sim.Answer {
	return sim.JSON(200, v).With("Request-Id", x.ID("req_"))
}

// words are the type, the code and the status that Stripe has for a kind.
var words = map[sim.Kind]struct {
	kind, code string
	status     int
	retry      string // Stripe-Should-Retry; "": not told
}{
	sim.BadRequest:   {"invalid_request_error", "parameter_missing", 400, "false"},
	sim.Unauthorized: {"invalid_request_error", "", 401, "false"},
	sim.Forbidden:    {"invalid_request_error", "", 403, "false"},
	sim.NotFound:     {"invalid_request_error", "resource_missing", 404, "false"},
	sim.Conflict:     {"invalid_request_error", "lock_timeout", 429, "true"},
	sim.Throttled:    {"invalid_request_error", "rate_limit", 429, ""},
	sim.Banned:       {"invalid_request_error", "rate_limit", 429, "false"},
	sim.Failed:       {"api_error", "", 500, "false"},
	sim.Overloaded:   {"api_error", "", 503, "true"},
	sim.Unknown:      {"invalid_request_error", "", 404, "false"},
	sim.WrongMethod:  {"invalid_request_error", "", 405, "false"},
	sim.TooLarge:     {"invalid_request_error", "", 413, "false"},
	sim.KeyMismatch:  {"idempotency_error", "", 400, "false"},
	sim.KeyInFlight:  {"idempotency_error", "idempotency_key_in_use", 409, "true"},
	sim.KeyTooLong:   {"invalid_request_error", "", 400, "false"},
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	w := words[r.Kind]
	f := fault{Type: w.kind, Code: w.code, Message: r.Detail, Param: r.Field}
	if r.Operations != nil {
		f.Message = "Unrecognized request URL (" + x.Request.Method + ": " + x.Path + "). This simulator has: " +
			strings.Join(r.Operations, ", ") + "."
	}
	if r.Kind == sim.BadRequest && r.Field == "" {
		f.Code = ""
	}
	an := failed(x, r.StatusOr(w.status), f)
	if r.Kind == sim.Throttled {
		reason := "global-rate"
		if r.Limit != nil {
			reason = r.Limit.Name
		}
		an.Set("Stripe-Rate-Limited-Reason", reason)
	}
	if w.retry != "" {
		an.Set("Stripe-Should-Retry", w.retry)
	}
	return an
}

// quota tells nothing: Stripe has no headers for what is left.
func quota(*sim.Answer, []rate.Told) {}

// envelope is what a proxy makes of a Stripe error when it loses the status.
func envelope(x *sim.Exchange) sim.Answer {
	return failed(x, 200, fault{Type: "api_error", Message: "An unknown error occurred"})
}
