package app

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
)

func TestATenantsBacklogIsNotInFrontOfOthers(t *testing.T) {
	var mu sync.Mutex
	var came []string
	reached, open := make(chan struct{}, 1000), make(chan struct{})
	cfg := settings(api(t, "api", func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		came = append(came, string(b))
		mu.Unlock()
		reached <- struct{}{}
		<-open
	}))
	queued(t, cfg)
	a := start(t, cfg, Options{})
	for i := range 60 {
		async(t, a, "POST", "/api/x", fmt.Sprintf("hot %d", i), "Heed-Tenant", "hot")
	}
	for range cfg.Queue.Workers / 2 { // the share of one key
		<-reached
	}
	var others []string
	for i := range 5 {
		others = append(others, async(t, a, "POST", "/api/x", "other", "Heed-Tenant", fmt.Sprintf("t%d", i)))
	}
	close(open)
	for _, at := range others {
		if state := ended(t, a, at); state != "done" {
			t.Fatalf("it ended as %s", state)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	last := len(came)
	for last > 0 && came[last-1] != "other" {
		last--
	}
	// Those under way, their successors and one round of six tenants.
	if before := last - slices.Index(came, "other"); last > 24 {
		t.Errorf("the last call of the other tenants came as number %d (%d after their first), want it among the first 24: %q", last, before, came)
	}
}
