// Package rate holds the ways in which providers count: what a limit is, and
// the meter that stands at one caller's place in it.
//
// A Meter is told the time and the Limit it stands for; it holds no clock and
// no lock. Ask looks, Spend takes: a request that several limits count asks
// them all first, so that a refusal by one costs nothing at the others.
// Refuse then starts or lengthens the penalty, Release ends a request that
// counts while it runs. Told gives what headers say of it.
//
// Limits of the model: SlidingWindow weighs the window before the present one,
// as edge caches do, and keeps no list of instants. LeakyBucket is the meter
// variant: it refuses what does not fit, it does not queue.
package rate

import (
	"fmt"
	"math"
	"time"
)

// Kind is a way of counting.
type Kind uint8

// The kinds.
const (
	TokenBucket   Kind = iota // Capacity at once, then Refill per second
	LeakyBucket               // fills by one per request, leaks Refill per second, holds Capacity
	FixedWindow               // Capacity per Window, from one multiple of Window to the next
	SlidingWindow             // Capacity per Window, whenever it began
	Daily                     // Capacity per day, from Midnight on
	Concurrency               // Capacity at the same time
)

// String returns the word for the kind.
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return "unknown"
	}
	return kinds[k]
}

var kinds = [...]string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "daily", "concurrency"}

// Kinds returns all kinds in order.
func Kinds() []Kind {
	return []Kind{TokenBucket, LeakyBucket, FixedWindow, SlidingWindow, Daily, Concurrency}
}

// Scope says who shares a meter.
type Scope uint8

// The scopes.
const (
	Credential Scope = iota // each credential has its own
	Everyone                // all credentials together, as in an institution or an app
	PathValue               // each value of the path segment called Limit.Value has its own
	Custom                  // the pack says by what, such as the model that a body names
)

// Tell says what the headers tell of a limit.
type Tell uint8

// The ways to tell.
const (
	Honest  Tell = iota
	Missing      // nothing
	Late         // what was true at the request before
	Lying        // that all of it is left
)

// Hint says how long a refusal tells its caller to stay away.
type Hint uint8

// The hints.
const (
	TrueHint  Hint = iota
	NoHint         // nothing
	ShortHint      // half of the time, so that who obeys is refused again
	LongHint       // twice the time
)

// Of returns what is told of a wait.
func (h Hint) Of(wait time.Duration) time.Duration {
	switch h {
	case NoHint:
		return 0
	case ShortHint:
		return wait / 2
	case LongHint:
		return min(wait, longest) * 2
	}
	return wait
}

// Penalty is what early requests cost. The zero value: nothing.
type Penalty struct {
	// First closes the meter for this long at its first refusal; every request
	// inside the block doubles the block, counted from that request.
	First time.Duration
	// Max bounds the block. Default 4 × First.
	Max time.Duration
	// Grace forgives requests this soon after a refusal: they were on their way.
	Grace time.Duration
	// BanAfter early requests in one block close it for BanFor. 0: never.
	BanAfter int
	// BanFor defaults to an hour.
	BanFor time.Duration
}

// Limit is one limit of a provider.
type Limit struct {
	// Name is how headers and the journal tell it, such as "endpoint-rate".
	Name string
	Kind Kind
	// Capacity is how much fits: at once, in a window, or at the same time.
	Capacity float64
	// Refill per second, of the buckets.
	Refill float64
	// Window of the windows.
	Window time.Duration
	// Midnight is when a Daily limit begins anew, as an offset from 00:00 UTC.
	Midnight time.Duration
	// Weighted counts the cost of an operation, not one per request.
	Weighted bool
	Scope    Scope
	// Value names the path segment of the scope PathValue.
	Value string
	// Routes is the path group: patterns such as "GET /v1/search/**" or
	// "* /v1/charges". None: all.
	Routes  []string
	Penalty Penalty
	Tell    Tell
	Hint    Hint
}

// Check says what is wrong with l, or nil.
func (l Limit) Check() error {
	switch {
	case int(l.Kind) >= len(kinds):
		return fmt.Errorf("limit %q: kind %d is not known", l.Name, l.Kind)
	case !(l.Capacity >= 1) || math.IsInf(l.Capacity, 0):
		return fmt.Errorf("limit %q: a capacity of %v lets nothing through; give 1 or more", l.Name, l.Capacity)
	case l.Kind <= LeakyBucket && !(l.Refill > 0 && l.Refill <= 1e9):
		return fmt.Errorf("limit %q: a refill of %v per second is no rate; give more than 0", l.Name, l.Refill)
	case (l.Kind == FixedWindow || l.Kind == SlidingWindow) && l.Window <= 0:
		return fmt.Errorf("limit %q: a %s needs a window", l.Name, l.Kind)
	case l.Window > longest || l.Midnight < 0 || l.Midnight > 24*time.Hour:
		return fmt.Errorf("limit %q: a window lasts up to %v, and midnight is an hour of the day", l.Name, longest)
	case l.Scope == PathValue && l.Value == "":
		return fmt.Errorf("limit %q: say which path value has a meter of its own", l.Name)
	case l.Penalty.First < 0 || max(l.Penalty.First, l.Penalty.Max, l.Penalty.BanFor) > longest:
		return fmt.Errorf("limit %q: a penalty lasts from 0 to %v", l.Name, longest)
	}
	return nil
}

// longest keeps doubling far from overflow.
const longest = 365 * 24 * time.Hour

// span is the window of l.
func (l *Limit) span() time.Duration {
	if l.Kind == Daily {
		return 24 * time.Hour
	}
	return l.Window
}

// begin is when the window that now lies in began. It is an instant of the
// wall: with the monotonic reading of now, which drifts from the wall, two
// requests of one window would differ in when it began.
func (l *Limit) begin(now time.Time) time.Time {
	w := l.span()
	shift := time.Duration(0)
	if l.Kind == Daily {
		shift = l.Midnight
	}
	gone := time.Duration((now.UnixNano() - int64(shift)) % int64(w))
	if gone < 0 {
		gone += w
	}
	return now.Round(0).Add(-gone)
}
