package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// aborted runs do and tells whether it aborted the handler.
func aborted(t *testing.T, do func()) (is bool) {
	t.Helper()
	defer func() {
		switch r := recover(); r {
		case nil:
		case http.ErrAbortHandler:
			is = true
		default:
			t.Errorf("panic: %v", r)
		}
	}()
	do()
	return false
}

func TestARequestThatWaitsEndsWithItsCase(t *testing.T) {
	for _, step := range []string{"slow(for=1h)", "hang", "stall(for=1h)", "drip(every=1h)"} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := api(t, sim.World{Steps: "GET /v1/bibs: " + step})
				begin := time.Now()
				time.AfterFunc(time.Minute, func() { a.Remove("x") })
				if !aborted(t, func() { ask(a, "GET", "/t/x/v1/bibs", "") }) || time.Since(begin) != time.Minute {
					t.Errorf("it ended in good order, after %v", time.Since(begin))
				}
			})
		})
	}
}

func TestACallerMayLeaveACaseThatIsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Steps: "GET /v1/bibs: slow(for=1h) x64"})
		var all sync.WaitGroup
		for range 64 {
			ctx, leave := context.WithCancel(t.Context())
			r := httptest.NewRequest("GET", "/t/x/v1/bibs", nil).WithContext(ctx)
			all.Go(func() { aborted(t, func() { a.ServeHTTP(httptest.NewRecorder(), r) }) })
			all.Go(func() {
				time.Sleep(time.Minute)
				leave()
			})
		}
		all.Go(func() {
			time.Sleep(time.Minute)
			a.Remove("x")
		})
		all.Wait()
	})
}

// upgrading is a receiver that switches to another protocol and then says nothing.
func upgrading(t *testing.T) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadAtLeast(c, make([]byte, 4096), 4)
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: silence\r\n\r\n")
			t.Cleanup(func() { c.Close() })
		}
	}()
	return "http://" + l.Addr().String()
}

func TestAReceiverThatSwitchesProtocolsHoldsNobodyUp(t *testing.T) {
	p := sim.Generic()
	p.Webhooks.Retries = []time.Duration{}
	a := api(t, sim.World{Packs: []sim.Pack{tells(p)}, Clock: sim.Clock{Stepped: true}, Webhooks: []sim.Webhook{{URL: upgrading(t)}}})
	ask(a, "POST", "/tell", "")
	a.Case("").Advance(time.Minute)
	got := a.Journal().Webhooks
	if len(got) != 1 || got[0].Status != 101 || got[0].Outcome != "gave_up" {
		t.Errorf("got %+v", got)
	}
	a.Close()
}

// tells is p with an operation that emits an event.
func tells(p sim.Pack) sim.Pack {
	p.Operations = append(p.Operations, sim.Operation{Route: "POST /tell", Do: func(x *sim.Exchange) sim.Answer {
		x.Emit(sim.Event{Type: "told", Body: []byte("{}")})
		return sim.JSON(200, "told")
	}})
	return p
}

// within carries webhooks to a handler in the same process, which does not
// look at the deadline.
type within struct {
	http.Handler
	begun chan struct{}
}

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	close(w.begun)
	<-r.Context().Done()
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return out.Result(), nil
}

func TestAReceiverMayAskTheSimulatorThatForgetsItsCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *sim.API
		begun := make(chan struct{})
		to := within{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.Case("y") }), begun}
		a = api(t, sim.World{Packs: []sim.Pack{tells(sim.Generic())}, Courier: to, Webhooks: []sim.Webhook{{URL: "http://inside.example"}}})
		ask(a, "POST", "/t/x/tell", "")
		<-begun
		if !a.Remove("x") {
			t.Error("the case was not there")
		}
	})
}

