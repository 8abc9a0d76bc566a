package gauge_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/gauge"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/rate"
)

// counting is a pack whose one operation tells what its gauge says.
func counting(own ...rate.Limit) sim.Pack {
	return sim.Pack{Name: "counting", Limits: own, Operations: []sim.Operation{{Route: "GET /count", Do: func(x *sim.Exchange) sim.Answer {
		g, ok := gauge.Of(x, own, "hour")
		if !ok {
			return sim.Text(200, "text/plain", "none")
		}
		g.Take(1)
		t, ok := g.Told()
		if !ok {
			return sim.Text(200, "text/plain", "silent")
		}
		return sim.Text(200, "text/plain", strconv.Itoa(int(t.Remaining))+" until "+g.Reset(t).Format(time.TimeOnly))
	}}}}
}

func hour(l rate.Limit) rate.Limit {
	l.Name, l.Kind, l.Window = "hour", rate.FixedWindow, time.Hour
	if l.Capacity == 0 {
		l.Capacity = 10
	}
	return l
}

func TestAGaugeTellsWhatIsLeftUntilWhen(t *testing.T) {
	c := packtest.Serve(t, counting(hour(rate.Limit{})), sim.World{})
	got := []string{c.Get("/count").Body, c.Get("/count").Body}
	c.Advance(time.Hour)
	got = append(got, c.Get("/count").Body)
	if diff := cmp.Diff(got, []string{"9 until 13:00:00", "8 until 13:00:00", "9 until 14:00:00"}); diff != "" {
		t.Error(diff)
	}
}

func TestCallersHaveGaugesOfTheirOwnUnlessTheLimitIsForEveryone(t *testing.T) {
	for scope, want := range map[rate.Scope]string{rate.Credential: "9 until 13:00:00", rate.Everyone: "8 until 13:00:00"} {
		c := packtest.Serve(t, counting(hour(rate.Limit{Scope: scope})), sim.World{})
		c.Get("/count", "X-Api-Key: a")
		if got := c.Get("/count", "X-Api-Key: b").Body; got != want {
			t.Errorf("scope %d: got %q, want %q", scope, got, want)
		}
	}
}

func TestTheLimitsOfTheWorldAreTheOnesThatCount(t *testing.T) {
	own := hour(rate.Limit{})
	for want, w := range map[string]sim.World{
		"99 until 13:00:00": {Limits: []rate.Limit{hour(rate.Limit{Capacity: 100})}},
		"none":              {Limits: []rate.Limit{}},
		"silent":            {Limits: []rate.Limit{hour(rate.Limit{Tell: rate.Missing})}},
	} {
		if got := packtest.Serve(t, counting(own), w).Get("/count").Body; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
