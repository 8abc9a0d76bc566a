package heed_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

func TestAnEmptyRetryBudgetHandsOverTheFailureAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Breaker.Off = true
		pol.Retry.Tokens = policy.Tokens{Capacity: 20, Transient: 14}
		p, j := plays(says(500, "down")), &journal{}
		tr := &heed.Transport{Base: p, Policy: pol, Observe: j.note}
		for range 2 { // the first may repeat once, the second never
			resp, err := tr.RoundTrip(request(t, "GET", ""))
			finish(t, resp, err)
		}
		ends := j.of(heed.CallDone)
		if p.count() != 3 || ends[0].Reason != string(heed.RetryBudget) || ends[1].Attempt != 1 || ends[1].Elapsed != 0 {
			t.Errorf("got %d attempts and the ends %+v", p.count(), ends)
		}
	})
}

func TestAnAttemptAnnouncesItsNumberWhereAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := brisk(0)
		pol.Retry.Announce = true
		p := plays(says(503, ""), says(200, ""))
		resp, err := (&heed.Transport{Base: p, Policy: pol}).RoundTrip(request(t, "GET", ""))
		finish(t, resp, err)
		if a, b := p.tries[0].header.Get("Heed-Attempt"), p.tries[1].header.Get("Heed-Attempt"); a != "1" || b != "2" {
			t.Errorf("announced %q and %q, want 1 and 2", a, b)
		}
	})
}

// shaky takes 300 ms and fails now and then; most is how many it ever had at once.
func shaky(most *atomic.Int32) step {
	var n, in atomic.Int32
	return func(r *http.Request) (*http.Response, error) {
		i, at := n.Add(1), in.Add(1)
		defer in.Add(-1)
		most.Store(max(most.Load(), at))
		time.Sleep(300 * time.Millisecond)
		switch {
		case i%17 == 0:
			return says(503, "")(r)
		case i%29 == 0:
			return nil, errReset
		}
		return says(200, "ok")(r)
	}
}

func TestAThousandCallsAtOnceKeepEveryLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := policy.Policy{
			Retry:    policy.Retry{Budget: time.Hour},
			Limits:   policy.Limits{Rate: 50, Burst: 10, Concurrency: 20},
			Timeouts: policy.Timeouts{Attempt: 10 * time.Second},
			Verify:   policy.Verify{Mode: policy.VerifyFull},
		}
		var most atomic.Int32
		p := plays(shaky(&most))
		j := &journal{}
		tr := &heed.Transport{Base: p, Policy: pol, Observe: j.note}
		var g sync.WaitGroup
		for i := range 1000 {
			g.Go(func() {
				ctx := heed.WithCall(t.Context(), heed.Call{Priority: i % 10, Tenant: string(rune('a' + i%3))})
				resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx))
				if err != nil {
					t.Errorf("call %d: %v", i, err)
					return
				}
				resp.Body.Close()
			})
		}
		g.Wait()
		took := time.Since(p.begun)
		if most.Load() > 20 || float64(p.count()) > 10+50*took.Seconds() {
			t.Errorf("%d attempts in %v, up to %d at once", p.count(), took, most.Load())
		}
		if got := len(j.of(heed.CallDone)); got != 1000 {
			t.Errorf("told %d ends, want 1000", got)
		}
		if s := tr.Gates()[0]; s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("the gate holds %+v", s)
		}
	})
}
