// Package hint reads what a server said about time: how long to wait
// (Retry-After, RFC 9110 §10.2.3), how much quota remains and when it comes
// back (RateLimit fields, X-RateLimit-* and vendor headers).
//
// A Reader is compiled once from Sources and then turns the header of every
// answer into a Hint. All waits are durations from the moment the answer was
// received; dates are measured against the answer's own Date when that is sane
// (less than a day from the local clock), so that clock skew cannot make a
// client early. A value that cannot be read is no hint; it never becomes a
// zero or negative wait.
//
// The package is pure.
package hint

import "time"

// Format is the unit and shape of a header value.
type Format string

// The formats.
const (
	Seconds       Format = "s"           // delta seconds, whole or with a fraction
	Millis        Format = "ms"          // delta milliseconds
	EpochSeconds  Format = "epoch_s"     // Unix time in seconds, whole or with a fraction
	EpochMillis   Format = "epoch_ms"    // Unix time in milliseconds
	ISO8601       Format = "iso8601"     // RFC 3339 and its looser relatives, minute precision included
	HTTPDate      Format = "http_date"   // the three forms of RFC 9110 §5.6.7
	GoDuration    Format = "go_duration" // 6m0s, 120ms; a bare number is seconds
	ProtoDuration Format = "pb_duration" // 31s, 0.1s
	RetryAfter    Format = "retry_after" // Retry-After with all that the field sends in it
	Number        Format = "number"      // a count: limit, remaining, used
	UsedTotal     Format = "used_total"  // 32/40
	KeyValue      Format = "key_value"   // total=100; remaining=99; resets=41
	Structured    Format = "structured"  // RateLimit and RateLimit-Policy, drafts -02 to -10
)

// Field is what a source tells.
type Field string

// The fields.
const (
	Wait      Field = "wait"      // do not send before this
	Remaining Field = "remaining" // requests left
	Limit     Field = "limit"     // requests per window
	Reset     Field = "reset"     // when more quota comes
	Used      Field = "used"      // requests used
	Window    Field = "window"    // length of the window
	Quota     Field = "quota"     // several of these in one value (key_value, used_total, structured)
)

// Source is one header and what it means.
type Source struct {
	Header string
	Field  Field
	Format Format
	// Key picks a member of a key_value list; empty: by the usual names.
	Key string
	// ObserveOnly keeps the value out of decisions (headers in beta), also
	// where a later source names the same header and field.
	ObserveOnly bool
	// Ignore lists values that mean nothing, such as -1.
	Ignore []string
}

// Flags say what was odd about a value that was read or skipped.
type Flags uint16

// The flags.
const (
	Malformed  Flags = 1 << iota // a Retry-After was there and could not be read
	Lenient                      // read, but not by the grammar: sign, fraction, foreign date
	EpochGuess                   // a number of 1e9 or more was read as a Unix time
	Past                         // a date in the past: no floor
	Saturated                    // too large to hold; it stands for "very long"
	Repeated                     // several lines or members; the longest valid one counts
	Skewed                       // the server's clock is more than a minute from ours
)

// Words are the flags in words, such as malformed.
func (f Flags) Words() []string {
	var all []string
	for i, word := range [...]string{"malformed", "lenient", "read as a unix time", "in the past", "saturated", "repeated", "skewed clock"} {
		if f&(1<<i) != 0 {
			all = append(all, word)
		}
	}
	return all
}

// Hint is what one answer said. The zero Hint says nothing.
type Hint struct {
	// Wait is how long not to send, from the receipt of the answer. HasWait
	// tells a wait of zero (retry when you like) from none.
	Wait    time.Duration
	HasWait bool
	// From is the header that gave Wait, in canonical form.
	From string

	Remaining, Limit       int64
	HasRemaining, HasLimit bool
	// Reset is the time from receipt until more quota comes.
	// ResetFrom is the header that said so.
	Reset     time.Duration
	HasReset  bool
	ResetFrom string
	// Window is the length of the quota window. 0: not said.
	Window time.Duration

	Flags Flags
}

// MaxWait is the longest wait a Hint holds; anything longer is Saturated.
const MaxWait = 10 * 365 * 24 * time.Hour
