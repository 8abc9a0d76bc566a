package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
)

// Mode is how an operator holds an endpoint back.
type Mode string

// The modes.
const (
	// Paused: nothing is sent. What is to be answered later is taken in.
	Paused Mode = "paused"
	// ForcedOpen: as if the breaker were open.
	ForcedOpen Mode = "open"
	// Draining: nothing new is taken in, and what is queued is sent.
	Draining Mode = "draining"
	// Recovering: as Paused, while what was learned is forgotten.
	Recovering Mode = "recovering"
)

// Hold is what an operator wants of an endpoint.
type Hold struct {
	Mode  Mode      `json:"mode"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"` // zero: until it is resumed
}

// holds are the endpoints that are held back.
type holds struct {
	any     atomic.Bool // for requests, which rarely meet one
	mu      sync.Mutex
	m       map[string]Hold
	changed map[string]time.Time // here, last
}

// Hold holds an endpoint back in this process, or lets it go with the zero
// Hold. The gates of the queue are another matter: see the admin port.
func (g *Gateway) Hold(name string, h Hold) {
	g.holds.mu.Lock()
	defer g.holds.mu.Unlock()
	if g.holds.changed == nil {
		g.holds.changed = map[string]time.Time{}
	}
	g.holds.changed[name] = time.Now()
	g.holds.set(name, h)
}

func (hs *holds) set(name string, h Hold) {
	if h.Mode == "" {
		delete(hs.m, name)
	} else {
		if hs.m == nil {
			hs.m = map[string]Hold{}
		}
		hs.m[name] = h
	}
	hs.any.Store(len(hs.m) > 0)
}

// What the gate of a whole endpoint says of how it is held, in the word of who
// closed it. Whoever shares the queue, and a restart, learns it from there.
var gateWords = map[Mode]string{
	Paused: SourceOperator, ForcedOpen: "operator-open", Draining: "operator-drain", Recovering: "recovering",
}

// holdOf reads how an endpoint is held off its gate.
func holdOf(gate *queue.Gate, now time.Time) Hold {
	if gate.Paused {
		return Hold{Mode: Paused}
	}
	if gate.Source == gateWords[Draining] {
		return Hold{Mode: Draining}
	}
	if !gate.Closed.After(now) {
		return Hold{}
	}
	for mode, word := range gateWords {
		if word == gate.Source {
			return Hold{Mode: mode, Until: gate.Closed}
		}
	}
	return Hold{}
}

// Closing is the change of the gate of an endpoint that tells of a hold, and
// with the zero Hold that there is none. Whether it is paused stays as it is.
func (h *Hold) Closing(name string, now time.Time) queue.GateChange {
	until := h.Until
	if h.Mode == "" {
		until = now
	}
	return queue.GateChange{Endpoint: name, Closed: &until, Source: gateWords[h.Mode]}
}

// Follow takes up how the gates of the queue, as they were at an instant, say
// that endpoints are held back. What was changed here since then stays.
func (g *Gateway) Follow(gates []queue.Gate, at time.Time) {
	g.holds.mu.Lock()
	defer g.holds.mu.Unlock()
	now := time.Now()
	for i := range gates {
		name := gates[i].Endpoint
		if gates[i].Key != "" || !g.holds.changed[name].Before(at) {
			continue
		}
		h, is := holdOf(&gates[i], now), g.holds.m[name]
		if h.Mode == is.Mode && h.Until.Equal(is.Until) {
			continue
		}
		h.Since = now.UTC()
		g.holds.set(name, h)
	}
}

// RecoveryGate is the key of a gate that no call has: what it says of an
// endpoint is whether, and since when, it is being recovered.
const RecoveryGate = "_recovery"

// Internal tells whether a gate is one of the queue's own that nobody needs to
// see.
func Internal(g *queue.Gate) bool { return g.Endpoint == watchEndpoint || g.Key == RecoveryGate }

// Held tells whether an endpoint is held back, and how.
func (g *Gateway) Held(name string) (Hold, bool) {
	if g == nil || !g.holds.any.Load() {
		return Hold{}, false
	}
	g.holds.mu.Lock()
	defer g.holds.mu.Unlock()
	h, held := g.holds.m[name]
	if held && !h.Until.IsZero() && !time.Now().Before(h.Until) {
		delete(g.holds.m, name)
		g.holds.any.Store(len(g.holds.m) > 0)
		return Hold{}, false
	}
	return h, held
}

// heldEndpoint is one that is held back, as the admin port tells it.
type heldEndpoint struct {
	Endpoint string `json:"endpoint"`
	Hold
}

// held lists the endpoints that are held back, by name.
func (g *Gateway) held() []heldEndpoint {
	list := []heldEndpoint{}
	for name := range g.current.Load().routes {
		if h, is := g.Held(name); is {
			list = append(list, heldEndpoint{name, h})
		}
	}
	slices.SortFunc(list, func(a, b heldEndpoint) int { return strings.Compare(a.Endpoint, b.Endpoint) })
	return list
}

// The problems of endpoints that are held back.
var (
	paused = kind{"endpoint-paused", 503, "destination_unavailable", "An operator has paused the endpoint",
		"Try again after Retry-After, or hand the call over with Prefer: respond-async."}
	draining = kind{"endpoint-draining", 503, "destination_unavailable", "The endpoint takes nothing new until its queue is empty",
		"Try again after Retry-After, or ask an operator to resume it."}
	recovering = kind{"endpoint-recovering", 503, "destination_unavailable", "The endpoint is being brought back to normal",
		"Try again after Retry-After."}
)

