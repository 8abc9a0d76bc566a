package heed

import (
	"cmp"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
)

// state is what a Transport keeps between calls.
type state struct {
	policy  policy.Policy
	invalid error
	base    http.RoundTripper
	seed    [2]uint64
	calls   atomic.Uint64 // begun
	ops     sync.Pool
	watches sync.Pool // of ops that are not used again

	recent atomic.Pointer[gate] // one of gates: most calls want the same as the one before
	mu     sync.RWMutex
	gates  map[gateKey]*gate
	sweep  int // how many gates there are when idle ones are looked for again
}

// gateKey tells quota keys apart without keeping the credential.
type gateKey struct {
	name string
	cred uint64
}

// gate is the gate of one quota key with the line in front of it.
type gate struct {
	*admit.Line
	key      gateKey
	keeper   *admit.Gate
	endpoint string
	id       string       // a fingerprint for people
	used     atomic.Int64 // when it was last used, Unix seconds
}

// maxGates is how many quota keys are remembered before idle ones are dropped,
// and maxShut before even those are that hold somebody back.
const (
	maxGates = 1024
	maxShut  = 16 * maxGates
)

func (t *Transport) init() *state {
	t.once.Do(func() {
		s := &state{policy: t.Policy.WithDefaults(), base: t.Base, gates: map[gateKey]*gate{}}
		if bad := t.Policy.Validate(); len(bad) > 0 {
			var errs []error
			for _, p := range bad {
				errs = append(errs, errors.New(p.String()))
			}
			s.invalid = errors.Join(errs...)
		}
		if s.base == nil {
			s.base = NewBase(s.policy.Timeouts)
		}
		s.seed = [2]uint64{t.Seed, 0}
		if t.Seed == 0 {
			var b [16]byte
			crand.Read(b[:])
			s.seed = [2]uint64{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
		}
		t.state = s
	})
	return t.state
}

// stream returns the random stream number n of the Transport: the same seed
// gives the same streams.
func (s *state) stream(n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed[0]^n, s.seed[1]+n*0x9e3779b97f4a7c15))
}

var credSeed = maphash.MakeSeed()

// gateOf returns the gate that the calls like r share.
func (t *Transport) gateOf(s *state, r *http.Request) *gate {
	var k gateKey
	if t.QuotaKey != nil {
		k.name = t.QuotaKey(r)
	} else {
		k.name = r.URL.Host
		if auth := r.Header["Authorization"]; len(auth) > 0 {
			k.cred = maphash.String(credSeed, auth[0])
		}
	}
	if g := s.recent.Load(); g != nil && g.key == k {
		return g
	}
	return s.gate(k, t.endpoint(r))
}

// gate returns the gate of a key, a new one if there is none.
func (s *state) gate(k gateKey, endpoint string) *gate {
	s.mu.RLock()
	g := s.gates[k]
	if g != nil {
		s.recent.Store(g) // under the lock, so that one that is forgotten does not come back
	}
	s.mu.RUnlock()
	if g == nil {
		g = s.addGate(k, endpoint)
	}
	return g
}

func (s *state) addGate(k gateKey, endpoint string) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gates[k]; g != nil {
		return g
	}
	if len(s.gates) >= max(s.sweep, maxGates) {
		s.dropIdle(time.Now())
		s.sweep = len(s.gates) / 4 * 5 // where nothing can go, not at every new key
	}
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], k.cred)
	id := k.name + "\x00" + string(raw[:])
	n := maphash.String(credSeed, id)
	if s.seed[1] == 0 { // a given seed: the same world in every process
		n = uint64(len(s.gates))
	}
	keeper := admit.NewGate(&s.policy, s.stream(n|1<<63))
	g := &gate{
		Line: admit.NewLine(keeper, &s.policy, s.stream(n|3<<62)),
		key:  k, keeper: keeper, endpoint: endpoint, id: mask.Fingerprint(id),
	}
	s.gates[k] = g
	return g
}

