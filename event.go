package heed

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
)

// EventKind says what an Event tells.
type EventKind uint8

// The kinds.
const (
	AttemptDone    EventKind = iota + 1 // one try on the wire ended
	CallDone                            // a call ended, with the body of its answer; exactly one per call
	WaitBegun                           // a call waits for longer than a second
	BreakerChanged                      // Breaker is the new state
	TokenRenewed                        // or failed to: Reason says why; the gateway tells it, a Transport does not: see token.Source.OnRenew
	HintInvalid                         // a Retry-After could not be read
)

// ProbeFailed is the Reason of a BreakerChanged where the breaker was open
// before, and a probe or health request found that it has to stay so.
const ProbeFailed = "probe-failed"

// String returns the word used in logs.
func (k EventKind) String() string {
	return [...]string{"", "attempt", "call", "wait", "breaker", "token", "hint_invalid"}[k]
}

// Event is one step of a call, already masked: nothing in it can print a
// query, a header, a body, a credential or an identifier in a path.
type Event struct {
	Kind          EventKind
	Time          time.Time
	Endpoint      string
	CallID        CallID
	CorrelationID string
	Tenant        string
	Queued        bool // a queue keeps the call: an end that only waits is none
	Method        string
	Path          mask.Path

	Attempt      int // number of this attempt, or of attempts made, from 1
	WireAttempts int // requests the HTTP stack really sent for it, its own resends included
	Status       int // 0: no answer
	Class        classify.Class
	Executed     classify.Executed
	Rule         string // what decided the class

	Elapsed    time.Duration // of the attempt, or of the call
	Delay      time.Duration // AttemptDone: how long until the next attempt; WaitBegun: how long
	Waited     time.Duration // how long before this attempt, or in the whole call
	WaitSource policy.WaitSource
	RetryAfter time.Duration // what the server asked for
	HasRetry   bool          // it asked
	HintFrom   string        // the header that named an instant; empty: none did
	Remaining  int64         // quota left, as told
	HasRemain  bool
	Limit      int64 // of the quota, as told
	HasLimit   bool
	Breaker    string // closed, open or half_open
	Retry      bool   // AttemptDone: another attempt follows
	Reason     string // why it ended or waits; a word of the closed set in errors.go, or ProbeFailed
	Bytes      int64  // CallDone: of the body that was delivered

	TraceParent string // W3C traceparent that the caller sent; empty: none
}

// CallID names a call among all others. It is written out only where somebody
// reads it: most events are merely counted.
type CallID uint64

// String returns 16 hexadecimal digits, or nothing for the zero CallID.
func (id CallID) String() string {
	if id == 0 {
		return ""
	}
	var text [16]byte
	return string(id.append(text[:0]))
}

// MarshalText implements encoding.TextMarshaler.
func (id CallID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

func (id CallID) append(to []byte) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(id))
	return hex.AppendEncode(to, raw[:])
}

// Report sums up a finished call for the caller. ReportOf gets it from an
// answer; an Error carries its own.
type Report struct {
	CallID       CallID
	Attempts     int
	WireAttempts int
	Rule         string // what decided the class
	Waited       time.Duration
	WaitSource   policy.WaitSource // of the longest wait
	Breaker      string
	Class        classify.Class
	// Remaining, Limit and Reset are the quota as last told. Has* tell which.
	Remaining, Limit                 int64
	Reset                            time.Duration
	HasRemaining, HasLimit, HasReset bool
	// Verified tells that the whole body was checked before it was handed
	// over. It is false without verify full, and where no check was possible.
	Verified bool
	Executed classify.Executed // in any attempt
	// Reason is why the call did not get what it asked for. Empty: it did.
	Reason Reason
	// RetryAt is the earliest instant at which trying again makes sense, and
	// KeyUntil when the quota key opens again, if it is closed for all its
	// callers, with what closed it. Zero: unknown, and open.
	RetryAt, KeyUntil time.Time
	KeySource         policy.WaitSource
	// Ladder is how far the call has come, for a queue that sends it again.
	Ladder call.Ladder
}