// heldBack answers a request for an endpoint that is held back: it is taken
// into the queue where that is wanted, and refused otherwise.
func (x *exchange) heldBack(u *url.URL, h Hold, how handover, later bool) {
	k := map[Mode]kind{Paused: paused, ForcedOpen: endKind(heed.BreakerOpen), Draining: draining, Recovering: recovering}[h.Mode]
	takes := h.Mode != Draining && x.mayQueue() && (later || x.route.Async.Enqueue)
	if !takes {
		r := refuse(k, "")
		if r.retryAt = h.Until; h.Until.IsZero() {
			r.retryAt = time.Now().Add(10 * time.Second)
		}
		x.refuse(r)
		return
	}
	if !later {
		x.asked.Budget = 0 // the wait of the caller, who waits no longer
	}
	body, no := x.wholeBody()
	if no == nil {
		no = x.queue(u, body, how)
	}
	if no != nil {
		x.refuse(*no)
	}
}

// holdBack keeps a call in the queue that was claimed before its endpoint was
// held back. Its gate is not touched: it is closed where it has to be, and
// another gateway may know that it is open again.
func (g *Gateway) holdBack(name string) (queue.Outcome, bool) {
	h, held := g.Held(name)
	if !held || h.Mode == Draining {
		return queue.Outcome{}, false
	}
	return queue.Outcome{State: queue.Queued, Until: time.Now().Add(time.Second), Source: SourceOperator, Reason: queue.ReasonHandedBack}, true
}

// Recovery is where an endpoint stands that is being brought back to normal.
type Recovery struct {
	// Phase is normal, draining or slow.
	Phase string    `json:"phase"`
	Since time.Time `json:"since,omitzero"`
	// What it is slowed down to, while it is.
	Base        float64 `json:"backoff_base_seconds,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"`
	// What is waited for: the share of 429 among the attempts of the last
	// window, below Most, and the share of the quota that is left, above Least.
	Window    float64  `json:"window_seconds,omitempty"`
	Attempts  int      `json:"attempts"`
	Enough    int      `json:"attempts_wanted,omitempty"` // with fewer nobody knows how it is
	Throttled float64  `json:"throttled_share"`
	Most      float64  `json:"throttled_share_wanted,omitempty"`
	Remaining *float64 `json:"remaining_share,omitempty"` // none: the provider does not tell
	Least     float64  `json:"remaining_share_wanted,omitempty"`
	// Problem is what went wrong on the way. Empty: nothing.
	Problem string `json:"problem,omitempty"`
}

// ErrRecovering is that of a recovery that has begun already.
var ErrRecovering = errors.New("the endpoint is being recovered already")

// Roads are the roads of the endpoints, as operators change them.
type Roads interface {
	// Renew puts a new road in the place of one: what was learned of the
	// endpoint is forgotten, its breaker is closed, its credential fetched anew.
	Renew(ctx context.Context, name string) error
	// Recover does so with less of everything, until the endpoint is well.
	// ErrRecovering: that is under way.
	Recover(ctx context.Context, name string) error
	// Recovery tells where that stands.
	Recovery(name string) Recovery
}

// adminEndpoints serves what operators do with endpoints:
//
//	GET  /_heed/endpoints/{name}
//	POST /_heed/endpoints/{name}/pause
//	POST /_heed/endpoints/{name}/hold     {"until"} or {"for"}
//	POST /_heed/endpoints/{name}/breaker  {"state": "open", "for"} or {"state": "closed"}
//	POST /_heed/endpoints/{name}/drain
//	POST /_heed/endpoints/{name}/resume
//	POST /_heed/endpoints/{name}/recover
//	GET  /_heed/endpoints/{name}/recover
//
// Each answers with how the endpoint stands. All of them are kept in the queue
// too, for the gateways that share it, which follow within a second or two, and
// over a restart.
func (g *Gateway) adminEndpoints(mux *http.ServeMux) {
	for pattern, do := range map[string]func(*desk, string) error{
		"GET /_heed/endpoints/{name}":          func(*desk, string) error { return nil },
		"GET /_heed/endpoints/{name}/recover":  func(*desk, string) error { return nil },
		"POST /_heed/endpoints/{name}/pause":   (*desk).pause,
		"POST /_heed/endpoints/{name}/hold":    (*desk).hold,
		"POST /_heed/endpoints/{name}/breaker": (*desk).breaker,
		"POST /_heed/endpoints/{name}/drain":   (*desk).drain,
		"POST /_heed/endpoints/{name}/resume":  (*desk).resume,
		"POST /_heed/endpoints/{name}/recover": (*desk).recover,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			t := g.current.Load()
			d := &desk{Later: t.Later, g: g, t: t, w: w, r: r}
			name := r.PathValue("name")
			if t.routes[name] == nil {
				no(noSuchEndpoint, "").write(w, time.Now())
				return
			}
			err := do(d, name)
			if err == nil {
				err = d.standing(name)
			}
			if err != nil {
				d.refuse(err)
			}
		})
	}
}
