package sim

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/sim/rate"
)

const (
	maxCallers = 1 << 14 // credentials remembered in one case
	maxCounts  = 1 << 15 // operations counted, over all callers
	maxMeters  = 1 << 12 // meters that credentials share, or that path values have
	maxCaseID  = 64
)

// Case is one world apart within an API: its own state, clock, journal and
// steps. It is made when its id is first used.
type Case struct {
	realm *realm
	id    string
	idle  atomic.Int64 // when it was last used, on the wall
	clock clock

	mu      sync.Mutex
	steps   Steps
	callers shelf[sum, *caller]
	claimed shelf[sum, int]    // by caller, line of the steps and what it counts apart
	asked   shelf[sum, visits] // by caller, method and path
	shared  shelf[sum, *rate.Meter]
	keys    shelf[sum, *keyed]
	tables  []map[string]any // by pack
	journal journal
	ledger  ledger
	era     int // counts resets
	turn    int // counts what may write: requests, and what After planned
	playing bool
	past    time.Duration // resources are shown as they were so long ago; 0: as they are
	undone  bool          // some were

	receivers receivers
	pending   int  // messages on their way
	ended     bool // nothing is sent any more
	life      context.Context
	cancel    context.CancelFunc
	sending   sync.WaitGroup
}

// visits are the requests of one caller at one method and path, which is clipped.
type visits struct {
	method, path string
	n            int32
}

// caller is what is remembered of one credential.
type caller struct {
	name   string
	hash   sum
	meters []rate.Meter // one per limit of the pack
	toldAt time.Time    // when the last hint was given
	until  time.Time    // the latest instant it named
}

func newCase(a *realm, id string) *Case {
	c := &Case{realm: a, id: id, steps: a.steps}
	if own, ok := a.own[id]; ok {
		c.steps = own
	}
	c.clock.start(a.world.Clock)
	c.clear()
	for _, h := range a.world.Webhooks {
		_, _ = c.add(h, false) // the realm has checked them
	}
	c.play(nil) // which the realm has rehearsed
	return c
}

// clear forgets everything but the world, the clock and the steps.
func (c *Case) clear() {
	c.callers = newShelf[sum, *caller](maxCallers)
	c.claimed = newShelf[sum, int](maxCounts)
	c.asked = newShelf[sum, visits](maxCounts)
	c.shared = newShelf[sum, *rate.Meter](maxMeters)
	c.keys = newShelf[sum, *keyed](maxKeys)
	c.tables = make([]map[string]any, len(c.realm.packs))
	c.journal = journal{size: c.realm.world.JournalSize}
	c.ledger = ledger{}
	c.drop(func(r *receiver) bool { return r.made })
	c.receivers.forgetSteps()
	c.pending = 0
	c.era++
}

// ID is the name of the case; "" is the one without a name.
func (c *Case) ID() string { return c.id }

// Journal returns what was seen so far.
func (c *Case) Journal() Journal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.journal.read()
}

// Effects returns what was done so far.
func (c *Case) Effects() Effects {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.read()
}

// Steps returns the script.
func (c *Case) Steps() Steps {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps
}

// SetSteps replaces the script, for every caller from its first step. A script
// with an error changes nothing.
func (c *Case) SetSteps(text string) error {
	steps, bad := c.realm.parse(text)
	if err := failed(under("steps", bad)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps, c.claimed = steps, newShelf[sum, int](maxCounts)
	c.receivers.forgetSteps()
	return nil
}

// Reset forgets everything that happened: the script begins anew, meters are
// unused, the journal is empty and nothing exists that was made. The clock
// goes on.
func (c *Case) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.play(nil)
}

// Now is what the clock of the case shows.
func (c *Case) Now() time.Time { return c.clock.now() }

// Advance moves the clock on, does what falls due on the way, and returns
// what it shows then.
func (c *Case) Advance(d time.Duration) time.Time { return c.clock.advance(max(d, 0)) }

// callerOf returns the caller with this credential, and makes it at its first
// request.
func (c *Case) callerOf(p *pack, credential string) *caller {
	at := sumBegin.text(p.Name).text(credential).number(0)
	if one, ok := c.callers.get(at); ok {
		return one
	}
	one := &caller{name: "anonymous", hash: at, meters: make([]rate.Meter, len(p.limits))}
	if credential != "" {
		one.name = "key-" + fingerprintOf(credential).String()
	}
	c.callers.put(at, one)
	return one
}

// meter returns the meter at which x stands in limit i of its pack.
func (c *Case) meter(x *Exchange, i int) *rate.Meter {
	l := &x.pack.limits[i]
	at := sumBegin.text(x.pack.Name).number(i)
	switch l.Scope {
	case rate.Credential:
		return &x.caller.meters[i]
	case rate.PathValue:
		at = at.text(x.credential).text(x.Value(l.Value))
	case rate.Custom:
		if by := x.pack.LimitBy; by != nil {
			at = at.text(x.credential).text(by(x, &l.Limit))
		}
	}
	if m, ok := c.shared.get(at); ok {
		return m
	}
	m := new(rate.Meter)
	c.shared.put(at, m)
	return m
}

// end stops what the case has planned, and waits for what it is sending. There
// may be no case.
func (c *Case) end() {
	if c == nil {
		return
	}
	c.clock.end()
	c.mu.Lock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	c.sending.Wait()
}

// tokenMark comes before the id of a case in a credential.
const tokenMark = "case_"

// caseInCredential finds the case that a key such as sk_test_case_alpha names.
func caseInCredential(r *http.Request, credential string) string {
	if user, _, ok := r.BasicAuth(); ok {
		credential = user
	}
	_, id, ok := strings.Cut(credential, tokenMark)
	if !ok || !validCase(id) {
		return ""
	}
	return id
}

const caseRule = "a case id has at most 64 letters, digits, hyphens, underscores and dots"

func validCase(id string) bool {
	return len(id) <= maxCaseID &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}
