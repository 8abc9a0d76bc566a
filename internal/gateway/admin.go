package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed"
)

// Admin serves the admin port: what waits, the state of every quota key, the
// endpoints, metrics and health. It answers for the current Settings.
func (g *Gateway) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_heed/waiting", g.showWaiting)
	mux.HandleFunc("GET /_heed/gates", g.showGates)
	mux.HandleFunc("GET /_heed/endpoints", g.showEndpoints)
	g.adminCalls(mux)
	g.adminEndpoints(mux)
	mux.HandleFunc("GET /metrics", g.showMetrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", g.showReady)
	return prompt(g.guard(inProblems(mux)))
}

// guard lets through who may use the admin port. Health is for everybody who
// can reach it: a prober has no token.
func (g *Gateway) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := g.current.Load()
		health := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		switch {
		case t.Admin != (Digest{}) && !health:
			if token, _ := presented(r.Header); !t.Admin.is(token) {
				no(noToken, "").write(w, time.Now())
				return
			}
		case t.Admin == (Digest{}):
			if why := t.foreign(r); why != "" {
				no(misdirected, strings.ToUpper(why[:1])+why[1:]).write(w, time.Now())
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	whole(w, status, []byte(text))
}

// whole sends an answer of our own with its length. One without is whole only
// after the end of the request's body, see rest, which may never come.
func whole(w http.ResponseWriter, status int, body []byte) {
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller who left needs no answer
}

// inJSON writes v down, which has nothing in it that cannot be.
func inJSON(v any) []byte {
	body, _ := json.Marshal(v)
	return append(body, '\n')
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	whole(w, http.StatusOK, inJSON(v))
}

// showReady says whether calls are welcome. A queue that takes nothing in, since
// its disk is full, is told and leaves the gateway ready: those who wait for
// their answer are served, and a gateway that is taken out of service for its
// disk would fail them too.
func (g *Gateway) showReady(w http.ResponseWriter, r *http.Request) {
	switch l := g.current.Load().Later; {
	case !g.ready.Load():
		plain(w, http.StatusServiceUnavailable, "not ready\n")
	case l != nil && !l.answers(r.Context()):
		plain(w, http.StatusServiceUnavailable, "not ready: the queue does not answer\n")
	case l != nil && l.Trouble != nil && l.Trouble() != "":
		plain(w, http.StatusOK, "ready, but the queue takes nothing in: "+l.Trouble()+"\n")
	default:
		plain(w, http.StatusOK, "ready\n")
	}
}

func (g *Gateway) showMetrics(w http.ResponseWriter, r *http.Request) {
	if h := g.current.Load().Metrics; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	no(noPage, "Metrics are not kept").write(w, time.Now())
}

// showWaiting lists the calls that wait, the longest first.
func (g *Gateway) showWaiting(w http.ResponseWriter, r *http.Request) {
	list, t := []heed.Waiter{}, g.current.Load()
	for _, rt := range t.routes {
		list = append(list, rt.Transport.Waiting()...)
	}
	slices.SortFunc(list, func(a, b heed.Waiter) int { return a.Since.Compare(b.Since) })
	told := map[string]any{"waiting": list, "held": g.held()}
	if t.Later != nil {
		if queued, err := t.Later.waits(r.Context()); err == nil { // a store that fails hides nothing of the others
			told["queued"] = queued
		}
	}
	reply(w, told)
}

func (g *Gateway) showGates(w http.ResponseWriter, _ *http.Request) {
	list := []heed.GateState{}
	for _, rt := range g.current.Load().routes {
		list = append(list, rt.Transport.Gates()...)
	}
	slices.SortFunc(list, func(a, b heed.GateState) int {
		return strings.Compare(a.Endpoint+"\x00"+a.Key, b.Endpoint+"\x00"+b.Key)
	})
	reply(w, map[string]any{"gates": list})
}

// shownEndpoint is an endpoint as the admin port tells it.
type shownEndpoint struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Version string `json:"policy_version,omitempty"`
	Waiting int    `json:"waiting"`
	Held    Mode   `json:"held,omitempty"`
}

func (rt *route) shown() shownEndpoint {
	return shownEndpoint{
		Name: rt.Name, URL: rt.URL.Scheme + "://" + rt.URL.Host + rt.URL.EscapedPath(),
		Version: rt.Transport.Policy.Version, Waiting: len(rt.Transport.Waiting()),
	}
}

func (g *Gateway) showEndpoints(w http.ResponseWriter, _ *http.Request) {
	t := g.current.Load()
	list := []shownEndpoint{}
	for _, rt := range t.routes {
		e := rt.shown()
		if h, held := g.Held(rt.Name); held {
			e.Held = h.Mode
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b shownEndpoint) int { return strings.Compare(a.Name, b.Name) })
	reply(w, map[string]any{"version": t.Version, "calls": g.calls.Load(), "endpoints": list})
}
