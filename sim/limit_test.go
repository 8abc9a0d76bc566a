package sim_test

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// stopped is a world whose clock stands still.
func stopped(limits ...rate.Limit) sim.World {
	return sim.World{Limits: limits, Clock: sim.Clock{Stepped: true, Start: noon}}
}

func TestTheNarrowestOfTwoLimitsCountsAndTheOtherLosesNothing(t *testing.T) {
	a := api(t, stopped(
		rate.Limit{Name: "minute", Kind: rate.FixedWindow, Capacity: 3, Window: time.Minute},
		rate.Limit{Name: "second", Kind: rate.FixedWindow, Capacity: 2, Window: time.Second},
	))
	got := statuses(a, "/v1/bibs/1", 3)
	a.Case("").Advance(time.Second)
	got = append(got, statuses(a, "/v1/bibs/1", 2)...)
	if diff := cmp.Diff(got, []int{200, 200, 429, 200, 429}); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, e := range a.Journal().Entries {
		names = append(names, e.Limit)
	}
	if diff := cmp.Diff(names, []string{"", "", "second", "", "minute"}); diff != "" {
		t.Error(diff)
	}
}

func TestAPathGroupHasItsOwnLimit(t *testing.T) {
	a := api(t, stopped(rate.Limit{Name: "bibs", Kind: rate.FixedWindow, Capacity: 1, Window: time.Minute, Routes: []string{"GET /v1/bibs/**"}}))
	got := append(statuses(a, "/v1/bibs/1", 2), statuses(a, "/demo", 2)...)
	if diff := cmp.Diff(got, []int{200, 429, 200, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestALimitIsSharedByEveryoneOrKeptByAPathValue(t *testing.T) {
	for _, tt := range []struct {
		limit rate.Limit
		want  []int
	}{
		{rate.Limit{Scope: rate.Credential}, []int{200, 200, 429}},
		{rate.Limit{Scope: rate.Everyone}, []int{200, 429, 429}},
		{rate.Limit{Scope: rate.PathValue, Value: "id"}, []int{200, 200, 200}},
	} {
		tt.limit.Kind, tt.limit.Capacity, tt.limit.Window = rate.FixedWindow, 1, time.Minute
		a := api(t, stopped(tt.limit))
		got := []int{
			ask(a, "GET", "/v1/bibs/1", "", "X-Api-Key: a").Code,
			ask(a, "GET", "/v1/bibs/1", "", "X-Api-Key: b").Code,
			ask(a, "GET", "/v1/bibs/2", "", "X-Api-Key: a").Code,
		}
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("scope %d: %s", tt.limit.Scope, diff)
		}
	}
}

func TestAnExpensiveOperationCostsWhatItCosts(t *testing.T) {
	p := sim.Generic()
	p.Operations[0].Cost = 5
	w := stopped(rate.Limit{Name: "points", Kind: rate.FixedWindow, Capacity: 6, Window: time.Minute, Weighted: true})
	w.Packs = []sim.Pack{p}
	a := api(t, w)
	got := append(statuses(a, "/v1/bibs", 2), statuses(a, "/v1/bibs/1", 2)...)
	if diff := cmp.Diff(got, []int{200, 429, 200, 429}); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsAtTheSameTimeAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.World{
			Limits: []rate.Limit{{Name: "concurrency", Kind: rate.Concurrency, Capacity: 1}},
			Packs: []sim.Pack{{Name: "slow", Operations: []sim.Operation{{Route: "GET /", Do: func(*sim.Exchange) sim.Answer {
				return sim.Answer{Status: 200, Body: []byte("ab"), Pace: sim.Pace{Bytes: 1, Every: time.Second}}
			}}}}},
		}
		a := api(t, w)
		first := make(chan int)
		go func() { first <- ask(a, "GET", "/", "").Code }()
		synctest.Wait()
		second := ask(a, "GET", "/", "")
		got := []int{second.Code, <-first, ask(a, "GET", "/", "").Code}
		if diff := cmp.Diff(got, []int{429, 200, 200}); diff != "" || second.Header().Get("Retry-After") != "" {
			t.Error(diff, second.Header())
		}
	})
}

func TestTooManyEarlyRequestsAreABan(t *testing.T) {
	a := api(t, stopped(rate.Limit{Name: "r", Capacity: 1, Refill: 1, Penalty: rate.Penalty{First: 30 * time.Second, BanAfter: 2}}))
	if diff := cmp.Diff(statuses(a, "/v1/bibs/1", 5), []int{200, 429, 429, 403, 403}); diff != "" {
		t.Error(diff)
	}
}

func TestTheSameWorldIsTheSameInEveryCaseButForItsChance(t *testing.T) {
	a := api(t, sim.World{Seed: 3, FailureRate: 0.5})
	draw := func(id string) (got []int) {
		for range 40 {
			w := httptest.NewRecorder()
			a.ServeHTTP(w, httptest.NewRequest("GET", "/t/"+id+"/v1/bibs/1", nil))
			got = append(got, w.Code)
		}
		return got
	}
	if cmp.Equal(draw("a"), draw("b")) {
		t.Error("two cases have the same chance")
	}
	again := draw("a")
	a.Remove("a")
	if cmp.Equal(again, draw("a")) {
		t.Error("the attempts that follow have the chance of the first ones")
	}
}

