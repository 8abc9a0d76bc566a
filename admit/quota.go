package admit

import (
	"math/rand/v2"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// quota is what the server last said about the remaining quota, and what
// follows for the requests sent since.
//
// Two kinds of server are told apart by what is seen, not by what they claim.
// Where the quota comes back little by little (a token bucket), remaining plus
// requests sent rises steadily; its slope is the rate, and requests are let
// out as the quota grows. Where it comes back at once (a window), requests are
// let out until the reserve and then held until the reset.
type quota struct {
	known     bool
	at        time.Time // when the request left whose answer told
	seq       uint64    // requests sent until then, it included
	remaining int64
	sum       int64     // of the last sample
	limit     int64     // 0: not told
	reset     time.Time // zero: not told

	level float64   // what is left, as far as can be reckoned
	as    time.Time // of this instant

	slope  float64 // quota per second, as seen; 0: not seen
	least  float64 // a lower bound of it, seen while the quota was full
	window bool    // the quota came back at once
	from   sample  // where the slope is measured from
	middle sample
	top    sample // where least is measured from
}

type sample struct {
	at  time.Time
	sum int64 // remaining plus sent
}

// The spans over which a slope is measured, and the quota that must have come
// back within.
const (
	slopeMin  = 60 * time.Millisecond
	slopeMax  = 2 * time.Second
	slopeStep = 4
)

// observe learns from an answer; sent is how many requests have left by now,
// and refused how many of them the server did not count.
func (q *quota) observe(now time.Time, r *Result, sent, refused uint64, rng *rand.Rand) {
	seq := r.Pass.Seq + 1
	if q.known && seq < q.seq {
		return // an answer that was overtaken
	}
	h := &r.Hint
	s := sample{r.Pass.At, h.Remaining + int64(seq) - int64(refused)}
	if h.HasLimit {
		q.limit = h.Limit
	}
	switch {
	case !q.known || !q.jumped(s) && s.at.Sub(q.at) > slopeMax/2: // over a long gap it may have been full
		q.restart(s)
		q.top = s
	case q.limit > 0 && h.Remaining >= q.limit-1:
		q.measureFull(s)
		q.restart(s)
	case q.jumped(s):
		q.window, q.slope, q.least = true, 0, 0
		q.restart(s)
	default:
		q.measure(s)
	}
	q.known, q.at, q.seq, q.remaining, q.sum = true, r.Pass.At, seq, h.Remaining, s.sum
	q.level, q.as = float64(q.remaining)-float64(sent-seq)+q.rate()*now.Sub(q.at).Seconds(), now
	q.reset = time.Time{}
	if h.HasReset {
		in := h.Reset
		if r.Verdict.Class == classify.Throttled && h.HasWait { // it goes before: draft-ietf-httpapi-ratelimit-headers §7
			in = min(in, h.Wait)
		}
		jitter := time.Duration(rng.Float64() * min(float64(time.Second), 0.1*float64(in)))
		q.reset = now.Add(in + jitter)
	}
}

// jumped tells that more came back than the slope explains, after the reset
// that the last answer announced.
func (q *quota) jumped(s sample) bool {
	if q.limit == 0 || !q.reset.IsZero() && s.at.Before(q.reset) {
		return false
	}
	expected := q.rate() * s.at.Sub(q.at).Seconds()
	return float64(s.sum-q.sum) > 1.5*expected+float64(max(q.limit/2, 3*slopeStep))
}

func (q *quota) restart(s sample) { q.from, q.middle = s, s }

// measureFull takes the rate at which requests were sent while the quota
// stayed full: it comes back at least as fast.
func (q *quota) measureFull(s sample) {
	if span := s.at.Sub(q.top.at); span >= slopeMin {
		if came := s.sum - q.top.sum; came >= slopeStep && !q.window {
			q.least = float64(came) / span.Seconds()
			if q.slope > 0 { // an earlier slope that was taken too low
				q.slope = max(q.slope, q.least)
			}
		}
		if span > slopeMax/8 {
			q.top = s
		}
	}
}

// measure takes the slope over the last one to two seconds.
func (q *quota) measure(s sample) {
	span, came := s.at.Sub(q.from.at), s.sum-q.from.sum
	if came < 0 { // somebody else uses the key
		q.restart(s)
		return
	}
	if span >= slopeMin && came >= slopeStep {
		q.slope, q.window = float64(came)/span.Seconds(), false
	}
	if s.at.Sub(q.middle.at) > slopeMax/2 {
		q.from, q.middle = q.middle, s
	}
}

// refills tells that the quota comes back little by little.
func (q *quota) refills() bool { return q.slope > 0 && !q.window }

// rate is the rate at which it does, as far as seen.
func (q *quota) rate() float64 {
	if q.window {
		return 0
	}
	return max(q.slope, q.least)
}

// pace is the rate at which requests leave while the quota comes back little
// by little: its slope, and somewhat more while more is left than the reserve.
func (q *quota) pace(l *policy.Limits) float64 {
	spare := 0.0
	if q.limit > 0 {
		spare = min(max(q.level-q.reserve(l)-1, 0)/float64(q.limit), 1)
	}
	return q.slope * (1 + spare)
}

// reserve is the remaining quota at which requests are held.
func (q *quota) reserve(l *policy.Limits) float64 {
	keep := int64(l.Reserve)
	if q.limit > 0 && q.limit < 10*keep {
		keep = q.limit / 10
	}
	keep = max(keep, 1)
	if q.limit > 0 { // of a quota of one there is nothing to keep
		keep = min(keep, q.limit-1)
	}
	return float64(keep)
}

// take returns now when the quota permits a request, which it then counts, or
// when it will.
func (q *quota) take(now time.Time, l *policy.Limits) time.Time {
	if !q.known || l.Reserve < 0 {
		return now
	}
	if l.Rate > 0 && q.limit > 0 && q.limit <= 2*int64(l.Burst) {
		return now // it tells of the very bucket that the pace keeps
	}
	q.level += q.rate() * now.Sub(q.as).Seconds()
	if q.as = now; q.limit > 0 {
		q.level = min(q.level, float64(q.limit))
	}
	short := q.reserve(l) + 1 - q.level
	switch {
	case short <= 1e-6: // a remainder of the arithmetic is no wait
		q.level--
		return now
	case q.rate() > 0 && (q.reset.IsZero() || now.Add(seconds(short/q.rate())).Before(q.reset)):
		return now.Add(seconds(short / q.rate()))
	case q.reset.IsZero() || !now.Before(q.reset):
		q.known = false // it came back, or nobody says when
		return now
	}
	return q.reset
}
