// Package policy holds what was agreed for one endpoint: how long a call may
// take, how it is retried and paced, when its breaker opens, what counts as a
// complete answer.
//
// A Policy is a plain value. Its zero value is the documented default of every
// field, so that Policy{} is useful; WithDefaults fills the defaults in, and
// Validate lists every problem at once. A Policy that is in use is not changed:
// a new one takes its place.
//
// The package is pure: it reads no clock, sends nothing and keeps no state.
package policy

import (
	"math"
	"time"
)

// Unlimited is a duration without an end. Zero cannot say so, because zero
// stands for the default.
const Unlimited time.Duration = math.MaxInt64

// Policy is the agreement for one endpoint.
type Policy struct {
	// Endpoint is the name that events, errors and metrics carry.
	// Default: the host of the request.
	Endpoint string
	// Version tells revisions of the same policy apart in logs. Optional.
	Version string

	Retry    Retry
	Backoff  Backoff
	Hints    Hints
	Limits   Limits
	Breaker  Breaker
	Timeouts Timeouts
	Verify   Verify
	Key      Key
	// Allow lists what the endpoint may be used for. Empty: everything.
	Allow []Allow
}

// Retry bounds the life of one call.
type Retry struct {
	// Off sends every call once.
	Off bool
	// Budget is the wall-clock time a call may take, waits and attempts
	// together. Default 60 s; Unlimited: only the caller's context ends it.
	Budget time.Duration
	// Attempts caps the number of attempts on top of Budget. 0: no cap.
	Attempts int
	// MinAttempt is the least time that must be left of the budget for an
	// attempt to start. Default 50 ms.
	MinAttempt time.Duration
	// MinPause is the shortest pause between two attempts of a call, so that
	// a zero backoff is no tight loop. Default 10 ms.
	MinPause time.Duration
	// Ceiling is the longest hint that is waited for, within Budget. Default
	// 300 s.
	Ceiling time.Duration
	// OverCeiling says what a hint beyond Ceiling does. Default Fail.
	OverCeiling OverCeiling
	// Announce sends Heed-Attempt on every attempt, so that a heed further
	// out, such as a gateway, leaves retrying to this one.
	Announce bool
	// Tokens bounds the retries of all calls of a quota key together.
	Tokens Tokens
}

// OverCeiling is what happens when the server asks for more than the ceiling.
type OverCeiling string

const (
	// Fail ends the call at once; the error carries the instant.
	Fail OverCeiling = "fail"
	// Defer ends the call at once as deferred: a queue keeps it until then.
	Defer OverCeiling = "defer"
	// Clamp waits for the ceiling only and so retries early. Ask for it only
	// where the provider is known to exaggerate.
	Clamp OverCeiling = "clamp"
)

// Tokens is the retry budget of a quota key: a retry takes tokens, a success
// gives back what its retry took, or 1. An empty bucket ends calls with their
// current failure. At the defaults 35 retries after failures that no success
// follows, or 100 after throttles, empty it, however many workers share the key.
type Tokens struct {
	// Off lets every retry through.
	Off bool
	// Capacity is the size of the bucket, which starts full. Default 500.
	Capacity int
	// Throttled is the cost of a retry after a throttle. Default 5.
	Throttled int
	// Transient is the cost of a retry after any other failure. Default 14.
	Transient int
}

// Formula names a backoff formula.
type Formula string

// The formulas; v = min(Cap, Base·2ⁿ) for the n-th retry, counted from 0.
const (
	Full         Formula = "full"         // uniform in [0, v)
	Exponential  Formula = "exponential"  // v
	Equal        Formula = "equal"        // v/2 + uniform in [0, v/2)
	Decorrelated Formula = "decorrelated" // uniform in [Base, min(Cap, 3·previous)]
	Additive     Formula = "additive"     // min(Cap, Base·2ⁿ + uniform in [0, Base))
)

// Backoff is how long to wait between attempts when the server says nothing.
type Backoff struct {
	// Formula defaults to Full.
	Formula Formula
	// Base is the first step. Default 1 s.
	Base time.Duration
	// Cap bounds every wait, jitter included. Default 30 s. A Cap below Base wins.
	Cap time.Duration
}

// Hints is what is added to a wait the server asked for.
type Hints struct {
	// JitterMax and JitterRatio bound the positive jitter above a hint:
	// uniform in [0, min(JitterMax, JitterRatio·hint)]. Defaults 1 s and 0.1.
	// A negative value means none.
	JitterMax   time.Duration
	JitterRatio float64
}

// Limits is how much the quota key may bear.
type Limits struct {
	// Rate is the published limit in requests per second. 0: not known. They
	// leave half a percent further apart, so that the last of a window does not
	// come too early. A throttle all the same lowers the pace, and it grows back.
	Rate float64
	// Burst is how many requests may leave at once. Default: 1.
	Burst int
	// Source is where the limit was published, for people.
	Source string
	// Concurrency caps the requests in flight, from the send until the body
	// of the answer is closed. 0: no cap.
	Concurrency int
	// Groups caps path groups apart.
	Groups []Group
	// Reserve is the remaining quota at which requests are held until the
	// reset. Default 5; negative: never hold. A limit of fewer than ten times
	// Reserve holds at a tenth of the limit.
	Reserve int
	// Stagger spreads the first attempts after start-up uniformly over this
	// long. 0: no stagger.
	Stagger time.Duration
	// Learn is used where Rate is 0.
	Learn Learn
	// TenantShare is the largest part of Concurrency that one tenant may
	// hold while another waits, in (0, 1]. Default 1.
	TenantShare float64
}

