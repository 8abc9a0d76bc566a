package github_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

func TestManyAtOnceShareALimitExactlyAndAreToldTheTruth(t *testing.T) {
	r := open(t, sim.World{Limits: []rate.Limit{{Name: "core", Kind: rate.FixedWindow, Capacity: 50, Window: time.Hour, Weighted: true, Routes: []string{"* /repos/**"}}}})
	var mu sync.Mutex
	got := map[int]int{}
	left := map[string]bool{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				w := r.ask("GET", issues+"/1", "")
				mu.Lock()
				got[w.Status]++
				if w.Status == 200 {
					left[quota(w)] = true
				} else if !strings.HasPrefix(quota(w), "core 0/50 ") {
					t.Errorf("a refusal: got %q", quota(w))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got[200] != 50 || got[403] != 110 || len(left) != 50 {
		t.Errorf("got %v, and %d different quotas in good answers, want 50", got, len(left))
	}
}