func TestAHintCanBeMissingTooShortOrTooLong(t *testing.T) {
	for hint, want := range map[rate.Hint]string{rate.TrueHint: "8", rate.NoHint: "", rate.ShortHint: "4", rate.LongHint: "16"} {
		a := api(t, sim.World{
			Clock:  sim.Clock{Stepped: true, Start: noon},
			Limits: []rate.Limit{{Name: "calls", Kind: rate.FixedWindow, Capacity: 1, Window: 8 * time.Second, Hint: hint}},
		})
		ask(a, "GET", "/v1/bibs/1", "")
		if got := ask(a, "GET", "/v1/bibs/1", "").Header().Get("Retry-After"); got != want {
			t.Errorf("hint %d: got %q, want %q", hint, got, want)
		}
	}
}

func TestAPackSaysByWhatALimitCounts(t *testing.T) {
	p := sim.Generic()
	p.Limits = []rate.Limit{{Name: "per model", Kind: rate.FixedWindow, Capacity: 1, Window: time.Hour, Scope: rate.Custom}}
	p.LimitBy = func(x *sim.Exchange, _ *rate.Limit) string { return x.Query("model") }
	a := api(t, sim.World{Packs: []sim.Pack{p}})
	var got []int
	for _, model := range []string{"small", "large", "small"} {
		got = append(got, ask(a, "GET", "/v1/bibs/1?model="+model, "").Code)
	}
	if diff := cmp.Diff(got, []int{200, 200, 429}); diff != "" {
		t.Error(diff)
	}
}

// metered is a pack that tells what is left in header and body, and gives back
// what a request did not need.
func metered() sim.Pack {
	return sim.Pack{
		Name:   "metered",
		Limits: []rate.Limit{{Name: "points", Kind: rate.FixedWindow, Capacity: 100, Window: time.Hour, Weighted: true}},
		Dialect: sim.Dialect{Tell: func(x *sim.Exchange, an *sim.Answer, told []rate.Told) {
			an.Set("Reset-At", told[0].End(x.Now()).UTC().Format(time.TimeOnly))
			an.Set("Left", strconv.Itoa(int(told[0].Remaining)))
		}},
		Operations: []sim.Operation{{Route: "GET /query", Cost: 30, Do: func(x *sim.Exchange) sim.Answer {
			x.Spend("points", -20)
			left, ok := x.Left("points")
			if _, other := x.Left("other"); !ok || other {
				return x.Refuse(sim.Refusal{Kind: sim.Failed})
			}
			return sim.JSON(200, left.Remaining)
		}}},
	}
}

func TestWhatARequestDidNotNeedIsGivenBackAndWhatIsLeftIsTold(t *testing.T) {
	a := api(t, sim.World{Packs: []sim.Pack{metered()}, Clock: sim.Clock{Stepped: true, Start: noon.Add(20 * time.Minute)}})
	w := ask(a, "GET", "/query", "")
	if h := w.Header(); w.Code != 200 || h.Get("Reset-At") != "13:00:00" || h.Get("Left") != "90" {
		t.Errorf("got %d, %v", w.Code, h)
	}
	got := []string{w.Body.String(), ask(a, "GET", "/query", "").Body.String()}
	if diff := cmp.Diff(got, []string{"90\n", "80\n"}); diff != "" {
		t.Error(diff)
	}
}

func TestARequestThatAStepLedPastTheLimitsGivesNothingBack(t *testing.T) {
	w := sim.World{Packs: []sim.Pack{metered()}, Clock: sim.Clock{Stepped: true, Start: noon}, Steps: "GET /query: ok, commit-then-500, ok"}
	a := api(t, w)
	got := []string{ask(a, "GET", "/query", "").Body.String(), strconv.Itoa(ask(a, "GET", "/query", "").Code), ask(a, "GET", "/query", "").Body.String()}
	if diff := cmp.Diff(got, []string{"90\n", "500", "80\n"}); diff != "" {
		t.Error(diff)
	}
}

func TestAPackMayHaveTheGoldenExchangesOfSeveralProfiles(t *testing.T) {
	p := sim.Generic()
	p.Golden = "generic stripe"
	a := api(t, sim.World{Packs: []sim.Pack{p}, Steps: "GET /health: golden(an edge that limits), golden(an object that another request holds)"})
	if got := statuses(a, "/health", 2); got[0] != 429 || got[1] != 429 {
		t.Errorf("got %v", got)
	}
}

func TestAShortHintIsShorterThanTheTruth(t *testing.T) {
	for truth, want := range map[time.Duration]string{time.Second: "0", 1500 * time.Millisecond: "0", 2 * time.Second: "1", 3 * time.Second: "1", 90 * time.Second: "45"} {
		a := api(t, stopped(rate.Limit{Name: "a", Capacity: 1, Refill: 1 / truth.Seconds(), Hint: rate.ShortHint}))
		ask(a, "GET", "/v1/bibs/1", "")
		w := ask(a, "GET", "/v1/bibs/1", "")
		if got := w.Header().Get("Retry-After"); w.Code != 429 || got != want {
			t.Errorf("of %v: got %d, Retry-After %q, want %s", truth, w.Code, got, want)
		}
	}
}
