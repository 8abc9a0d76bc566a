package provider

import (
	"errors"
	"regexp"
	"time"

	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider/sheet"
)

// bucketKind is how a bucket counts.
type bucketKind string

// The kinds.
const (
	tokenBucket   bucketKind = "token"          // refills steadily up to its capacity
	leakyBucket   bucketKind = "leaky"          // drains steadily
	fixedWindow   bucketKind = "fixed_window"   // empties at the turn of a window
	slidingWindow bucketKind = "sliding"        // counts the last window
	concurrency   bucketKind = "concurrency"    // counts what is in flight
	spacing       bucketKind = "spacing"        // one, and then a pause of the window
	calendarQuota bucketKind = "calendar_quota" // comes back at a turn of the calendar
)

// bucket is one limit of a provider: what it counts, for whom, how much of it
// there is and how it comes back. One that heed paces by becomes part of the
// policy's limits; the others are told to people.
type bucket struct {
	ID       string
	Kind     bucketKind
	Capacity int64
	Rate     float64 // how fast it comes back, per second
	Window   time.Duration
	Every    string // of a calendar quota: hour, day, month
	Zone     string
	// Key is who shares it, such as account, app, ip, endpoint.
	Key     []string
	Methods []string
	Paths   []string
	Cost    cost
	Penalty penalty
	Plans   map[string]plan
	// Shares are the ids of buckets that the same request takes from.
	Shares []string
	// Discover is the request that tells the caller's own limits.
	Discover string
	About    string
	Pace     bool
	Fact
}

// cost is what a request takes.
type cost struct {
	Unit    string // default requests
	Default int64
	By      []costOf
	// Told is where the answer says what the request took.
	Told string
}

// costOf is the cost of some requests.
type costOf struct {
	Methods, Paths []string
	Cost           int64
	About          string
}

// penalty is what happens to those who go on.
type penalty struct {
	Wait    time.Duration
	Extends bool // a request during the wait starts it anew
	Counts  bool // what is throttled counts too
	About   string
}

// plan is the same bucket for those who pay for another one.
type plan struct {
	Capacity int64
	Rate     float64
	Window   time.Duration
}

func (b *bucket) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "id", Doc: "A name for it.", Required: true, Value: ident(&b.ID)},
		{Name: "kind", Doc: "How it counts.", Required: true, Value: sheet.OneOf(&b.Kind, tokenBucket, leakyBucket, fixedWindow,
			slidingWindow, concurrency, spacing, calendarQuota)},
		{Name: "capacity", Doc: "How much there is.", Value: some(&b.Capacity)},
		{Name: "refill", Doc: "How fast a token or leaky bucket comes back, such as 2/s.", Value: sheet.Rate(&b.Rate)},
		{Name: "window", Doc: "The length of a window, or of the pause of spacing.", Value: span(&b.Window)},
		{Name: "every", Doc: "The turn of a calendar quota.", Value: sheet.OneOf(&b.Every, "hour", "day", "month")},
		{Name: "zone", Doc: "Its time zone, or unknown, or account where each account has its own.", Value: sheet.Text(&b.Zone)},
		{Name: "key", Doc: "Who shares it, in words such as account, app, ip, endpoint.", Value: sheet.List(&b.Key, ident)},
		{Name: "methods", Doc: "The methods it counts. Nothing: all.", Value: Methods(&b.Methods)},
		{Name: "paths", Doc: "The paths it counts. Nothing: all.", Value: Globs(&b.Paths)},
		{Name: "cost", Doc: "What a request takes. Nothing: one.", Value: b.Cost.table()},
		{Name: "penalty", Doc: "What happens to those who go on.", Value: b.Penalty.table()},
		{Name: "plans", Doc: "The same for those who pay for another plan.",
			Value: sheet.Map[plan]{P: &b.Plans, One: func(p *plan) sheet.Value { return p.table() }}},
		{Name: "shares", Doc: "Buckets that the same request takes from.", Value: sheet.Texts(&b.Shares)},
		{Name: "discover", Doc: "The request that tells one's own limits.", Value: sheet.Text(&b.Discover)},
		{Name: "about", Doc: "What else is known.", Value: sheet.Text(&b.About)},
		{Name: "pace", Doc: "Whether heed paces by it: it becomes limits.rate and limits.burst, or limits.concurrency. Default false.",
			Value: sheet.If(b.Pace, sheet.Bool(&b.Pace))},
	}, b.Fact.fields()...), Check: b.check}
}

