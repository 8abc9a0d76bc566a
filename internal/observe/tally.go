package observe

import (
	"sync"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// The closed sets that label values are taken from. The first word of each is
// that of the zero value, the last catches what a later version may add.
var (
	classes = []string{"unknown", "ok", "throttled", "overloaded", "transient", "unauthorized",
		"permanent", "invalid", "stale", "truncated"}
	groups  = []string{"none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"}
	states  = []string{"closed", open, halfOpen}
	results = []string{"ok", "failed"}
	sources = []policy.WaitSource{policy.NoWait, policy.WaitRetryAfter, policy.WaitQuota,
		policy.WaitBackoff, policy.WaitPace, policy.WaitConcurrency, policy.WaitBreaker,
		policy.WaitToken, "other"}
	reasons = []call.Reason{"none", call.DeadlineExceeded, call.QuotaWait, call.OverCeiling,
		call.Deferred, call.BreakerOpen, call.RetryBudget, call.AttemptsExhausted,
		call.NotRepeatable, call.BodyNotReplayable, call.NotAllowed, call.TokenFailed,
		call.Canceled, call.PermanentFailure, call.InvalidAnswer, call.TruncatedAnswer,
		call.StaleAnswer, call.RetryOff, call.Abandoned, "other"}
)

// The sizes of the sets, as constants for arrays; a test holds them equal.
const (
	nClass  = 10
	nGroup  = 7
	nState  = 3
	nSource = 9
	nReason = 20
)

const (
	open     = "open"
	halfOpen = "half_open"
)

// index finds v in a closed set of words. The sets are short and most events
// have the first word, so a walk is cheaper than a map.
func index[T ~string](set []T, v T) int {
	if v == "" {
		return 0
	}
	for i, w := range set {
		if w == v {
			return i
		}
	}
	return len(set) - 1
}

func group(status int) int {
	switch {
	case status == 0:
		return 0
	case status < 100 || status > 599:
		return nGroup - 1
	}
	return status / 100
}

// counts is everything that is counted for an endpoint since the start.
type counts struct {
	calls    [nClass][nReason]uint64
	attempts [nClass][nGroup]uint64
	retries  [nClass]uint64
	giveups  [nReason]uint64
	waits    [nSource]uint64
	waited   [nSource]time.Duration
	renewals [2]uint64
	wire     uint64
	trips    uint64
	badHints uint64
	alerts   [nAlert]uint64

	breaker   int       // index of states
	opens     time.Time // when an open one lets a probe through
	remaining int64
	told      bool // remaining was
	healthy   latency
}

// endpoint holds the numbers of one endpoint. Every event of it takes the
// lock once, for some ten nanoseconds.
type endpoint struct {
	name string

	mu       sync.Mutex
	timeouts policy.Timeouts
	counts   counts
	ring     ring
	watch    watch
}

// note counts e.
func (p *endpoint) note(e *heed.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.counts
	if e.HasRemain {
		c.remaining, c.told = e.Remaining, true
	}
	switch e.Kind {
	case heed.AttemptDone:
		p.noteAttempt(e)
	case heed.CallDone:
		if !goesOn(e) {
			p.noteCall(e)
		}
	case heed.BreakerChanged:
		c.breaker, c.opens = index(states, e.Breaker), e.Time.Add(e.Delay)
		if e.Breaker == open {
			if e.Reason != heed.ProbeFailed {
				c.trips++
			}
			p.watch.tripped = e.Time
		}
	case heed.TokenRenewed:
		if e.Reason == "" {
			c.renewals[0]++
		} else {
			c.renewals[1]++
		}
	case heed.HintInvalid:
		c.badHints++
	}
}

func (p *endpoint) noteAttempt(e *heed.Event) {
	c, class := &p.counts, min(int(e.Class), nClass-1)
	c.attempts[class][group(e.Status)]++
	c.wire += uint64(max(e.WireAttempts, 0))
	if e.Retry {
		c.retries[class]++
	}
	if e.Class == classify.OK {
		c.healthy.add(e.Elapsed)
	}
	c.healthy.minute(e.Time, e.Class == classify.OK, cutOff(e, p.timeouts))
	s := p.ring.at(e.Time)
	if s == nil {
		return
	}
	s.attempts++
	s.sent += uint32(max(e.WireAttempts, 1))
	if e.Retry {
		s.retries++
	}
	if failing(e.Class) {
		s.failed++
	}
}

func (p *endpoint) noteCall(e *heed.Event) {
	c, reason := &p.counts, index(reasons, call.Reason(e.Reason))
	c.calls[min(int(e.Class), nClass-1)][reason]++
	if gaveUp(call.Reason(e.Reason)) {
		c.giveups[reason]++
	}
	if e.Waited > 0 {
		i := index(sources, e.WaitSource)
		c.waits[i]++
		c.waited[i] += e.Waited
	}
	s := p.ring.at(e.Time)
	if s == nil {
		return
	}
	s.calls++
	switch {
	case e.Class == classify.OK && e.Reason == "":
		s.served++
	case e.Reason != string(call.Canceled):
		s.lost++
	}
}

// goesOn tells that the call has only been put back into its queue.
func goesOn(e *heed.Event) bool {
	if !e.Queued {
		return false
	}
	switch call.Reason(e.Reason) {
	case call.Deferred, call.QuotaWait, call.OverCeiling, call.BreakerOpen, call.RetryBudget, call.DeadlineExceeded, call.TokenFailed:
		return true
	}
	return false
}

// gaveUp tells whether r ended a call that might have succeeded later: not
// what was refused for good, forbidden, or no longer wanted.
func gaveUp(r call.Reason) bool {
	switch r {
	case "", call.PermanentFailure, call.NotAllowed, call.Canceled:
		return false
	}
	return true
}

// failing tells whether a class speaks of an outage. A throttle is the pace's
// business, a refused request or credential that of whoever sent it, and of an
// attempt that its caller cancelled nobody knows.
func failing(c classify.Class) bool {
	switch c {
	case classify.OK, classify.Throttled, classify.Permanent, classify.Unauthorized, classify.Unknown:
		return false
	}
	return true
}

// cutOff tells whether e ended because one of our own timeouts did.
func cutOff(e *heed.Event, t policy.Timeouts) bool {
	limit := shortest(t)
	return e.Status == 0 && e.Class == classify.Transient && limit > 0 && e.Elapsed >= limit
}

// shortest is the timeout that a slow answer meets first; 0: none.
func shortest(t policy.Timeouts) time.Duration {
	if t.Attempt > 0 && (t.Header <= 0 || t.Attempt < t.Header) {
		return t.Attempt
	}
	return max(t.Header, 0)
}

// bounds are the upper bounds of the latency histogram: from an API next door
// to a geospatial service that computes for minutes.
var bounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	300 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond,
	time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second,
	7500 * time.Millisecond, 10 * time.Second, 15 * time.Second, 20 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
}

