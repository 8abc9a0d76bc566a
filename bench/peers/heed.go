package peers

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"

	"benchpeers/peer"
)

// heedPolicy is heed's tuned policy: ten minutes for a call, short steps and a
// breaker that looks again ten times a second, because a shared gate and not
// the backoff spreads the callers.
func heedPolicy(l policy.Limits) policy.Policy {
	return policy.Policy{
		Endpoint: "bench",
		Retry:    policy.Retry{Budget: tunedBudget},
		Backoff:  policy.Backoff{Base: 50 * time.Millisecond, Cap: time.Second},
		Breaker: policy.Breaker{
			Consecutive: 5, Open: 100 * time.Millisecond, OpenMax: 120 * time.Millisecond, Growth: 1, Jitter: 0.1,
		},
		Limits: l,
	}
}

// heedClient has everything on: retry, breaker, pace, concurrency, retry
// budget, masking, and events that somebody takes.
func heedClient(e peer.Env, l policy.Limits) peer.Client {
	l.Concurrency = max(4096, e.Workers)
	var events atomic.Int64
	return client(&heed.Transport{
		Base:     e.Transport,
		Policy:   heedPolicy(l),
		QuotaKey: func(*http.Request) string { return "bench" },
		Observe:  func(heed.Event) { events.Add(1) },
	})
}

func init() {
	const mod = "github.com/heedproject/heed"
	peer.Register(
		peer.Contestant{
			Name: "heed", Mode: peer.Defaults, Module: mod,
			Settings: "heed.Transport with nothing set",
			New: func(e peer.Env) (peer.Client, error) {
				return client(&heed.Transport{Base: e.Transport}), nil
			},
		},
		peer.Contestant{
			Name: "heed", Mode: peer.Tuned, Module: mod, SkipOverhead: true, // would be paced at what it starts with
			Settings: "10 min budget, full jitter 50 ms to 1 s, breaker (5 consecutive, 100 ms); learns the rate, beginning at 100/s",
			New: func(e peer.Env) (peer.Client, error) {
				return heedClient(e, policy.Limits{Learn: policy.Learn{Start: 100}}), nil
			},
		},
		peer.Contestant{
			Name: "heed", Mode: peer.Tuned, Module: mod, Told: true,
			Settings: "the same at the published rate and burst; everything on, events taken",
			New: func(e peer.Env) (peer.Client, error) {
				l := policy.Limits{Rate: e.Published.PerSecond, Burst: e.Published.Burst}
				if l.Rate == 0 { // benchmark A publishes none: pace at a rate that never binds
					l = policy.Limits{Rate: 1e8, Burst: 10_000}
				}
				return heedClient(e, l), nil
			},
		},
	)
}
