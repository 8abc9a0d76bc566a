package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/sim"
)

// world is a simulated provider at the end of a wire that takes 20 ms each
// way. mute: it tells nothing of time or quota.
type world struct {
	*sim.API
	mute bool
}

func provider(t *testing.T, w sim.World) *world {
	t.Helper()
	a, err := sim.New(w)
	if err != nil {
		t.Fatal(err)
	}
	return &world{API: a}
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	const way = 20 * time.Millisecond
	time.Sleep(way)
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	time.Sleep(way)
	resp := rec.Result()
	resp.Request = r
	for _, name := range []string{"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if w.mute {
			resp.Header.Del(name)
		}
	}
	return resp, nil
}

// fleet lets n workers make calls each, and returns how long they took.
func (w *world) fleet(t *testing.T, p policy.Policy, n, calls int) time.Duration {
	t.Helper()
	tr := &heed.Transport{Base: w, Policy: p, Seed: 1}
	begun := time.Now()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for range calls {
				r, err := http.NewRequestWithContext(t.Context(), "GET", "http://api.example/v1/bibs/1", nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Errorf("a call ended with %d", resp.StatusCode)
				}
			}
		})
	}
	all.Wait()
	return time.Since(begun)
}

// count tells how many requests the provider saw, refused, and thought early.
func (w *world) count() (seen, refused, early int) {
	j := w.Journal()
	for _, e := range j.Entries {
		if e.Throttled {
			refused++
		}
		if e.Early > 0 {
			early++
		}
	}
	return j.Requests, refused, early
}

func TestAStagedThrottleTakesExactlyThreeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := provider(t, sim.World{Steps: "GET /v1/bibs/*: 429(remaining=0, reset=0), 429, ok"})
		w.fleet(t, policy.Policy{}, 1, 1)
		var got []int
		for _, e := range w.Journal().Entries {
			got = append(got, e.Status)
		}
		if diff := cmp.Diff(got, []int{429, 429, 200}); diff != "" {
			t.Errorf("statuses (-got +want):\n%s", diff)
		}
	})
}

func TestAServerThatPunishesEarlyRetriesNeverHasTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := provider(t, sim.World{Rate: 10, Burst: 5, Penalty: 5 * time.Second})
		// A fleet that begins without a pace is refused often; here it may be.
		pol := policy.Policy{Retry: policy.Retry{Budget: time.Hour, Tokens: policy.Tokens{Off: true}}}
		w.fleet(t, pol, 30, 10)
		if seen, refused, early := w.count(); early > 0 || refused == 0 {
			t.Errorf("of %d requests %d were refused and %d were early; want some refused and none early", seen, refused, early)
		}
	})
}

func TestAFleetThatIsToldNothingFinishesNearTheMinimum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := provider(t, sim.World{Rate: 100, Burst: 10})
		w.mute = true
		pol := policy.Policy{Retry: policy.Retry{Budget: time.Hour}}
		pol.Limits.Learn.Start = 20
		took := w.fleet(t, pol, 50, 60)
		least := time.Duration(3000-10) * time.Second / 100
		seen, refused, _ := w.count()
		if took > least*11/10 || refused > seen/50 {
			t.Errorf("took %v where %v is the least, with %d of %d requests refused", took, least, refused, seen)
		}
	})
}
