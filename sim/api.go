package sim

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const maxBody = 1 << 20 // bytes of a request

// API serves simulated providers. It is safe for use by many goroutines.
type API struct {
	world World
	packs []*pack
	hosts bool // some pack has a host
	steps Steps
	own   map[string]Steps // of the cases that have their own

	mu        sync.RWMutex
	cases     map[string]*Case
	forgotten int
	nameless  *Case // the case ""
}

// New makes an API that behaves as w says.
func New(w World) (*API, error) {
	w = w.withDefaults()
	if err := w.check(); err != nil {
		return nil, err
	}
	a := &API{world: w, own: map[string]Steps{}, cases: map[string]*Case{}}
	for i, p := range w.Packs {
		ready, err := newPack(p, i, w.limits())
		if err != nil {
			return nil, fmt.Errorf("sim: %w", err)
		}
		if slices.ContainsFunc(a.packs, func(o *pack) bool { return o.Name == p.Name }) {
			return nil, fmt.Errorf("sim: pack %s is there twice; name it once", p.Name)
		}
		a.packs = append(a.packs, ready)
		a.hosts = a.hosts || len(p.Hosts) > 0
	}
	var err error
	if a.steps, err = a.parse(w.Steps); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	for id, text := range w.CaseSteps {
		if !validCase(id) {
			return nil, fmt.Errorf("sim: case %q: an id has at most 64 letters, digits, hyphens, underscores and dots", id)
		}
		if a.own[id], err = a.parse(text); err != nil {
			return nil, fmt.Errorf("sim: case %s: %w", id, err)
		}
	}
	a.nameless = newCase(a, "")
	a.cases[""] = a.nameless
	return a, nil
}

// parse reads a script and looks up what it names in the packs.
func (a *API) parse(text string) (Steps, error) {
	s, err := ParseSteps(text)
	if err != nil {
		return s, err
	}
	return s, a.resolve(&s)
}

// Case returns the case with this id, and makes it where there is none. At
// most World.Cases are kept: for a new one the one that was idle for longest
// is forgotten.
func (a *API) Case(id string) *Case {
	if id == "" {
		return a.nameless
	}
	a.mu.RLock()
	c := a.cases[id]
	a.mu.RUnlock()
	if c == nil {
		c = a.add(id)
	}
	c.idle.Store(time.Now().UnixNano())
	return c
}

func (a *API) add(id string) *Case {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.cases[id]; ok {
		return c
	}
	if len(a.cases) > a.world.Cases {
		var oldest *Case
		for _, c := range a.cases {
			if c != a.nameless && (oldest == nil || c.idle.Load() < oldest.idle.Load()) {
				oldest = c
			}
		}
		oldest.end()
		delete(a.cases, oldest.id)
		a.forgotten++
	}
	c := newCase(a, id)
	a.cases[id] = c
	return c
}

// Remove forgets a case and what it planned, and tells whether it was there.
// The case without a name is emptied.
func (a *API) Remove(id string) bool {
	if id == "" {
		a.nameless.Reset()
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.cases[id]
	if ok {
		c.end()
		delete(a.cases, id)
	}
	return ok
}

// Cases tells how many cases there are, the one without a name included, and
// how many were forgotten for want of room.
func (a *API) Cases() (kept, forgotten int) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.cases), a.forgotten
}

// Close forgets all cases and stops what they planned.
func (a *API) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.cases {
		c.end()
	}
	a.cases = map[string]*Case{"": a.nameless}
}

// Reset empties the case without a name; see Case.Reset.
func (a *API) Reset() { a.nameless.Reset() }

// SetSteps replaces the script of the case without a name.
func (a *API) SetSteps(text string) error { return a.nameless.SetSteps(text) }

// Journal returns what the case without a name saw so far.
func (a *API) Journal() Journal { return a.nameless.Journal() }

// Effects returns what was done in the case without a name so far.
func (a *API) Effects() Effects { return a.nameless.Effects() }

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, path := a.address(r)
	if !validCase(id) {
		send(w, problem(http.StatusBadRequest, "a case id has at most 64 letters, digits, hyphens, underscores and dots"))
		return
	}
	if path == "/_sim" || strings.HasPrefix(path, "/_sim/") || r.Method == http.MethodDelete && path == "" {
		a.admin(w, r, id, path)
		return
	}
	x := &Exchange{Request: r, w: w}
	x.pack, x.Path = a.route(r, path)
	x.credential = x.pack.credential(r)
	if id == "" {
		id = caseInCredential(r, x.credential)
	}
	x.own = a.Case(id)
	x.read()
	x.pack.find(x)
	x.begin()
	defer x.end()
	switch {
	case x.refused != nil:
		x.refuse(*x.refused)
	case x.step.fault != nil:
		x.step.fault.serve(x)
	default:
		x.usual()
	}
}

// address finds the case of r: in the path, the header or the host. The path
// is what follows the case.
func (a *API) address(r *http.Request) (id, path string) {
	path = r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/t/"); ok {
		id, _, _ = strings.Cut(rest, "/")
		return id, rest[len(id):]
	}
	if id = r.Header.Get("Sim-Case"); id != "" {
		return id, path
	}
	if !a.hosts && !strings.Contains(r.Host, ".localhost") {
		return "", path
	}
	host := hostOf(r)
	if id, ok := strings.CutSuffix(host, ".localhost"); ok {
		return id, path
	}
	for _, p := range a.packs {
		for _, h := range p.Hosts {
			if id, ok := strings.CutSuffix(host, "."+h); ok {
				return id, path
			}
		}
	}
	return "", path
}

func hostOf(r *http.Request) string {
	if name, _, err := net.SplitHostPort(r.Host); err == nil {
		return name
	}
	return r.Host
}

// route finds the pack that r is for: by host, by the first word of the path,
// or by who has such an operation; the first pack takes the rest.
func (a *API) route(r *http.Request, path string) (*pack, string) {
	if a.hosts {
		host := hostOf(r)
		for _, p := range a.packs {
			for _, h := range p.Hosts {
				if host == h || strings.HasSuffix(host, "."+h) {
					return p, path
				}
			}
		}
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, p := range a.packs {
		if p.Name == first {
			return p, "/" + strings.TrimPrefix(path[1+len(first):], "/")
		}
	}
	if len(a.packs) > 1 {
		for _, p := range a.packs {
			if p.has(path) {
				return p, path
			}
		}
	}
	return a.packs[0], path
}
