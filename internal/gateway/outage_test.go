package gateway

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// provider is an API with a rate limit that is down for a while.
type provider struct {
	mu       sync.Mutex
	rate     float64 // requests per second; each may be a tenth of a second early
	free     time.Time
	down, up time.Time
	ok       int
	refused  int
	during   []time.Time // requests while it was down
	done     time.Time   // of the last that succeeded
}

func (p *provider) answer(*http.Request, int) (int, http.Header, string) {
	time.Sleep(20 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !now.Before(p.down) && now.Before(p.up) {
		p.during = append(p.during, now)
		return 503, nil, "down"
	}
	if p.free.Before(now) {
		p.free = now
	}
	if p.free.Sub(now) > 100*time.Millisecond {
		p.refused++
		return 429, http.Header{"Retry-After": {"1"}}, "slow down"
	}
	p.free = p.free.Add(time.Duration(float64(time.Second) / p.rate))
	p.ok++
	p.done = now
	return 200, nil, "x"
}

// backlog enqueues n calls.
func (l *later) backlog(n int) {
	l.Helper()
	for n > 0 {
		calls := make([]queue.Call, min(n, 500))
		for i := range calls {
			calls[i] = queue.Call{
				Facts:   queue.Facts{Endpoint: "api", Gate: MainGate, Method: "GET", Template: "/x", Repeatable: true, Priority: 5},
				Request: queue.Request{Path: fmt.Sprintf("/x?n=%d", n-i)},
			}
		}
		if _, err := l.store.Enqueue(l.Context(), time.Now(), calls); err != nil {
			l.Fatal(err)
		}
		n -= len(calls)
	}
	l.worker.Wake()
}

func TestABacklogWaitsForAnOutageAndIsLetOutAsFastAsTheProviderBears(t *testing.T) {
	if racing || testing.Short() {
		t.Skip("ten thousand calls take half a minute on the disk, and minutes under the race detector")
	}
	const calls, rate = 10_000, 500
	change := func(_ *Settings, p *policy.Policy) {
		*p = policy.Policy{Endpoint: "api"}
		p.Limits.Rate, p.Limits.Burst, p.Limits.Source = rate, 10, "their page"
	}
	bubble(t, change, func(l *later) {
		begun := time.Now()
		api := &provider{rate: rate, down: begun.Add(5 * time.Second), up: begun.Add(35 * time.Second)}
		l.api = api.answer
		l.backlog(calls)
		for range 3600 {
			time.Sleep(time.Second)
			if counts, err := l.store.Counts(l.Context()); err != nil {
				t.Fatal(err)
			} else if len(counts) == 1 && counts[0].State == queue.Done {
				break
			}
		}
		api.mu.Lock()
		defer api.mu.Unlock()
		left := calls - 5*rate // when the outage began, at least
		least := time.Duration(left) * time.Second / rate
		took := api.done.Sub(api.up)
		t.Logf("drained in %v after the outage, where %v is the least; %d requests during the outage, %d throttled", took, least, len(api.during), api.refused)
		if api.ok != calls {
			t.Errorf("%d calls succeeded, want %d, each once", api.ok, calls)
		}
		if took > least*12/10 {
			t.Errorf("drained in %v after the outage, want at most 1.2 times %v", took, least)
		}
		if api.refused*100 > api.ok {
			t.Errorf("%d of %d were throttled, want fewer than 1 %%", api.refused, api.ok)
		}
		// Those that trip the breaker and those on their way with them, then one probe at a time.
		if n := len(api.during); n > 10+32+12 {
			t.Errorf("%d requests were sent during the outage", n)
		}
	})
}