// dropIdle forgets gates that nobody uses until three quarters of maxGates are
// left: first those that hold nobody back, and of them those used longest ago.
func (s *state) dropIdle(now time.Time) {
	type idle struct {
		key  gateKey
		shut bool
		used int64
	}
	var list []idle
	for k, g := range s.gates {
		snap := g.keeper.Snapshot(now)
		if snap.InFlight == 0 && len(g.Waiting()) == 0 {
			shut := snap.Breaker != admit.Closed || snap.ClosedUntil.After(now)
			list = append(list, idle{k, shut, g.used.Load()})
		}
	}
	slices.SortFunc(list, func(a, b idle) int {
		if a.shut != b.shut {
			if b.shut {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.used, b.used)
	})
	s.recent.Store(nil)
	for _, g := range list[:min(len(list), len(s.gates)-maxGates/4*3)] {
		if g.shut && len(s.gates) < maxShut {
			return // who forgets a shut gate sends too early
		}
		delete(s.gates, g.key)
	}
}

func (t *Transport) endpoint(r *http.Request) string {
	if t.Policy.Endpoint != "" {
		return t.Policy.Endpoint
	}
	if r.URL == nil {
		return ""
	}
	return r.URL.Host
}

// callID names call number n of this Transport.
func (s *state) callID(n uint64) CallID { return CallID(s.seed[0] ^ n*0x9e3779b97f4a7c15) }

// Waiter is a call that waits, as Transport.Waiting tells it.
type Waiter struct {
	CallID        string            `json:"call_id"`
	QueueID       string            `json:"queue_id,omitempty"` // under which a queue keeps it
	CorrelationID string            `json:"correlation_id,omitempty"`
	Endpoint      string            `json:"endpoint"`
	Tenant        string            `json:"tenant,omitempty"`
	Priority      int               `json:"priority"`
	Attempt       int               `json:"attempt"` // the one it waits for
	For           policy.WaitSource `json:"for"`
	Since         time.Time         `json:"since"`
	Until         time.Time         `json:"until,omitzero"` // as far as known
	Ahead         int               `json:"ahead"`          // waiters before it
}

// Waiting lists the calls that wait now, what for, since when and until when.
func (t *Transport) Waiting() []Waiter {
	list := []Waiter{}
	for _, g := range t.init().all() {
		for _, w := range g.Waiting() {
			who := w.Ticket.Info.(*op)
			list = append(list, Waiter{
				CallID: who.id.String(), QueueID: who.opts.QueueID, CorrelationID: who.opts.CorrelationID, Endpoint: g.endpoint,
				Tenant: w.Ticket.Tenant, Priority: w.Ticket.Priority, Attempt: w.Attempt,
				For: w.For, Since: w.Since, Until: w.Until, Ahead: w.Ahead,
			})
		}
	}
	return list
}

func (s *state) all() []*gate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*gate, 0, len(s.gates))
	for _, g := range s.gates {
		list = append(list, g)
	}
	return list
}

// GateState is one quota key, as Transport.Gates tells it. Key is a
// fingerprint, never the credential.
type GateState struct {
	Key         string    `json:"key"`
	Endpoint    string    `json:"endpoint"`
	Breaker     string    `json:"breaker"`
	OpenUntil   time.Time `json:"open_until,omitzero"`
	ClosedUntil time.Time `json:"closed_until,omitzero"`
	Rate        float64   `json:"rate_per_second"` // 0: unpaced
	RateFrom    string    `json:"rate_from"`       // configured, quota, learned, exploring, ramping or none
	InFlight    int       `json:"in_flight"`
	Waiting     int       `json:"waiting"`
	Remaining   *int64    `json:"remaining,omitempty"`
	RetryTokens int       `json:"retry_tokens"`
}

// Gates lists the quota keys in use and their state.
func (t *Transport) Gates() []GateState {
	now := time.Now()
	list := []GateState{}
	for _, g := range t.init().all() {
		s := g.keeper.Snapshot(now)
		gs := GateState{
			Key: g.id, Endpoint: g.endpoint, Breaker: s.Breaker.String(), OpenUntil: s.OpenUntil,
			ClosedUntil: s.ClosedUntil, Rate: s.Rate, RateFrom: s.RateFrom, InFlight: s.InFlight,
			Waiting: len(g.Waiting()), RetryTokens: s.RetryTokens,
		}
		if s.HasQuota {
			gs.Remaining = &s.Remaining
		}
		list = append(list, gs)
	}
	return list
}
