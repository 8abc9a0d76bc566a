package sim

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const maxBody = 1 << 20 // bytes of a request

// API serves simulated providers. It is safe for use by many goroutines.
type API struct {
	realm atomic.Pointer[realm] // of the cases that have none of their own

	mu        sync.RWMutex
	cases     map[string]*Case
	forgotten int
	nameless  atomic.Pointer[Case] // the case ""
}

// New makes an API that behaves as w says.
func New(w World) (*API, error) {
	r, err := newRealm(w)
	if err != nil {
		return nil, err
	}
	a := &API{cases: map[string]*Case{}}
	a.realm.Store(r)
	a.put(newCase(r, ""))
	return a, nil
}

// put makes c the case of its id and returns the one that was, which its taker
// ends without the lock: a receiver of webhooks may ask this very simulator.
func (a *API) put(c *Case) (before *Case) {
	before = a.cases[c.id]
	a.cases[c.id] = c
	if c.id == "" {
		a.nameless.Store(c)
	}
	return before
}

// Begin makes the case with this id anew, in a world of its own. The case
// without a name takes all with it that has not begun yet: cases that are made
// later begin in its world. A world that cannot be changes nothing.
func (a *API) Begin(id string, w World) (*Case, error) {
	if !validCase(id) {
		return nil, errors.New("sim: " + caseRule)
	}
	if err := failed(w.checkAlone(id)); err != nil {
		return nil, err
	}
	r, err := newRealm(w)
	if err != nil {
		return nil, err
	}
	c := newCase(r, id)
	c.idle.Store(time.Now().UnixNano())
	a.mu.Lock()
	if id == "" {
		a.realm.Store(r)
	}
	before := a.put(c)
	a.mu.Unlock()
	before.end()
	return c, nil
}

// readScenario begins the case anew in the world that text tells of. Where the
// new world reads no scenarios itself, those are read as before.
func (a *API) readScenario(id string, text []byte) (*Case, error) {
	read := a.realm.Load().world.Scenario
	if read == nil {
		return nil, errors.New("this simulator reads no scenarios; heed sim does")
	}
	w, err := read(text, id != "")
	if err != nil {
		return nil, err
	}
	if w.Scenario == nil {
		w.Scenario = read
	}
	return a.Begin(id, w)
}

// Case returns the case with this id, and makes it where there is none. At
// most World.Cases are kept: for a new one the one that was idle for longest
// is forgotten.
func (a *API) Case(id string) *Case {
	if id == "" {
		return a.nameless.Load()
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
	var oldest *Case
	defer func() { oldest.end() }()
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.cases[id]; ok {
		return c
	}
	if len(a.cases) > a.realm.Load().world.Cases {
		for _, c := range a.cases {
			if c.id != "" && (oldest == nil || c.idle.Load() < oldest.idle.Load()) {
				oldest = c
			}
		}
		delete(a.cases, oldest.id)
		a.forgotten++
	}
	c := newCase(a.realm.Load(), id)
	a.cases[id] = c
	return c
}

// Remove forgets a case and what it planned, and tells whether it was there.
// The case without a name is emptied.
func (a *API) Remove(id string) bool {
	if id == "" {
		a.Reset()
		return true
	}
	a.mu.Lock()
	c, ok := a.cases[id]
	delete(a.cases, id)
	a.mu.Unlock()
	c.end()
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
	all := a.cases
	a.cases = map[string]*Case{"": a.nameless.Load()}
	a.mu.Unlock()
	for _, c := range all {
		c.end()
	}
}

// Reset empties the case without a name; see Case.Reset.
func (a *API) Reset() { a.Case("").Reset() }

// SetSteps replaces the script of the case without a name.
func (a *API) SetSteps(text string) error { return a.Case("").SetSteps(text) }

// Journal returns what the case without a name saw so far.
func (a *API) Journal() Journal { return a.Case("").Journal() }

// Effects returns what was done in the case without a name so far.
func (a *API) Effects() Effects { return a.Case("").Effects() }

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	common := a.realm.Load()
	id, path := common.address(r)
	if !validCase(id) {
		send(w, problem(http.StatusBadRequest, caseRule))
		return
	}
	if path == "/_sim" || strings.HasPrefix(path, "/_sim/") || r.Method == http.MethodDelete && path == "" {
		a.admin(w, r, id, path)
		return
	}
	x := &Exchange{Request: r, w: w}
	x.route(common, path)
	if id == "" {
		id = caseInCredential(r, x.credential)
	}
	if x.own = a.Case(id); x.own.realm != common {
		x.route(x.own.realm, path)
	}
	x.read()
	x.pack.find(x)
	x.begin()
	defer x.end()
	switch {
	case x.refused != nil:
		x.refuse(*x.refused)
	case x.step != nil && x.step.fault != nil:
		x.step.fault.serve(x)
	default:
		x.usual()
	}
}
