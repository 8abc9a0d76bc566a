package heed

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
)

// Transport is an http.RoundTripper that makes calls survive. The zero value
// works. Its fields are not changed after the first use; it is safe for use
// by many goroutines, and has nothing to close but idle connections.
//
// An answer of the server is handed over as it is, also a 429 or 503 that
// retrying could not mend; ReportOf tells what it took. An *Error is returned
// where there is no answer, or where one with a status below 400 is not what
// it claims to be.
type Transport struct {
	// Base sends one attempt. Default: an http.Transport of its own with the
	// timeouts of Policy, see NewBase.
	Base http.RoundTripper
	// Policy is what was agreed for the endpoint. Zero: the documented
	// defaults. An invalid policy fails every call; Policy.Validate says why.
	Policy policy.Policy
	// Classifier knows the provider's errors. nil: the vendor-neutral table.
	// Package provider has the rules of many APIs for classify.New, and the
	// sources for Hints.
	Classifier *classify.Classifier
	// Hints knows the provider's headers. nil: the standard ones.
	Hints *hint.Reader
	// Token puts a credential on every attempt, in place of one that the
	// request has in the same header, and renews it after a 401. Several
	// Transports may share one; whoever made it closes it. nil: none.
	Token *token.Source
	// QuotaKey says who shares a limit. Default: host and Authorization header
	// of the caller's request. Set it where the limit goes by another header,
	// or where several hosts share one.
	QuotaKey func(*http.Request) string
	// Observe is told every step, by many goroutines at once. It is called
	// without a lock held and must not block. nil: nobody is told.
	Observe func(Event)
	// Seed makes jitter and generated keys repeatable. 0: random.
	Seed uint64

	once  sync.Once
	state *state
}

// RoundTrip sends r and hands over its one result.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	o := t.open(r)
	defer o.part() // also after a panic in somebody's hook
	err := o.begin()
	if err != nil {
		return nil, o.fail(err)
	}
	for {
		if err := o.credential(); err != nil {
			return nil, o.fail(err)
		}
		if err := o.admit(); err != nil {
			return nil, o.fail(err)
		}
		if err := o.send(); err != nil {
			return nil, o.fail(err)
		}
		o.understand()
		next := o.decide()
		if next.Action == call.End {
			return o.deliver(next)
		}
		o.discard()
		if next.Action == call.Refresh {
			err = o.renew()
		} else {
			err = o.rest(next)
		}
		if err != nil {
			return nil, o.fail(err)
		}
	}
}

// CloseIdleConnections closes the idle connections of Base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.init().base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Inherit takes over what the servers have said to old, which had the same
// quota keys and is replaced by t: until when a key is closed, and what is left
// of its quota. What was learned under the policy of old is not taken over, and
// what its calls in flight will be told is not known yet.
func (t *Transport) Inherit(old *Transport) {
	s := t.init()
	for _, g := range old.init().all() {
		s.gate(g.key, g.endpoint).keeper.Inherit(g.keeper)
	}
}

// Call is what a caller may say about one request; see WithCall.
type Call struct {
	// CorrelationID joins events to what the caller knows. Default: none.
	CorrelationID string
	// Tenant shares the gate fairly with other tenants: while callers wait,
	// tenants of the same Priority take turns. Empty is a tenant too.
	Tenant string
	// Priority is 0 (lowest) to 9: of calls that wait the highest goes first.
	// Default 0; the gateway's default is 5.
	Priority int
	// Budget shortens the policy's budget, and never lengthens it. 0: the
	// policy's.
	Budget time.Duration
	// NotBefore is the earliest instant of the first attempt.
	NotBefore time.Time
	// Key is the idempotency key of a write, sent as policy.Key says; where
	// that has no Header, or not the method, it is not sent. Empty: that of
	// the request's own header, else what policy.Key.From makes.
	Key string
	// RetryOff sends the call once.
	RetryOff bool
	// Queued says that a queue keeps the call: where a waiting call would
	// sleep for a second or more, or fail, it ends as Deferred, and the
	// WaitSource of its Report is what it would have waited for. Its answer is
	// read to the end before it is handed over, unless verify is off, and one
	// that is not what it claims to be is handed over too, with the Reason in
	// its Report, so that the queue can keep it for a person to look at.
	Queued bool
	// QueueID is under which name the queue keeps it; Transport.Waiting tells it.
	QueueID string
	// Ladder is where a queued call was left; see Report.Ladder.
	Ladder call.Ladder
	// Observe is told every step of this call, as Transport.Observe is. nil:
	// nobody is told.
	Observe func(Event)
}

type callKey struct{}

// WithCall returns a context whose request is sent as c says.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, &c)
}
