package queue

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// State is where a call stands.
type State uint8

// The states. A call that waits is Queued with NextAt in the future.
const (
	Queued      State = iota
	Running           // claimed under a lease
	Done              // the answer is kept for a while
	Dead              // ended without success
	Quarantined       // answered, but the answer is invalid
	Unknown           // a write whose outcome nobody knows
	Cancelled         // by its caller or an operator
)

// States lists them in order.
var States = []State{Queued, Running, Done, Dead, Quarantined, Unknown, Cancelled}

var stateWords = [...]string{"queued", "running", "done", "dead", "quarantined", "unknown", "cancelled"}

// String returns the word used in logs, lists and status resources.
func (s State) String() string {
	if int(s) < len(stateWords) {
		return stateWords[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText returns the word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *State) UnmarshalText(text []byte) error {
	for i, w := range stateWords {
		if w == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("no state of a call is called %q: use one of %v", text, stateWords)
}

// Ended tells that nothing more happens to the call by itself.
func (s State) Ended() bool { return s >= Done }

// Broken tells that a person should look: dead, quarantined or unknown.
func (s State) Broken() bool { return s == Dead || s == Quarantined || s == Unknown }

// Facts are what may be told of a call: they route and count it, and lie open
// in the store. Whoever fills them puts nothing secret in.
type Facts struct {
	// ID names the call. Empty when enqueued: the store makes one with NewID.
	ID       string
	Endpoint string
	// Gate is the id of the quota key, unique within the endpoint. It carries
	// at most a fingerprint of the credential.
	Gate     string
	Method   string
	Template string // of the path, identifiers left out
	Tenant   string
	Priority int // 0 (lowest) to 9
	// CorrelationID and TraceParent join the call to what its caller knows.
	CorrelationID string
	TraceParent   string
	// Repeatable tells that the call may be sent again when nobody knows
	// whether it arrived: the method is safe or idempotent, or an idempotency
	// key is sent which the provider honours.
	Repeatable bool
	// NotBefore is the earliest instant of the first attempt. Zero: at once.
	NotBefore time.Time
	// Expires is when it is no longer worth sending. Zero: never.
	Expires time.Time

	// The store fills the rest.

	Created  time.Time
	State    State
	Revision int       // 1, and one more for each Edit
	NextAt   time.Time // not before; the gate may be closed for longer
	Reason   string    // why it waits or ended, a word of the closed set of heed.Reason or of this package
	Class    string    // of the last attempt, a word of classify.Class
	Status   int       // of the last answer; 0: none
	Ladder   Ladder
	Trail    []Attempt // the latest MaxTrail attempts, oldest first
	Note     *Note     // for Broken states
	Ended    time.Time // zero: not yet
	// KeptUntil is when an ended call is erased. Zero: not ended.
	KeptUntil time.Time
	Size      int // bytes of the body as it was enqueued
	// Begun is since when a call that is Running may have been sent. Zero: nobody
	// has said so, see Beginner.
	Begun time.Time
}

// MaxTrail is how many attempts are kept of one call.
const MaxTrail = 64

// Ladder is how far a call has got. Waiting burns no attempt.
type Ladder struct {
	Attempts   int
	Waits      int
	Waited     time.Duration // in all
	WaitSource string        // of the last wait, a word of policy.WaitSource
	Delay      time.Duration // the previous delay, for the next one to build on
	First      time.Time     // start of the first attempt; zero: none yet
	Last       time.Time     // start of the last attempt
}

// Attempt is one try on the wire.
type Attempt struct {
	N          int           `json:"n"`
	At         time.Time     `json:"at"`
	Status     int           `json:"status,omitempty"` // 0: no answer
	Class      string        `json:"class,omitempty"`
	Rule       string        `json:"rule,omitempty"`   // what showed that; empty: it got what it asked for
	Waited     time.Duration `json:"waited,omitempty"` // before it, in nanoseconds
	WaitSource string        `json:"wait_source,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	// Climbed is how far the call had come then, in the words of whoever sent
	// it, who gets it back with the next claim. Stores do not look at it.
	Climbed json.RawMessage `json:"climbed,omitempty"`
}

// Request is what the call says. It is sealed at rest and prints as its sizes.
type Request struct {
	// Path is the path and query below the endpoint's base URL.
	Path   string
	Header http.Header
	Body   []byte
	// Key is the idempotency key, the same on every attempt. Empty: none.
	Key string
	// Callback is where the end of the call is told. Empty: nowhere.
	Callback string
	// PathTemplate is that of an edited Path: Edit makes it Facts.Template.
	// Empty: that stays. It is not part of the record.
	PathTemplate string
}

// String tells sizes only.
func (r Request) String() string {
	return fmt.Sprintf("request(%d header fields, %d bytes)", len(r.Header), len(r.Body))
}

// GoString tells sizes only.
func (r Request) GoString() string { return r.String() }

// LogValue tells sizes only.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalJSON tells sizes only. An Envelope is how a request is written out.
func (r Request) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// Call is one queued call.
type Call struct {
	Facts
	Request
	// KeyWindow is how long Request.Key stays taken, counted from Enqueue: at
	// least as long as the provider remembers it. 0: DefaultKeyWindow.
	KeyWindow time.Duration
}

// DefaultKeyWindow is how long an idempotency key stays taken.
const DefaultKeyWindow = 24 * time.Hour

// String tells what may be told.
func (c Call) String() string {
	return fmt.Sprintf("call %s %s %s%s (%s)", c.ID, c.Method, c.Endpoint, c.Template, c.State)
}

// GoString is String.
func (c Call) GoString() string { return c.String() }

// LogValue is String.
func (c Call) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON writes the Facts.
func (c Call) MarshalJSON() ([]byte, error) { return json.Marshal(c.Facts) }

// Result is the answer to a call. It is sealed at rest and prints as its sizes.
type Result struct {
	Status int
	Header http.Header
	Body   []byte
	// KeptUntil is filled when it is read.
	KeptUntil time.Time
}

// String tells status and sizes only.
func (r Result) String() string {
	return fmt.Sprintf("answer(%d, %d header fields, %d bytes)", r.Status, len(r.Header), len(r.Body))
}

// GoString tells status and sizes only.
func (r Result) GoString() string { return r.String() }

// LogValue tells status and sizes only.
func (r Result) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalJSON tells status and sizes only.
func (r Result) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// Note is what an operator reads of a call that broke.
type Note struct {
	What     string    `json:"what"`
	Why      string    `json:"why"`
	First    time.Time `json:"first_seen"`
	Last     time.Time `json:"last_seen"`
	Attempts int       `json:"attempts"`
	Status   int       `json:"last_status,omitempty"`
	Do       string    `json:"what_to_do"`
	Replay   string    `json:"replay"` // the command
}
