package sim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

func quota(h http.Header) [4]string {
	return [4]string{h.Get("Retry-After"), h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset")}
}

func TestTheBucketEmptiesAndRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Rate: 2, Burst: 3})
		if diff := cmp.Diff([]int{200, 200, 200, 429, 429}, statuses(a, "/v1/bibs/1", 5)); diff != "" {
			t.Fatal(diff)
		}
		time.Sleep(500*time.Millisecond - time.Nanosecond)
		if diff := cmp.Diff([]int{429}, statuses(a, "/v1/bibs/1", 1)); diff != "" {
			t.Fatal(diff)
		}
		time.Sleep(time.Nanosecond)
		if diff := cmp.Diff([]int{200, 429}, statuses(a, "/v1/bibs/1", 2)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEveryAnswerTellsTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Rate: 2, Burst: 2})
		var got [][4]string
		for range 3 {
			got = append(got, quota(ask(a, "GET", "/v1/bibs/1", "").Header()))
		}
		want := [][4]string{{"", "2", "1", "1"}, {"", "2", "0", "1"}, {"1", "2", "0", "1"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEveryCredentialHasABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Rate: 1})
		var got []int
		for _, key := range []string{"a", "b", "a", "b"} {
			got = append(got, ask(a, "GET", "/v1/bibs/1", "", "X-Api-Key: "+key).Code)
		}
		if diff := cmp.Diff([]int{200, 200, 429, 429}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestHealthIsNeverThrottled(t *testing.T) {
	a := api(t, sim.World{Rate: 0.001})
	if diff := cmp.Diff([]int{200, 200, 200}, statuses(a, "/health", 3)); diff != "" {
		t.Error(diff)
	}
}

func TestEarlyRetriesDoubleTheBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Rate: 1, Penalty: 30 * time.Second, PenaltyMax: 100 * time.Second})
		ask(a, "GET", "/v1/bibs/1", "")
		var got []string
		for range 4 {
			got = append(got, ask(a, "GET", "/v1/bibs/1", "").Header().Get("Retry-After"))
			time.Sleep(time.Second)
		}
		if diff := cmp.Diff([]string{"30", "60", "100", "100"}, got); diff != "" {
			t.Error(diff)
		}
		time.Sleep(99 * time.Second)
		if diff := cmp.Diff([]int{200}, statuses(a, "/v1/bibs/1", 1)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRequestsOnTheirWayAreForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Rate: 1, Penalty: 30 * time.Second})
		statuses(a, "/v1/bibs/1", 2)
		time.Sleep(49 * time.Millisecond)
		if got := ask(a, "GET", "/v1/bibs/1", "").Header().Get("Retry-After"); got != "30" {
			t.Errorf("got %q", got)
		}
	})
}

func TestASlowStepWaitsBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Steps: "GET /v1/bibs/*: slow(for=3s), slow(for=1s, upto=2s)"})
		for _, want := range [][2]time.Duration{{3 * time.Second, 3 * time.Second}, {time.Second, 2 * time.Second}} {
			begin := time.Now()
			ask(a, "GET", "/v1/bibs/1", "")
			if got := time.Since(begin); got < want[0] || got > want[1] {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}

func TestAnEarlyRetryIsNotedWithHowEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Steps: "GET /v1/bibs/*: 429(after=2s), ok"})
		ask(a, "GET", "/v1/bibs/1", "")
		time.Sleep(1500 * time.Millisecond)
		ask(a, "GET", "/v1/bibs/1", "")
		time.Sleep(time.Second)
		ask(a, "GET", "/v1/bibs/1", "")
		var got []time.Duration
		for _, e := range a.Journal().Entries {
			got = append(got, e.Early)
		}
		if diff := cmp.Diff([]time.Duration{0, 500 * time.Millisecond, 0}, got); diff != "" {
			t.Error(diff)
		}
	})
}
