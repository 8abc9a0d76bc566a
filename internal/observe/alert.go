package observe

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/heedproject/heed/policy"
)

// alert is something the stream of events shows and no single event tells.
type alert struct {
	name     string // of alertNames
	endpoint string
	level    slog.Level
	msg      string
	advice   string // with the figures that raised it
}

// The alerts, and their names in logs and metrics.
const (
	alertOutage = iota
	alertRising
	alertShort
	nAlert
)

var alertNames = [nAlert]string{"outage_without_trip", "retries_rising", "timeout_short"}

// What the alerts look at.
const (
	outageSpan     = 30 * time.Second
	outageAttempts = 20
	risingSpan     = time.Minute
	risingBase     = 5 * time.Minute
	risingAttempts = 20
	// risingFloor is the retry share that is too small to speak of.
	risingFloor = 0.05
	// risingLost is how much the share of lost calls may grow for calls to
	// count as still succeeding.
	risingLost  = 0.01
	shortSample = 100
	// shortMinutes is in how many minutes a timeout must cut some answers off:
	// an outage does that too, in the minutes of its two ends.
	shortMinutes = 5
	// quiet is how long a condition must be gone for its episode to be over.
	quiet = time.Minute
)

// watch remembers what was already said about an endpoint.
type watch struct {
	outage, rising episode
	short          bool
	tripped        time.Time // when the breaker last opened
}

// episode is a stretch of time in which a condition holds, short gaps included.
type episode struct{ last time.Time }

// starts is told at each look whether the condition holds, and tells whether
// that begins an episode.
func (e *episode) starts(now time.Time, holds bool) bool {
	if !holds {
		return false
	}
	first := e.last.IsZero() || now.Sub(e.last) > quiet
	e.last = now
	return first
}

// look returns the alerts that begin at now. It is a function of what was
// noted and of now alone.
func (p *endpoint) look(now time.Time) []alert {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []alert
	raise := func(which int, level slog.Level, msg, advice string) {
		p.counts.alerts[which]++
		out = append(out, alert{alertNames[which], p.name, level, msg, advice})
	}
	if s, bad := p.outage(now); p.watch.outage.starts(now, bad) {
		raise(alertOutage, slog.LevelError, "outage without a trip", fmt.Sprintf(
			"%d of %d attempts failed in %v and the breaker stayed closed: check the provider, then lower the breaker's threshold for this endpoint",
			s.failed, s.attempts, outageSpan))
	}
	if s, before, bad := p.retriesRise(now); p.watch.rising.starts(now, bad) {
		raise(alertRising, slog.LevelWarn, "retries rise before errors do", fmt.Sprintf(
			"%.0f %% of the attempts are retried, %.0f %% in the %v before, and calls still succeed: lower rate or concurrency before they stop",
			100*share(s.retries, s.attempts), 100*share(before.retries, before.attempts), risingBase))
	}
	if advice := tooShort(&p.counts.healthy, p.timeouts); advice != "" && !p.watch.short {
		p.watch.short = true
		raise(alertShort, slog.LevelWarn, "timeout shorter than healthy answers take", advice)
	}
	return out
}

// outage tells whether most attempts fail and the breaker did not open.
func (p *endpoint) outage(now time.Time) (sums, bool) {
	s := p.ring.between(now.Add(-outageSpan), now)
	bad := s.attempts >= outageAttempts && share(s.failed, s.attempts) > 0.5
	tripped := p.counts.breaker != 0 ||
		!p.watch.tripped.IsZero() && now.Sub(p.watch.tripped) <= outageSpan
	return s, bad && !tripped
}

// retriesRise tells whether the share of retries doubled while the calls end
// no worse than before.
func (p *endpoint) retriesRise(now time.Time) (recent, before sums, bad bool) {
	edge := now.Add(-risingSpan)
	recent = p.ring.between(edge, now)
	before = p.ring.between(edge.Add(-risingBase), edge)
	rate := share(recent.retries, recent.attempts)
	bad = recent.attempts >= risingAttempts && before.attempts >= risingAttempts &&
		rate >= risingFloor && rate >= 2*share(before.retries, before.attempts) &&
		share(recent.lost, recent.calls) <= share(before.lost, before.calls)+risingLost
	return recent, before, bad
}

// tooShort says what to do if a timeout cuts healthy answers off: it is below
// their 99th percentile, or it keeps ending more than 1 % of the attempts
// while the others are healthy.
func tooShort(l *latency, t policy.Timeouts) string {
	limit := shortest(t)
	if limit <= 0 || l.count < shortSample {
		return ""
	}
	all := l.count + l.cut
	switch p99 := l.p99(); {
	case p99 >= limit:
		return fmt.Sprintf("1 %% of %d healthy answers took longer than %v, and the timeout is %v: raise timeouts.header or timeouts.attempt of this endpoint above it",
			l.count, p99, limit)
	case l.mixed >= shortMinutes && l.cut > all/100:
		return fmt.Sprintf("%.0f %% of %d answers are cut off by the timeout of %v while the others are healthy: raise timeouts.header or timeouts.attempt of this endpoint",
			math.Ceil(100*float64(l.cut)/float64(all)), all, limit)
	}
	return ""
}
