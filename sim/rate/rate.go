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
	ShortHint      // half of the time in whole seconds, 0 of the last, so that who obeys is refused again
	LongHint       // twice the time
)

// Of returns what is told of a wait.
func (h Hint) Of(wait time.Duration) time.Duration {
	switch h {
	case NoHint:
		return 0
	case ShortHint:
		return (wait / 2).Truncate(time.Second)
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

// Problem is one thing that is wrong with a Limit. Field is where, in the words
// of a scenario, such as refill or penalty.first.
type Problem struct{ Field, Message, Remedy string }

// Check says everything that is wrong with l.
func (l Limit) Check() (all []Problem) {
	bad := func(field, remedy, format string, args ...any) {
		all = append(all, Problem{field, fmt.Sprintf("limit %q: ", l.Name) + fmt.Sprintf(format, args...), remedy})
	}
	if int(l.Kind) >= len(kinds) {
		bad("kind", "use one that rate.Kinds returns", "kind %d is not known", l.Kind)
	}
	if !(l.Capacity >= 1) || math.IsInf(l.Capacity, 0) {
		bad("capacity", "give 1 or more", "a capacity of %v lets nothing through", l.Capacity)
	}
	switch {
	case l.Kind <= LeakyBucket && !(l.Refill > 0 && l.Refill <= 1e9):
		bad("refill", "give more than 0, such as 5/s", "a refill of %v per second is no rate for a %s", l.Refill, l.Kind)
	case l.Kind > LeakyBucket && l.Refill != 0:
		bad("refill", "leave it out, or use a token_bucket", "a %s does not refill", l.Kind)
	}
	windowed := l.Kind == FixedWindow || l.Kind == SlidingWindow
	switch {
	case windowed && (l.Window <= 0 || l.Window > longest):
		bad("window", fmt.Sprintf("give more than 0 and up to %v, such as 1m", longest), "a %s needs a window, which %v is not", l.Kind, l.Window)
	case !windowed && l.Window != 0:
		bad("window", "leave it out, or use a fixed_window", "a %s has no window", l.Kind)
	}
	if l.Midnight < 0 || l.Midnight > 24*time.Hour || l.Kind != Daily && l.Midnight != 0 {
		bad("midnight", "give it to a daily limit, from 0h to 24h", "midnight %v is no hour of the day of a %s limit", l.Midnight, l.Kind)
	}
	switch {
	case l.Scope == PathValue && l.Value == "":
		bad("value", "name a segment of the path, such as id", "it does not say which value in the path has a meter of its own")
	case l.Scope != PathValue && l.Value != "":
		bad("value", "leave it out, or use the scope path_value", "only the scope path_value counts apart by %q", l.Value)
	}
	if p := l.Penalty; p.First < 0 || max(p.First, p.Max, p.BanFor) > longest {
		bad("penalty", fmt.Sprintf("give times from 0s to %v", longest), "a penalty of %v, at most %v, then %v, does not end", p.First, p.Max, p.BanFor)
	}
	return all
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
