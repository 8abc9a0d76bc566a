// Package stripe simulates the payments API of Stripe, version 1: charges,
// payment intents, customers and refunds, in form encoding, with Stripe's
// errors, limits and idempotency, its events, and webhooks that tell of them.
//
// What it holds to, from docs.stripe.com: a key is a secret key in Bearer or
// Basic; an answer is kept for 24 h from the moment the work began, a 500
// among them, and given again with Idempotent-Replayed; a request that was not
// valid, and one that met its key in flight, is not kept; a throttle is 429
// with Stripe-Rate-Limited-Reason and no Retry-After; Stripe-Should-Retry says
// what a client should do. The sandbox allows 25 requests a second, a live key
// 100, and one endpoint 25; an object that another request holds is 429 with
// lock_timeout and no reason. A webhook is signed with Stripe-Signature.
//
// Test tokens decide the outcome: tok_visa and pm_card_visa succeed,
// tok_chargeDeclined and pm_card_chargeDeclined are declined with 402,
// pm_usBankAccount_processing stays in processing for 2 s and then succeeds,
// pm_card_authenticationRequired needs the payer, who never comes. The
// simulator's own pm_card_held is held by another request for 2 s.
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
		Access:     "Authorization: Bearer KEY, or Basic, that begins with sk_ or rk_, such as sk_test_1; 401 without; the card is a test token or payment method such as tok_visa, pm_card_visa",
		Hosts:      []string{"api.stripe.com"},
		Dialect:    sim.Dialect{Refuse: refuse, Quota: quota, Envelope: envelope, Keys: keys},
		Limits:     limits,
		Credential: credential,
		Authorize:  authorize,
		Webhooks:   sim.Webhooks{Sign: sim.SignStripe, Retries: []time.Duration{10 * time.Minute, time.Hour, 3 * time.Hour}, Events: events},
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "expired keys").Put(x.Credential(), true) },
		Operations: operations,
	}
}

var operations = []sim.Operation{
	send("charges.create", "/v1/charges", createCharge),
	read("charges.list", "/v1/charges", listOf("charges", func(c charge) tags { return tags{"customer": c.Customer, "payment_intent": c.PaymentIntent} })),
	read("charges.retrieve", "/v1/charges/{id}", retrieve[charge]("charges", "charge")),
	send("charges.capture", "/v1/charges/{id}/capture", captureCharge),
	send("payment_intents.create", "/v1/payment_intents", createIntent),
	read("payment_intents.list", "/v1/payment_intents", listOf("payment_intents", func(p intent) tags { return tags{"customer": p.Customer} })),
	read("payment_intents.retrieve", "/v1/payment_intents/{id}", retrieve[intent]("payment_intents", "payment_intent")),
	send("payment_intents.update", "/v1/payment_intents/{id}", updateIntent),
	send("payment_intents.confirm", "/v1/payment_intents/{id}/confirm", confirmIntent),
	send("payment_intents.capture", "/v1/payment_intents/{id}/capture", captureIntent),
	send("payment_intents.cancel", "/v1/payment_intents/{id}/cancel", cancelIntent),
	send("customers.create", "/v1/customers", createCustomer),
	read("customers.list", "/v1/customers", listOf("customers", func(c customer) tags { return tags{"email": c.Email} })),
	read("customers.retrieve", "/v1/customers/{id}", retrieve[customer]("customers", "customer")),
	send("customers.update", "/v1/customers/{id}", updateCustomer),
	{Name: "customers.delete", Route: "DELETE /v1/customers/{id}", Do: deleteCustomer, CostOf: costs},
	send("refunds.create", "/v1/refunds", createRefund),
	read("refunds.list", "/v1/refunds", listOf("refunds", func(r refund) tags { return tags{"charge": &r.Charge, "payment_intent": r.PaymentIntent} })),
	read("refunds.retrieve", "/v1/refunds/{id}", retrieve[refund]("refunds", "refund")),
	read("events.list", "/v1/events", listOf("events", func(e event) tags { return tags{"type": &e.Type} })),
	read("events.retrieve", "/v1/events/{id}", retrieve[event]("events", "event")),
	send("webhook_endpoints.create", "/v1/webhook_endpoints", createEndpoint),
	read("webhook_endpoints.list", "/v1/webhook_endpoints", listOf("webhook_endpoints", func(endpoint) tags { return nil })),
	read("webhook_endpoints.retrieve", "/v1/webhook_endpoints/{id}", retrieve[endpoint]("webhook_endpoints", "webhook endpoint")),
	{Name: "webhook_endpoints.delete", Route: "DELETE /v1/webhook_endpoints/{id}", Do: deleteEndpoint, CostOf: costs},
}

// send is an operation that honours a key, read one that has no use for it.
func send(name, path string, do func(*sim.Exchange) sim.Answer) sim.Operation {
	return sim.Operation{Name: name, Route: "POST " + path, Do: do, CostOf: costs, Keyed: true}
}

func read(name, path string, do func(*sim.Exchange) sim.Answer) sim.Operation {
	return sim.Operation{Name: name, Route: "GET " + path, Do: do, CostOf: costs}
}

// costs are such that a key of the sandbox has a quarter of a live one's rate.
func costs(x *sim.Exchange) float64 {
	if strings.HasPrefix(x.Credential(), "sk_live_") || strings.HasPrefix(x.Credential(), "rk_live_") {
		return 1
	}
	return 4
}

// limits are those of an account (docs.stripe.com/rate-limits, 2026).
var limits = func() []rate.Limit {
	all := []rate.Limit{
		{Name: "global-rate", Kind: rate.TokenBucket, Capacity: 100, Refill: 100, Weighted: true},
		{Name: "resource-specific", Kind: rate.SlidingWindow, Capacity: 1000, Window: time.Hour,
			Scope: rate.PathValue, Value: "id", Routes: []string{"POST /v1/payment_intents/{id}/**"}},
	}
	for _, o := range operations {
		all = append(all, rate.Limit{Name: "endpoint-rate", Kind: rate.TokenBucket, Capacity: 25, Refill: 25, Routes: []string{o.Route}})
	}
	return all
}()

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
	switch {
	case r.Kind == sim.BadRequest && r.Field == "", r.Kind == sim.Conflict && r.Status == 409:
		f.Code = ""
	case r.Kind == sim.KeyMismatch:
		f.Message = "Keys for idempotent requests can only be used with the same parameters they were first used with. " +
			"Try using another key if you meant to execute a different request."
	case r.Kind == sim.KeyInFlight:
		f.Message = "There is currently another in-progress request using this Idempotency-Key."
	}
	an := failed(x, r.StatusOr(w.status), f)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
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