// Group is a set of paths with a concurrency cap of its own.
type Group struct {
	// Name is told in waits and metrics.
	Name string
	// Paths are globs: * matches within a segment, ** across segments.
	Paths []string
	// Concurrency is the cap. 0: none.
	Concurrency int
}

// Learn is how a rate is found out where none is published.
type Learn struct {
	// Off never paces by a learned rate; hints are honoured all the same.
	Off bool
	// Start is the rate in requests per second at which an unknown quota key
	// begins; the gate raises it while nothing is throttled. 0: unpaced until
	// the first throttle. Give one where many workers share a key.
	Start float64
}

// OnOpen is what a call does that finds the breaker open.
type OnOpen string

const (
	// OnOpenWait waits for the breaker to close, if the call's budget allows it.
	OnOpenWait OnOpen = "wait"
	// OnOpenFail ends the call at once.
	OnOpenFail OnOpen = "fail"
)

// Breaker stops calls to a dependency that is down.
type Breaker struct {
	// Off never opens.
	Off bool
	// Consecutive failures open it. Default 10; negative: this rule is off.
	Consecutive int
	// Ratio of failures among at least MinCalls answers within Window opens
	// it too, in (0, 1]. 0: this rule is off.
	Ratio    float64
	Window   time.Duration // default 30 s
	MinCalls int           // default 20
	// Open is the first open time; it grows by Growth after every failed
	// probe up to OpenMax. A Retry-After that is longer extends it. Defaults
	// 1 s, 30 s and 2.
	Open    time.Duration
	OpenMax time.Duration
	Growth  float64
	// Jitter spreads the open time upward: uniform in [0, Jitter·open].
	// Default 0.1; negative: none.
	Jitter float64
	// Lease is how long a probe may stay unanswered before another one is
	// let through. Default 30 s.
	Lease time.Duration
	// OnOpen defaults to OnOpenWait.
	OnOpen OnOpen
	// Health, when its Path is set, is the request that must pass before the
	// breaker closes; the call that would probe waits for it.
	Health Health
}

// Health is a request that tells whether an endpoint lives.
type Health struct {
	Method string // default GET
	Path   string // on the host of the endpoint, with query if it needs one
}

// Timeouts bound the parts of one attempt.
type Timeouts struct {
	// Connect bounds the dial, and the TLS handshake after it, each. Default
	// 10 s. Connect and Header are settings of the http.Transport that
	// heed.NewBase makes: a Base of another kind has its own.
	Connect time.Duration
	// Header bounds the time from the end of the request to the head of the
	// answer. Default 60 s.
	Header time.Duration
	// Idle bounds the silence between two reads of the body. Default 60 s.
	Idle time.Duration
	// Attempt bounds the whole attempt, body included. 0: only Budget does.
	Attempt time.Duration
}

// VerifyMode says how much of an answer is looked at before it is delivered.
type VerifyMode string

const (
	// VerifyHead looks at up to PeekLimit bytes, when a rule needs them.
	VerifyHead VerifyMode = "head"
	// VerifyFull spools the answer and delivers it only when it is complete.
	VerifyFull VerifyMode = "full"
	// VerifyOff looks at status and header only.
	VerifyOff VerifyMode = "off"
)

// PeekLimit is the most of a body that a rule sees, in bytes.
const PeekLimit = 64 << 10

// Verify is what makes an answer acceptable.
type Verify struct {
	// Mode defaults to VerifyHead.
	Mode VerifyMode
	// MaxAge is the oldest answer that is accepted, by Age and Cache-Status.
	// 0: staleness is not checked.
	MaxAge time.Duration
	// MaxUnmodified is the longest time since Last-Modified. 0: not checked.
	MaxUnmodified time.Duration
	// SpoolLimit bounds what VerifyFull keeps of one answer, in bytes.
	// Default 1 GiB.
	SpoolLimit int64
}

// KeyFrom says where the idempotency key of a write comes from.
type KeyFrom string

const (
	// KeyGiven uses the caller's key and makes none.
	KeyGiven KeyFrom = "given"
	// KeyRandom makes one per call where the caller gives none.
	KeyRandom KeyFrom = "random"
	// KeyHash derives one from method, path, body and record id.
	KeyHash KeyFrom = "hash"
)

// Key describes the idempotency keys of a provider.
type Key struct {
	// Header is the provider's own name for it. Empty: the provider honours
	// no keys, and a key does not make a write repeatable.
	Header string
	// Methods that take a key. Default POST and PATCH.
	Methods []string
	// From defaults to KeyGiven.
	From KeyFrom
	// MaxLen is the longest key the provider takes, in bytes. Default 255.
	MaxLen int
	// Quoted sends the key as a structured-field string (RFC 8941 §3.3.3).
	Quoted bool
	// RecordHeader names a request header whose value enters a derived key
	// (KeyHash).
	RecordHeader string
	// AnyOrder makes a derived key independent of the order of JSON members.
	AnyOrder bool
}

// Allow is one thing an endpoint may be used for.
type Allow struct {
	Methods []string // empty: all; GET includes HEAD
	Path    string   // glob: * within a segment, ** across segments; empty: all
}

// WaitSource says why a call waited.
type WaitSource string

// The wait sources, as logged.
const (
	NoWait          WaitSource = ""
	WaitRetryAfter  WaitSource = "retry_after"
	WaitQuota       WaitSource = "quota"
	WaitBackoff     WaitSource = "backoff"
	WaitPace        WaitSource = "pace"
	WaitConcurrency WaitSource = "concurrency"
	WaitBreaker     WaitSource = "breaker"
	WaitToken       WaitSource = "token"
)
