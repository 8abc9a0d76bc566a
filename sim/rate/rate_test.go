package rate_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim/rate"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// visits asks at each instant after noon and returns the waits, spending where
// there is none and refusing where there is one.
func visits(l rate.Limit, cost float64, at ...time.Duration) []time.Duration {
	var m rate.Meter
	var got []time.Duration
	for _, d := range at {
		now := noon.Add(d)
		wait := m.Ask(&l, now, cost)
		if wait == 0 {
			m.Spend(&l, now, cost)
		} else {
			wait = m.Refuse(&l, now, wait)
		}
		got = append(got, wait)
	}
	return got
}

const s = time.Second

func TestAKindLetsThroughWhatItHolds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit rate.Limit
		at    []time.Duration
		want  []time.Duration
	}{
		{"a token bucket refills", rate.Limit{Kind: rate.TokenBucket, Capacity: 2, Refill: 0.5},
			[]time.Duration{0, 0, 0, 1500 * time.Millisecond, 2 * s, 2 * s}, []time.Duration{0, 0, 2 * s, s / 2, 0, 2 * s}},
		{"a leaky bucket leaks", rate.Limit{Kind: rate.LeakyBucket, Capacity: 2, Refill: 2},
			[]time.Duration{0, 0, 0, s / 2, s / 2}, []time.Duration{0, 0, s / 2, 0, s / 2}},
		{"a fixed window begins anew at a multiple of itself", rate.Limit{Kind: rate.FixedWindow, Capacity: 1, Window: 10 * s},
			[]time.Duration{9 * s, 9 * s, 10 * s, 10 * s}, []time.Duration{0, s, 0, 10 * s}},
		{"a sliding window remembers the one before", rate.Limit{Kind: rate.SlidingWindow, Capacity: 2, Window: 10 * s},
			[]time.Duration{9 * s, 9 * s, 10 * s, 15 * s, 15 * s}, []time.Duration{0, 0, 5 * s, 0, 5 * s}},
		{"a daily limit begins anew at its midnight", rate.Limit{Kind: rate.Daily, Capacity: 1, Midnight: 13 * time.Hour},
			[]time.Duration{0, 0, time.Hour - 1, time.Hour}, []time.Duration{0, time.Hour, 1, 0}},
	} {
		if diff := cmp.Diff(visits(tt.limit, 1, tt.at...), tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
	}
}

func TestEarlyRequestsDoubleTheBlockUpToItsMost(t *testing.T) {
	l := rate.Limit{Kind: rate.TokenBucket, Capacity: 1, Refill: 1, Penalty: rate.Penalty{First: 30 * s, Max: 120 * s}}
	got := visits(l, 1, 0, 0, s, 2*s, 3*s, 123*s)
	if diff := cmp.Diff(got, []time.Duration{0, 30 * s, 60 * s, 120 * s, 120 * s, 0}); diff != "" {
		t.Error(diff)
	}
}

func TestEnoughEarlyRequestsAreABan(t *testing.T) {
	l := rate.Limit{Kind: rate.TokenBucket, Capacity: 1, Refill: 1, Penalty: rate.Penalty{First: 30 * s, BanAfter: 2, BanFor: 600 * s}}
	var m rate.Meter
	m.Spend(&l, noon, 1)
	var got []bool
	for range 3 {
		m.Refuse(&l, noon, s)
		_, banned := m.Blocked(noon)
		got = append(got, banned)
	}
	if diff := cmp.Diff(got, []bool{false, false, true}); diff != "" {
		t.Error(diff)
	}
	if got := m.Ask(&l, noon, 1); got != 600*s {
		t.Errorf("got %v", got)
	}
}

func TestARequestThatRunsHoldsItsPlaceUntilItIsReleased(t *testing.T) {
	l := rate.Limit{Kind: rate.Concurrency, Capacity: 1}
	var m rate.Meter
	m.Spend(&l, noon, 1)
	if m.Ask(&l, noon, 1) == 0 {
		t.Error("a second request fits")
	}
	m.Release(&l, 1)
	if wait := m.Ask(&l, noon, 1); wait != 0 {
		t.Errorf("after the release: got %v", wait)
	}
}

func TestHeadersCanLieOrComeLate(t *testing.T) {
	for tell, want := range map[rate.Tell][]float64{
		rate.Honest: {4, 3, 2}, rate.Missing: {-1, -1, -1}, rate.Late: {-1, 4, 3}, rate.Lying: {5, 5, 5},
	} {
		l := rate.Limit{Kind: rate.FixedWindow, Capacity: 5, Window: time.Minute, Tell: tell}
		var m rate.Meter
		var got []float64
		for range 3 {
			m.Spend(&l, noon, 1)
			told, ok := m.Told(&l, noon)
			if !ok {
				told.Remaining = -1
			}
			got = append(got, told.Remaining)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("tell %d (-got +want):\n%s", tell, diff)
		}
	}
}

func TestALimitThatCannotBeIsRefused(t *testing.T) {
	for _, l := range []rate.Limit{
		{Capacity: 0, Refill: 1}, {Capacity: 1}, {Kind: rate.FixedWindow, Capacity: 1}, {Kind: 99, Capacity: 1},
		{Kind: rate.Concurrency, Capacity: 1, Scope: rate.PathValue},
	} {
		if len(l.Check()) == 0 {
			t.Errorf("%+v: no error", l)
		}
	}
}

func TestALimitThatLastsTooLongIsRefused(t *testing.T) {
	for name, l := range map[string]rate.Limit{
		"a window":  {Kind: rate.FixedWindow, Capacity: 1, Window: math.MaxInt64},
		"a ban":     {Kind: rate.TokenBucket, Capacity: 1, Refill: 1, Penalty: rate.Penalty{First: 1, BanAfter: 1, BanFor: math.MaxInt64}},
		"a penalty": {Kind: rate.TokenBucket, Capacity: 1, Refill: 1, Penalty: rate.Penalty{First: 1, Max: math.MaxInt64}},
		"midnight":  {Kind: rate.Daily, Capacity: 1, Midnight: math.MaxInt64},
	} {
		if len(l.Check()) == 0 {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestWhoObeysAnHonestResetIsNeverEarly(t *testing.T) {
	for name, l := range map[string]rate.Limit{
		"token bucket":   {Kind: rate.TokenBucket, Capacity: 2, Refill: 0.5},
		"leaky bucket":   {Kind: rate.LeakyBucket, Capacity: 2, Refill: 2},
		"fixed window":   {Kind: rate.FixedWindow, Capacity: 2, Window: 60 * s},
		"sliding window": {Kind: rate.SlidingWindow, Capacity: 2, Window: 60 * s},
		"daily":          {Kind: rate.Daily, Capacity: 2},
		"penalty":        {Kind: rate.TokenBucket, Capacity: 2, Refill: 10, Penalty: rate.Penalty{First: 30 * s}},
	} {
		for _, cost := range []float64{1, 2} {
			var m rate.Meter
			now := noon
			for range 5 {
				for m.Ask(&l, now, cost) == 0 {
					m.Spend(&l, now, cost)
				}
				wait := m.Refuse(&l, now, m.Ask(&l, now, cost))
				told, _ := m.Told(&l, now)
				if told.Reset < wait {
					t.Errorf("%s: told to wait %v, but Reset says %v", name, wait, told.Reset)
				}
				now = now.Add(told.Reset)
				if left := m.Ask(&l, now, cost); left != 0 {
					t.Errorf("%s: still %v after Reset", name, left)
				}
				now = now.Add(7 * s)
			}
		}
	}
}