// check reports what the kind of the bucket needs.
func (b *bucket) check(m sheet.Read) {
	needs := map[bucketKind][]string{
		tokenBucket: {"capacity", "refill"}, leakyBucket: {"capacity", "refill"}, fixedWindow: {"capacity", "window"},
		slidingWindow: {"capacity", "window"}, concurrency: {"capacity"}, spacing: {"window"}, calendarQuota: {"every"},
	}
	for _, name := range needs[b.Kind] {
		if !m.Has(name) && !m.Has("plans") {
			m.Bad(name, "add it, or give plans", "a bucket of the kind %s has a %s", b.Kind, name)
		}
	}
	switch {
	case !b.Pace:
	case b.Kind == calendarQuota:
		m.Bad("pace", "leave it out; a rule says how long to wait when it is used up", "nobody can pace by a quota of the calendar")
	case b.Cost.Unit != "" && b.Cost.Unit != "requests" || b.Cost.Default > 1 || len(b.Cost.By) > 0:
		m.Bad("pace", "leave it out, or write a bucket of requests", "heed paces requests, and this bucket counts %s", orRequests(b.Cost.Unit))
	case len(b.Methods)+len(b.Paths) > 0:
		m.Bad("pace", "leave it out", "heed paces all requests of a key, and this bucket counts some of them")
	case m.Has("window") && b.Window == 0 || m.Has("refill") && b.Rate == 0 || m.Has("capacity") && b.Capacity == 0: // that is told already
	case b.rate() == 0 && b.Kind != concurrency || b.Kind == concurrency && b.Capacity == 0:
		m.Bad("pace", "give the bucket numbers of its own beside its plans", "there is no number to pace by")
	}
}

func orRequests(unit string) string {
	if unit == "" {
		return "requests of unequal cost"
	}
	return unit
}

// rate is how many requests a second it bears in the long run.
func (b *bucket) rate() float64 {
	switch {
	case b.Kind == concurrency:
		return 0
	case b.Rate > 0:
		return b.Rate
	case b.Window <= 0:
		return 0
	case b.Kind == spacing:
		return 1 / b.Window.Seconds()
	}
	return float64(b.Capacity) / b.Window.Seconds()
}

// pace puts the bucket into l. Only what refills steadily bears a burst: a
// burst at the end of a window, and the next window's, would be one.
func (b *bucket) pace(l *policy.Limits) {
	if b.Kind == concurrency {
		l.Concurrency = int(b.Capacity)
		return
	}
	l.Rate, l.Burst, l.Source = b.rate(), 1, b.Origin
	if b.Kind == tokenBucket || b.Kind == leakyBucket {
		l.Burst = int(max(b.Capacity, 1))
	}
}

func (c *cost) table() sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "unit", Doc: "What is counted: requests, points, tokens, items. Default requests.", Value: sheet.Text(&c.Unit)},
		{Name: "default", Doc: "What a request takes that is not named below by.", Value: some(&c.Default)},
		{Name: "by", Doc: "What some requests take.", Value: sheet.List(&c.By, func(o *costOf) sheet.Value {
			return sheet.Block{Fields: []sheet.Field{
				{Name: "methods", Doc: "Their methods.", Value: Methods(&o.Methods)},
				{Name: "paths", Doc: "Their paths.", Value: Globs(&o.Paths)},
				{Name: "cost", Doc: "What they take.", Required: true, Value: sheet.Int(&o.Cost, 0)},
				{Name: "about", Doc: "What they are.", Value: sheet.Text(&o.About)},
			}}
		})},
		{Name: "told", Doc: "Where the answer says what the request took.", Value: sheet.Text(&c.Told)},
	}}
}

func (p *penalty) table() sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "wait", Doc: "How long the lock-out lasts.", Value: span(&p.Wait)},
		{Name: "extends", Doc: "Whether a request meanwhile starts it anew.", Value: flag(&p.Extends)},
		{Name: "counts", Doc: "Whether throttled requests count too.", Value: flag(&p.Counts)},
		{Name: "about", Doc: "What else happens.", Value: sheet.Text(&p.About)},
	}}
}

func (p *plan) table() sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "capacity", Doc: "How much there is.", Value: some(&p.Capacity)},
		{Name: "refill", Doc: "How fast it comes back.", Value: sheet.Rate(&p.Rate)},
		{Name: "window", Doc: "The length of the window.", Value: span(&p.Window)},
	}}
}

// some is a number that is not written back when it is nothing.
func some[T ~int | ~int64](p *T) sheet.Value { return sheet.If(*p != 0, sheet.Int(p, 0)) }

// span is a time span that is not written back when it is nothing.
func span(d *time.Duration) sheet.Value { return sheet.If(*d != 0, sheet.Duration(d)) }

// flag is a bool that is not written back when it is false.
func flag(b *bool) sheet.Value { return sheet.If(*b, sheet.Bool(b)) }

var identPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_.:/-]*$`)

// ident is a name that other parts of the profile use.
func ident(p *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if !identPattern.MatchString(text) {
				return errors.New("a name has lower case letters, digits and _ . : / -")
			}
			*p = text
			return nil
		},
		Show:    func() (string, bool) { return *p, *p != "" },
		Remedy:  "write a name such as requests-per-minute",
		Pattern: identPattern.String(),
		Numeric: true,
	}
}