func TestAPathWithoutASlashIsNoPanic(t *testing.T) {
	a := api(t, sim.World{})
	for _, target := range []string{"generic", "generic/health", "*", "http://sim.example", "mailto:x"} {
		r, err := http.NewRequest("GET", target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if aborted(t, func() { a.ServeHTTP(httptest.NewRecorder(), r) }) {
			t.Errorf("%s: aborted", target)
		}
	}
}

func TestAClockEndsBeforeTheJournalCannotTellTheTime(t *testing.T) {
	a := api(t, sim.World{Clock: sim.Clock{Stepped: true}})
	refused := 0
	for range 40 {
		if ask(a, "POST", "/_sim/clock", `{"advance": "87600h"}`).Code == 400 {
			refused++
		}
	}
	for range 100 {
		a.Case("").Advance(math.MaxInt64)
	}
	ask(a, "GET", "/health", "")
	if at := a.Journal().Entries[0].Time; refused == 0 || at.Year() != 2250 || ask(a, "GET", "/_sim/clock", "").Code != 200 {
		t.Errorf("%d refused; the journal says %v", refused, at)
	}
}

func TestAFastClockStopsAtTheEndOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Clock: sim.Clock{Scale: 1e6}})
		time.Sleep(24 * time.Hour)
		if got := a.Case("").Now().Year(); got != 2250 {
			t.Errorf("a day at a million times the pace ends in %d", got)
		}
	})
}

func TestARequestThatNeverFitsIsToldNoWait(t *testing.T) {
	p := sim.Generic()
	for i := range p.Operations {
		p.Operations[i].Cost, p.Operations[i].Free = 10, false
	}
	for _, l := range []rate.Limit{
		{Kind: rate.TokenBucket, Refill: 1}, {Kind: rate.LeakyBucket, Refill: 1},
		{Kind: rate.FixedWindow, Window: time.Minute}, {Kind: rate.SlidingWindow, Window: time.Minute}, {Kind: rate.Daily},
	} {
		l.Name, l.Capacity, l.Weighted = "narrow", 1, true
		a := api(t, sim.World{Packs: []sim.Pack{p}, Limits: []rate.Limit{l}})
		w := ask(a, "GET", "/v1/bibs", "")
		if told := w.Header().Values("Retry-After"); w.Code != 429 || told != nil || !strings.Contains(w.Body.String(), "narrow") {
			t.Errorf("%v: got %d, Retry-After %v, %s", l.Kind, w.Code, told, w.Body)
		}
	}
}

func TestAWorldHasBounds(t *testing.T) {
	for _, w := range []sim.World{{JournalSize: math.MaxInt}, {Records: math.MaxInt}} {
		if _, err := sim.New(w); err == nil {
			t.Errorf("%+v was made", w)
		}
	}
}

func TestAGoldenAnswerThatBreaksOffIsSharedByAll(t *testing.T) {
	p := sim.Generic()
	a := api(t, sim.World{Packs: []sim.Pack{p}, Steps: "GET /v1/bibs: golden(a connection that ends within the body) x1000"})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				w := ask(a, "GET", "/v1/bibs", "")
				if diff := cmp.Diff(w.Header()["Content-Length"], []string{"16"}); diff != "" || w.Body.Len() != 5 {
					t.Errorf("%d bytes, %s", w.Body.Len(), diff)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestWhatIsPlannedKeepsNoRequestAlive(t *testing.T) {
	p := sim.Generic()
	var seen *sim.Exchange
	p.Operations = append(p.Operations, sim.Operation{Route: "POST /plan", Do: func(x *sim.Exchange) sim.Answer {
		seen = x
		x.After(time.Hour, func(time.Time) { x.Effect("done", x.ID("d_"), int64(len(x.Request.Method))) })
		return sim.JSON(200, len(x.Body))
	}})
	a := api(t, sim.World{Packs: []sim.Pack{p}, Clock: sim.Clock{Stepped: true}})
	w := ask(a, "POST", "/plan", strings.Repeat("x", 1<<20), "Authorization: Bearer secret")
	var got int
	if err := errors.Join(json.Unmarshal(w.Body.Bytes(), &got)); err != nil || got != 1<<20 {
		t.Fatalf("got %v %d", err, got)
	}
	if seen.Body != nil || len(seen.Request.Header) > 0 {
		t.Errorf("%d bytes and %v are kept", len(seen.Body), seen.Request.Header)
	}
	a.Case("").Advance(time.Hour)
	if e := a.Effects().Kinds["done"]; e.Count != 1 || e.Amount != 4 {
		t.Errorf("got %+v", e)
	}
}