// latency is the histogram of healthy answers.
type latency struct {
	buckets [len(bounds) + 1]uint64
	sum     time.Duration
	count   uint64

	// What our own timeout cut off is never seen as healthy, and is counted
	// apart: per minute, and kept only if most answers of it were healthy.
	// Else it is an outage that speaks.
	cut   uint64 // attempts cut off in such minutes
	mixed int    // such minutes
	now   struct {
		minute       int64
		healthy, cut uint64
	}
}

// minute counts an attempt among the others of its minute.
func (l *latency) minute(t time.Time, healthy, cut bool) {
	m := &l.now
	if minute := t.Unix() / 60; minute != m.minute {
		if m.cut > 0 && m.cut < m.healthy {
			l.cut += m.cut
			l.mixed++
		}
		m.minute, m.healthy, m.cut = minute, 0, 0
	}
	if healthy {
		m.healthy++
	}
	if cut {
		m.cut++
	}
}

func (l *latency) add(d time.Duration) {
	lo, hi := 0, len(bounds)
	for lo < hi {
		if mid := (lo + hi) / 2; d > bounds[mid] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	l.buckets[lo]++
	l.sum += d
	l.count++
}

// p99 returns a time that more than 1 % of the healthy answers took longer
// than: the lower bound of the bucket that holds the 99th percentile.
func (l *latency) p99() time.Duration {
	rank, seen := l.count-l.count/100, uint64(0)
	for i, n := range l.buckets {
		if seen += n; seen >= rank && i > 0 {
			return bounds[i-1]
		} else if seen >= rank {
			return 0
		}
	}
	return 0
}
