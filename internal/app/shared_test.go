package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/config"
	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/policy"
)

// beside starts another process on the queue of a.
func beside(t *testing.T, a *App, cfg *config.Config) *App {
	t.Helper()
	alone := *cfg
	alone.Queue = nil
	b, err := New(&alone, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Stop(context.Background()) })
	if b.queue, err = b.keep(cfg, a.queue.store, nil); err != nil {
		t.Fatal(err)
	}
	b.queue.shared = true
	s, units, err := b.settings(&alone, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.units, b.gateway = units, gateway.New(s)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// shows is how an endpoint stands, as the admin port says.
func shows(t *testing.T, a *App) (s struct {
	Hold     *gateway.Hold
	Recovery gateway.Recovery
}) {
	t.Helper()
	_, text := ask(t, "GET", "http://"+a.AdminAddr()+"/_heed/endpoints/api", "")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// operate tells the admin port of a to do something with the endpoint.
func operate(t *testing.T, a *App, what string) {
	t.Helper()
	if resp, text := ask(t, "POST", "http://"+a.AdminAddr()+"/_heed/endpoints/api/"+what, ""); resp.StatusCode != 200 {
		t.Fatalf("%s: got %d %s", what, resp.StatusCode, text)
	}
}

// slowed waits until a recovery is in its slow phase.
func slowed(t *testing.T, a *App) gateway.Recovery {
	t.Helper()
	for range 200 {
		if r := shows(t, a).Recovery; r.Phase == phaseSlow {
			return r
		}
		get(t, a.DataAddr(), "/api/x")
	}
	t.Fatalf("got %+v", shows(t, a).Recovery)
	return gateway.Recovery{}
}

// eight is a configuration with an endpoint that bears eight calls at once.
func eight(t *testing.T) *config.Config {
	t.Helper()
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	cfg.Endpoints[0].Policy.Limits.Concurrency = 8
	cfg.Endpoints[0].Policy.Breaker = policy.Breaker{Off: true}
	queued(t, cfg)
	return cfg
}

func TestWhatIsPausedOnOneGatewayIsPausedOnAnother(t *testing.T) {
	cfg := eight(t)
	a := start(t, cfg, Options{})
	b := beside(t, a, cfg)
	operate(t, a, "pause")
	b.follow(time.Now())
	if code, text := get(t, b.DataAddr(), "/api/x"); code != 503 {
		t.Errorf("while it is paused the other one answers %d %s", code, text)
	}
	operate(t, a, "resume")
	b.follow(time.Now())
	if code, text := get(t, b.DataAddr(), "/api/x"); code != 200 {
		t.Errorf("when it is resumed the other one answers %d %s", code, text)
	}
}

func TestAGatewayFollowsTheOthersByItself(t *testing.T) {
	cfg := eight(t)
	a := start(t, cfg, Options{})
	b := beside(t, a, cfg)
	until := func(want int) {
		t.Helper()
		code := 0
		for deadline := time.Now().Add(20 * time.Second); code != want && time.Now().Before(deadline); {
			code, _ = get(t, b.DataAddr(), "/api/x")
		}
		if code != want {
			t.Errorf("the other one still answers %d, want %d", code, want)
		}
	}
	operate(t, a, "pause")
	until(503)
	operate(t, a, "resume")
	until(200)
}

func TestARecoveryIsCarriedOutOnAllGateways(t *testing.T) {
	cfg := eight(t)
	a := start(t, cfg, Options{})
	b := beside(t, a, cfg)
	a.healing.window, b.healing.window = 300*time.Millisecond, time.Hour
	operate(t, a, "recover")
	b.follow(time.Now())
	if r := slowed(t, b); r.Concurrency != 2 {
		t.Errorf("the other one goes on with a concurrency of %d, want a quarter of 8", r.Concurrency)
	}
	for range 5000 {
		if shows(t, a).Recovery.Phase == "normal" {
			break
		}
		get(t, a.DataAddr(), "/api/x")
	}
	if p := shows(t, a).Recovery.Phase; p != "normal" {
		t.Fatalf("the first one is %s", p)
	}
	for range 1000 { // it is written down after it has ended
		if b.follow(time.Now()); shows(t, b).Recovery.Phase == "normal" {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.units["api"].transport.Policy.Limits.Concurrency; b.healing.slows("api") || now != 8 {
		t.Errorf("the other one still recovers: %v, with a concurrency of %d", b.healing.slows("api"), now)
	}
}

func TestARecoveryGoesOnAfterARestartAndAReload(t *testing.T) {
	cfg := eight(t)
	a := start(t, cfg, Options{})
	operate(t, a, "recover")
	slowed(t, a)
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := start(t, cfg, Options{})
	if r := slowed(t, b); r.Concurrency != 2 {
		t.Errorf("after a restart it goes on with a concurrency of %d, want 2", r.Concurrency)
	}
	changed := *cfg
	changed.Endpoints = append([]config.Endpoint(nil), cfg.Endpoints...)
	changed.Endpoints[0].Policy.Limits.Concurrency = 40
	if err := b.Reload(&changed); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	now := b.units["api"]
	b.mu.Unlock()
	if r := shows(t, b).Recovery; r.Phase != phaseSlow || r.Concurrency != 10 || now.transport.Policy.Limits.Concurrency != 10 {
		t.Errorf("after a reload it is %s with %d of a concurrency of %d, want a quarter of 40", r.Phase, r.Concurrency, now.transport.Policy.Limits.Concurrency)
	}
	same := changed
	if err := b.Reload(&same); err != nil || b.units["api"] != now {
		t.Errorf("a reload that changes nothing renews it (%v)", err)
	}
}

// recovering are two configurations, with an endpoint and without it, and a
// gateway in which a call keeps the recovery of the endpoint from going on.
func recovering(t *testing.T) (a *App, with, without *config.Config) {
	t.Helper()
	calls, free := make(chan struct{}, 1), make(chan struct{})
	e := api(t, "api", func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			calls <- struct{}{}
			<-free
		}
	})
	with = settings(e)
	queued(t, with)
	gone := *with
	gone.Endpoints = nil
	a = start(t, with, Options{})
	var all sync.WaitGroup
	all.Go(func() { get(t, a.DataAddr(), "/api/held") })
	t.Cleanup(all.Wait)
	t.Cleanup(func() { close(free) })
	<-calls
	operate(t, a, "recover")
	if s := shows(t, a); s.Hold == nil || s.Recovery.Phase != phaseDraining {
		t.Fatalf("got %+v", s)
	}
	return a, with, &gone
}

func TestAnEndpointThatIsAddedAgainIsNotHeldByTheRecoveryOfTheOneThatWasRemoved(t *testing.T) {
	a, with, without := recovering(t)
	for _, cfg := range []*config.Config{without, with} {
		if err := a.Reload(cfg); err != nil {
			t.Fatal(err)
		}
	}
	if s := shows(t, a); s.Hold != nil || s.Recovery.Phase != "normal" {
		t.Errorf("it stands at %+v, want it normal and not held", s)
	}
	if code, text := get(t, a.DataAddr(), "/api/x"); code != 200 {
		t.Errorf("got %d %s", code, text)
	}
	a.follow(time.Now()) // what a restart would take up
	if s := shows(t, a); s.Hold != nil || s.Recovery.Phase != "normal" {
		t.Errorf("the queue has it at %+v, want it normal and not held", s)
	}
}

func TestAnEndpointThatIsRemovedFromOneGatewayRecoversOnTheOthers(t *testing.T) {
	a, with, without := recovering(t)
	a.queue.shared = true
	b := beside(t, a, with)
	b.follow(time.Now())
	if err := a.Reload(without); err != nil {
		t.Fatal(err)
	}
	b.follow(time.Now())
	if r := slowed(t, b); r.Phase != phaseSlow {
		t.Errorf("the other one is %s", r.Phase)
	}
	if s := shows(t, b); s.Hold != nil {
		t.Errorf("the other one is held: %+v", *s.Hold)
	}
}

func TestARecoveryWhoseGatewayIsGoneHoldsNobodyForEver(t *testing.T) {
	cfg := eight(t)
	a := start(t, cfg, Options{})
	a.queue.phase("api", phaseDraining, time.Now().Add(-time.Hour)) // and the process that began it was killed
	a.follow(time.Now())
	slowed(t, a)
	if s := shows(t, a); s.Hold != nil {
		t.Errorf("it is held: %s", fmt.Sprint(*s.Hold))
	}
}
