package admit

import (
	"testing"
	"time"

	"github.com/heedproject/heed/policy"
)

// BenchmarkAttempt is what one attempt that nobody holds up costs at its gate.
func BenchmarkAttempt(b *testing.B) {
	p := agreed(func(p *policy.Policy) {
		p.Limits = policy.Limits{Rate: 1e8, Burst: 10_000, Concurrency: 4096}
	})
	l := NewLine(NewGate(p, seeded(1)), p, seeded(2))
	now, t := start, &Ticket{First: true, Group: -1}
	for b.Loop() {
		now = now.Add(time.Microsecond)
		a := l.Ask(now, t)
		if a.Kind != Go {
			b.Fatal("an attempt had to wait")
		}
		l.Observe(now, Result{Pass: a.Pass, Status: 200, Verdict: ok})
		l.Release(now, a.Pass, t)
	}
}
