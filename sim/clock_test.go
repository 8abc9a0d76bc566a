package sim_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestASteppedClockStandsStillUntilItIsMoved(t *testing.T) {
	a := api(t, sim.World{Rate: 1, Clock: sim.Clock{Stepped: true, Start: noon}})
	got := statuses(a, "/v1/bibs/1", 2)
	w := ask(a, "POST", "/_sim/clock", `{"advance": "1s"}`)
	if want := `"2026-03-01T12:00:01Z"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %s, want %s", w.Body, want)
	}
	got = append(got, statuses(a, "/v1/bibs/1", 2)...)
	if diff := cmp.Diff(got, []int{200, 429, 200, 429}); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerIsDatedByTheClockOfTheCase(t *testing.T) {
	a := api(t, sim.World{Clock: sim.Clock{Stepped: true, Start: noon}, Steps: "GET /health: 503(date=90s)"})
	h := ask(a, "GET", "/health", "").Header()
	if got, want := h.Get("Date")+" "+h.Get("Retry-After"), "Sun, 01 Mar 2026 12:00:00 GMT Sun, 01 Mar 2026 12:01:30 GMT"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAScaledClockRunsFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Clock: sim.Clock{Scale: 60, Start: noon}, Steps: "GET /health: slow(for=1m)"})
		begin := time.Now()
		ask(a, "GET", "/health", "")
		if got := time.Since(begin); got != time.Second {
			t.Errorf("a minute took %v", got)
		}
		if got := a.Case("").Now(); !got.Equal(noon.Add(time.Minute)) {
			t.Errorf("got %v", got)
		}
	})
}

func TestAWaitEndsWhenTheClockIsMovedPastIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Clock: sim.Clock{Stepped: true}, Steps: "GET /health: slow(for=1h)"})
		done := make(chan int, 1)
		go func() { done <- ask(a, "GET", "/health", "").Code }()
		synctest.Wait()
		a.Case("").Advance(time.Hour - 1)
		synctest.Wait()
		if len(done) != 0 {
			t.Error("it ended early")
		}
		a.Case("").Advance(1)
		if got := <-done; got != 200 {
			t.Errorf("got %d", got)
		}
	})
}

func TestACallerThatLeavesEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Clock: sim.Clock{Stepped: true}, Steps: "GET /health: slow(for=1h)"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() {
			a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/health", nil))
			close(done)
		}()
		synctest.Wait()
		cancel()
		<-done
	})
}

// planner is a pack with one operation that plans two things and shows what
// became of them.
func planner() sim.Pack {
	note := func(x *sim.Exchange, s string) {
		seen, _ := sim.Rows[string](x, "seen").Get("all")
		sim.Rows[string](x, "seen").Put("all", seen+s)
	}
	return sim.Pack{Name: "planner", Operations: []sim.Operation{
		{Route: "POST /plan", Do: func(x *sim.Exchange) sim.Answer {
			x.After(2*time.Second, func(now time.Time) { note(x, now.Format("b05 ")) })
			x.After(time.Second, func(now time.Time) { note(x, now.Format("a05 ")) })
			return sim.JSON(200, "planned")
		}},
		{Route: "GET /seen", Do: func(x *sim.Exchange) sim.Answer {
			seen, _ := sim.Rows[string](x, "seen").Get("all")
			return sim.Text(200, "text/plain", seen)
		}},
	}}
}

func TestWhatIsPlannedHappensInOrderEachAtItsInstant(t *testing.T) {
	a := api(t, sim.World{Packs: []sim.Pack{planner()}, Clock: sim.Clock{Stepped: true, Start: noon}})
	ask(a, "POST", "/plan", "")
	a.Case("").Advance(time.Minute)
	if got := ask(a, "GET", "/seen", "").Body.String(); got != "a01 b02 " {
		t.Errorf("got %q", got)
	}
}

func TestAResetForgetsWhatWasPlanned(t *testing.T) {
	a := api(t, sim.World{Packs: []sim.Pack{planner()}, Clock: sim.Clock{Stepped: true}})
	ask(a, "POST", "/plan", "")
	a.Reset()
	a.Case("").Advance(time.Minute)
	if got := ask(a, "GET", "/seen", "").Body.String(); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestTheWallsClockCanBeMovedOnToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Packs: []sim.Pack{planner()}})
		ask(a, "POST", "/plan", "")
		time.Sleep(time.Second)
		synctest.Wait()
		a.Case("").Advance(time.Second)
		if got := len(ask(a, "GET", "/seen", "").Body.String()); got != len("a01 b02 ") {
			t.Errorf("got %d bytes", got)
		}
	})
}

func TestAClockMovesForwardOnlyAndSaysSo(t *testing.T) {
	a := api(t, sim.World{})
	for _, body := range []string{``, `{}`, `{"advance": "-1s"}`, `{"advance": "soon"}`, `{"advance": "9999999h"}`} {
		if w := ask(a, "POST", "/_sim/clock", body); w.Code != 400 || !strings.Contains(w.Body.String(), "advance") {
			t.Errorf("%q: got %d %s", body, w.Code, w.Body)
		}
	}
}
