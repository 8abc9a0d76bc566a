// Package classify says what an answer, or its absence, really meant.
//
// A Classifier is compiled once from Rules (the provider's dialect) and then
// turns each Exchange into a Verdict: which class, was the request executed,
// may it be repeated, and whom does it concern. Class, Executed and Scope are
// three independent answers. Rules are tried in order and the first match
// wins; the vendor-neutral table stands behind them.
//
// A Classifier asks for the body only where a rule needs it (Peek), and never
// for more than policy.PeekLimit bytes; what lies beyond is unknown to every
// rule, and no rule holds because of it. Complete looks at a whole body that
// was kept for it. The package is pure: transport errors come as a Failure,
// bodies as bytes.
//
// An answer is not called wrong without proof: a body that a rule did not ask
// for is not looked at, and a declared coding or charset that is not
// understood makes body conditions fail, not hold.
package classify

import (
	"net/http"
	"time"
)

// Class is what an answer meant. The set is closed: errors, logs and metric
// labels use these words and no others.
type Class uint8

// The classes.
const (
	Unknown      Class = iota // nobody knows
	OK                        // what was asked for
	Throttled                 // too many requests of this quota key
	Overloaded                // the server is up and cannot take more
	Transient                 // heals by itself
	Unauthorized              // the credential was not accepted
	Permanent                 // repeating cannot help
	Invalid                   // looks fine and is not: an error dressed as 200
	Stale                     // older than agreed
	Truncated                 // cut short
)

// String returns the word used in logs.
func (c Class) String() string {
	return [...]string{"unknown", "ok", "throttled", "overloaded", "transient", "unauthorized",
		"permanent", "invalid", "stale", "truncated"}[c]
}

// Executed says whether the server did what was asked.
type Executed uint8

// The answers.
const (
	Maybe Executed = iota
	No
	Yes
)

// String returns the word used in logs.
func (e Executed) String() string { return [...]string{"maybe", "no", "yes"}[e] }

// Retry says whether and how the same request may be repeated.
type Retry uint8

// The ways.
const (
	Never      Retry = iota // it cannot help
	Idempotent              // if the method is safe, or idempotent, or a key is honoured, or Executed is No
	Any                     // whatever the method
	Once                    // as Idempotent, but a single time
	SameKey                 // only with the same idempotency key
	Refresh                 // once, after the credential was renewed
	Revalidate              // once, past the caches
)

// String returns the word used in logs.
func (r Retry) String() string {
	return [...]string{"never", "idempotent", "any", "once", "same_key", "refresh", "revalidate"}[r]
}

// Scope is whom a verdict concerns.
type Scope uint8

// The scopes.
const (
	ScopeCall Scope = iota // this call only
	ScopeKey               // all callers of the quota key
	ScopeHost              // all who use the host
)

// String returns the word used in logs.
func (s Scope) String() string { return [...]string{"call", "key", "host"}[s] }

// Verdict is what an Exchange meant. Class OK ends the call; the other fields
// then say nothing more than that it was done.
type Verdict struct {
	Class    Class
	Executed Executed
	Retry    Retry
	Scope    Scope
	// Rule names what decided, for people.
	Rule string
	// Wait is a floor that the rule itself gives (a constant, or read from
	// the body). 0: none.
	Wait time.Duration
}

// Repeatable tells whether the same request may be sent again after v. keyed
// tells that it carried an idempotency key which the provider honours.
//
// A write without a key is repeated only when the server cannot have done it:
// RFC 9110 §9.2.2 forbids an automatic repeat otherwise.
func (v Verdict) Repeatable(method string, keyed bool) bool {
	switch v.Retry {
	case Any:
		return true
	case Idempotent, Once:
		return idempotent(method) || keyed || v.Executed == No
	case SameKey:
		return keyed
	case Refresh:
		return v.Executed != Yes // what was refused for its credential was not done
	case Revalidate:
		return safe(method)
	}
	return false
}

// safe tells whether method asks for nothing but an answer (RFC 9110 §9.2.1).
// net/http reads an empty method as GET.
func safe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// idempotent tells whether sending method twice does what sending it once
// does (RFC 9110 §9.2.2).
func idempotent(method string) bool {
	return safe(method) || method == http.MethodPut || method == http.MethodDelete
}

// Failure is how an attempt failed without an answer. Root translates Go's
// error types into it.
type Failure uint8

// The failures. Those up to and including Unwritten prove that the request
// never arrived.
const (
	NoFailure         Failure = iota
	DNSNotFound               // the name does not exist
	DNSTemporary              // the resolver failed or timed out
	Refused                   // connection refused, no route
	ConnectTimeout            // dial or handshake took too long
	TLSFailed                 // certificate or handshake; final
	Unwritten                 // nothing was written, REFUSED_STREAM, unprocessed GOAWAY
	ResetBeforeHeader         // the connection ended before the head of an answer
	HeaderTimeout             // written, and no head in time
	ProtocolError             // the answer was not HTTP
	BodyCut                   // the body ended too early
	BodyTimeout               // the body fell silent
	BadRequest                // the request itself cannot be sent: bad URL, header; final
	Unread                    // the caller's body was not there in time, or broke off
	Blocked                   // we refuse to connect there; final
	Canceled                  // the caller gave up
	OtherFailure
)

var failures = [...]string{"none", "dns_not_found", "dns_temporary", "refused", "connect_timeout",
	"tls_failed", "unwritten", "reset_before_header", "header_timeout", "protocol_error", "body_cut",
	"body_timeout", "bad_request", "unread", "blocked", "canceled", "other"}

// String returns the word used in logs and rules.
func (f Failure) String() string {
	if int(f) < len(failures) {
		return failures[f]
	}
	return "other"
}

// Exchange is one attempt as the classifier sees it.
type Exchange struct {
	Method string
	Path   string
	Keyed  bool // an idempotency key that the provider honours was sent
	// Accept is that header of the request. Without it no rule knows what was
	// asked for.
	Accept string

	Failure Failure // NoFailure when there is an answer

	Status int
	Header http.Header
	// ContentLength as net/http tells it: -1 when unknown.
	ContentLength int64
	// Body is the first bytes, decompressed; BodyEnd tells that it is all.
	// Peeked is false when the body was not looked at, also because its
	// coding is not understood. With a Content-Encoding left in Header,
	// ContentLength is taken to count the compressed bytes.
	Body    []byte
	BodyEnd bool
	Peeked  bool

	// SentAt and Now bound the attempt; they are needed for staleness.
	SentAt, Now time.Time
}
