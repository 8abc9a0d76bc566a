package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	maxCallers = 1 << 14 // credentials remembered
	maxCounts  = 1 << 15 // operations counted, over all callers
	maxBody    = 1 << 20 // bytes of a request
)

// API is the simulated API. It is safe for use by many goroutines.
type API struct {
	world World
	mux   http.Handler // of /_sim/

	mu      sync.Mutex
	steps   Steps
	callers shelf[*caller]
	claimed shelf[int] // by caller, line of the steps and what it counts apart
	asked   shelf[int] // by caller, method and path
	journal journal
	bibs    bibs
	charges charges
}

// caller is what is remembered of one credential.
type caller struct {
	name   string
	bucket bucket
	toldAt time.Time // when the last hint was given
	until  time.Time // the latest instant it named
}

// New makes an API that behaves as w says.
func New(w World) (*API, error) {
	w = w.withDefaults()
	if err := w.check(); err != nil {
		return nil, err
	}
	steps, err := ParseSteps(w.Steps)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	a := &API{world: w, steps: steps}
	a.mux = a.admin()
	a.clear()
	return a, nil
}

// clear forgets everything but the world and the steps.
func (a *API) clear() {
	a.callers = newShelf[*caller](maxCallers)
	a.claimed = newShelf[int](maxCounts)
	a.asked = newShelf[int](maxCounts)
	a.journal = journal{size: a.world.JournalSize}
	a.bibs = newBibs(a.world)
	a.charges = newCharges()
}

// Reset forgets everything that happened: the script begins anew, buckets are
// full, the journal is empty and no charge exists.
func (a *API) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clear()
}

// SetSteps replaces the script, for every caller from its first step. A script
// with an error changes nothing.
func (a *API) SetSteps(text string) error {
	steps, err := ParseSteps(text)
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steps, a.claimed = steps, newShelf[int](maxCounts)
	return nil
}

// Journal returns what was seen so far.
func (a *API) Journal() Journal {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.journal.read()
}

// Effects returns what was done so far.
func (a *API) Effects() Effects {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.charges.effects
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_sim") {
		a.mux.ServeHTTP(w, r)
		return
	}
	x := a.begin(w, r)
	defer x.end()
	switch {
	case x.refused != nil:
		x.write(*x.refused)
	case x.step.fault != nil:
		x.step.fault.serve(x)
	default:
		x.usual()
	}
}

// callerOf returns the caller of r, and makes it at its first request.
func (a *API) callerOf(r *http.Request, now time.Time) (*caller, string) {
	credential := r.Header.Get("X-Api-Key")
	if credential == "" {
		credential = r.Header.Get("Authorization")
	}
	if c, ok := a.callers.get(credential); ok {
		return c, credential
	}
	c := &caller{name: "anonymous", bucket: newBucket(a.world, now)}
	if credential != "" {
		c.name = "key-" + hash(credential)
	}
	a.callers.put(credential, c)
	return c, credential
}

// hash is short: it tells values apart and gives none of them away.
func hash[T ~string | ~[]byte](v T) string {
	sum := sha256.Sum256([]byte(v))
	return hex.EncodeToString(sum[:8])
}
