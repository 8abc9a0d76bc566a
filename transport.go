package heed

import (
	"context"
	"net/http"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
)

// Transport is an http.RoundTripper that makes calls survive. The zero value
// works. Its fields are not changed after the first use; it is safe for use
// by many goroutines.
type Transport struct {
	// Base sends one attempt. Default: an http.Transport of its own with the
	// timeouts of Policy.
	Base http.RoundTripper
	// Policy is what was agreed for the endpoint. Zero: the documented defaults.
	Policy policy.Policy
	// Classifier knows the provider's errors. nil: the vendor-neutral table.
	Classifier *classify.Classifier
	// Hints knows the provider's headers. nil: the standard ones.
	Hints *hint.Reader
	// Token puts a credential on every attempt. nil: none.
	Token *token.Source
	// QuotaKey says who shares a limit. Default: host and Authorization header.
	QuotaKey func(*http.Request) string
	// Observe is told every step. It is called without a lock held and must
	// not block. nil: nobody is told.
	Observe func(Event)
	// Seed makes jitter and generated keys repeatable. 0: random.
	Seed uint64
}

// Call is what a caller may say about one request; see WithCall.
type Call struct {
	// CorrelationID joins events to what the caller knows. Default: none.
	CorrelationID string
	// Tenant shares the gate fairly with other tenants.
	Tenant string
	// Priority is 0 (lowest) to 9. Default 0; the gateway's default is 5.
	Priority int
	// Budget shortens the policy's budget. 0: the policy's.
	Budget time.Duration
	// NotBefore is the earliest instant of the first attempt.
	NotBefore time.Time
	// Key is the idempotency key. Empty: as the policy says.
	Key string
	// RetryOff sends the call once.
	RetryOff bool
	// Queued says that a queue keeps the call: waits beyond the ceiling are
	// deferred and not failed.
	Queued bool
}

type callKey struct{}

// WithCall returns a context whose request is sent as c says.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, &c)
}

// Waiter is a call that waits, as Transport.Waiting tells it.
type Waiter struct {
	CallID        string            `json:"call_id"`
	CorrelationID string            `json:"correlation_id,omitempty"`
	Endpoint      string            `json:"endpoint"`
	Tenant        string            `json:"tenant,omitempty"`
	Priority      int               `json:"priority"`
	Attempt       int               `json:"attempt"` // the one it waits for
	For           policy.WaitSource `json:"for"`
	Since         time.Time         `json:"since"`
	Until         time.Time         `json:"until,omitzero"` // as far as known
	Ahead         int               `json:"ahead"`          // waiters before it
}

// GateState is one quota key, as Transport.Gates tells it. Key is a
// fingerprint, never the credential.
type GateState struct {
	Key         string    `json:"key"`
	Endpoint    string    `json:"endpoint"`
	Breaker     string    `json:"breaker"`
	OpenUntil   time.Time `json:"open_until,omitzero"`
	ClosedUntil time.Time `json:"closed_until,omitzero"`
	Rate        float64   `json:"rate_per_second"` // 0: unpaced
	RateFrom    string    `json:"rate_from"`       // configured, quota, learned or none
	InFlight    int       `json:"in_flight"`
	Waiting     int       `json:"waiting"`
	Remaining   *int64    `json:"remaining,omitempty"`
	RetryTokens int       `json:"retry_tokens"`
}
