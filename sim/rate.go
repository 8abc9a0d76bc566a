package sim

import (
	"math"
	"strconv"
	"time"
)

// bucket is the token bucket of one credential, and its punishment.
type bucket struct {
	tokens  float64
	updated time.Time
	began   time.Time     // of the block
	until   time.Time     // end of the block
	block   time.Duration // its present length; 0: none
}

func newBucket(w World, now time.Time) bucket {
	return bucket{tokens: float64(w.Burst), updated: now}
}

// take asks for one token. wait is how long the caller is told to stay away
// when it gets none.
func (b *bucket) take(w World, now time.Time) (wait time.Duration, ok bool) {
	b.fill(w, now)
	if now.Before(b.until) {
		if now.Sub(b.began) >= w.Grace {
			b.block = min(2*b.block, w.PenaltyMax)
			b.began, b.until = now, now.Add(b.block)
		}
		return b.until.Sub(now), false
	}
	if b.tokens >= 1 {
		b.tokens--
		b.block = 0
		return 0, true
	}
	if w.Penalty > 0 {
		b.block = max(b.block, w.Penalty)
		b.began, b.until = now, now.Add(b.block)
		return b.block, false
	}
	return b.after(w, 1), false
}

func (b *bucket) fill(w World, now time.Time) {
	if gone := now.Sub(b.updated); gone > 0 {
		b.tokens = math.Min(float64(w.Burst), b.tokens+gone.Seconds()*w.Rate)
		b.updated = now
	}
}

// after tells how long until n tokens are there.
func (b *bucket) after(w World, n float64) time.Duration {
	sec := max(n-b.tokens, 0) / w.Rate
	return time.Duration(min(sec, 1e9) * float64(time.Second))
}

// tell puts the quota into the header; reset is when the bucket is full again.
func (b *bucket) tell(w World, an *answer) {
	an.set("X-RateLimit-Limit", strconv.Itoa(w.Burst))
	an.set("X-RateLimit-Remaining", strconv.Itoa(int(b.tokens)))
	an.set("X-RateLimit-Reset", wholeSeconds(b.after(w, float64(w.Burst))))
}
