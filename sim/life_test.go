package sim_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

// office is a world of jobs on a clock that stands still, with one job.
func office(t *testing.T) (a *sim.API, job string) {
	t.Helper()
	a = api(t, sim.World{Clock: sim.Clock{Stepped: true}})
	return a, ask(a, "POST", "/v1/jobs", "").Header().Get("Location")
}

// state is the status of the answer and what it says of the job.
func state(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var job struct{ Status any }
	if err := json.Unmarshal(w.Body.Bytes(), &job); err != nil {
		t.Fatal(err)
	}
	s, _ := job.Status.(string)
	return w.Result().Status[:3] + " " + s
}

func TestAJobIsCompleteAfterTwoSecondsOrAtTheThirdLook(t *testing.T) {
	a, job := office(t)
	look := func() string { return state(t, ask(a, "GET", job, "")) }
	if diff := cmp.Diff([]string{look(), look(), look()}, []string{"200 pending", "200 pending", "200 complete"}); diff != "" {
		t.Error("by looks: " + diff)
	}
	a, job = office(t)
	got := []string{look()}
	a.Case("").Advance(2 * time.Second)
	if diff := cmp.Diff(append(got, look()), []string{"200 pending", "200 complete"}); diff != "" {
		t.Error("by time: " + diff)
	}
}

func TestALateCancelIsAConflict(t *testing.T) {
	a, job := office(t)
	cancel := func() string { return state(t, ask(a, "DELETE", job, "")) }
	if got := cancel(); got != "200 canceled" {
		t.Errorf("in time: got %s", got)
	}
	a.Case("").Advance(time.Minute)
	if got := state(t, ask(a, "GET", job, "")); got != "200 canceled" {
		t.Errorf("later: got %s", got)
	}
	a, job = office(t)
	a.Case("").Advance(2 * time.Second)
	if got := cancel(); got != "409 " {
		t.Errorf("too late: got %s", got)
	}
}

func TestAJobExpires(t *testing.T) {
	a, job := office(t)
	a.Case("").Advance(2*time.Second + time.Hour)
	if got := ask(a, "GET", job, "").Code; got != 410 {
		t.Errorf("got %d", got)
	}
}

func TestAPlanOfAnEarlierStateIsVoid(t *testing.T) {
	life := sim.Life{{From: "a", To: "b", After: time.Minute}, {From: "a", To: "c", On: "go"}, {From: "c", To: "a", On: "back"}}
	type thing struct{ sim.Stage }
	var moves []string
	p := sim.Pack{Name: "things", Operations: []sim.Operation{
		{Route: "POST /new", Do: func(x *sim.Exchange) sim.Answer {
			one := &thing{}
			sim.Rows[*thing](x, "things").Put("1", one)
			life.Begin(x, &one.Stage, "a", func(from string) { moves = append(moves, from+one.State) })
			return sim.JSON(200, nil)
		}},
		{Route: "POST /{event}", Do: func(x *sim.Exchange) sim.Answer {
			one, _ := sim.Rows[*thing](x, "things").Get("1")
			return sim.JSON(200, life.Fire(x, &one.Stage, x.Value("event")))
		}},
	}}
	a := api(t, sim.World{Packs: []sim.Pack{p}, Clock: sim.Clock{Stepped: true}})
	for _, event := range []string{"new", "go", "go", "back"} {
		ask(a, "POST", "/"+event, "")
		a.Case("").Advance(25 * time.Second)
	}
	a.Case("").Advance(35*time.Second - 1)
	if diff := cmp.Diff(moves, []string{"ac", "ca"}); diff != "" {
		t.Error(diff)
	}
	a.Case("").Advance(1)
	if diff := cmp.Diff(moves, []string{"ac", "ca", "ab"}); diff != "" {
		t.Error(diff)
	}
}
