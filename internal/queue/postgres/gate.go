package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

type gateKey struct{ endpoint, key string }

// gateIDs knows the numbers of gates, which never change. The zero value is ready.
type gateIDs struct {
	making sync.Mutex

	mu    sync.RWMutex
	byKey map[gateKey]int64
	byID  map[int64]gateKey
}

func (g *gateIDs) id(k gateKey) (int64, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	id, ok := g.byKey[k]
	return id, ok
}

func (g *gateIDs) key(id int64) (gateKey, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	k, ok := g.byID[id]
	return k, ok
}

func (g *gateIDs) learn(id int64, k gateKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byKey == nil {
		g.byKey, g.byID = map[gateKey]int64{}, map[int64]gateKey{}
	}
	g.byKey[k], g.byID[id] = id, k
}

// gateOf returns the number of the gate of a quota key and makes it if there
// is none.
func (s *Store) gateOf(ctx context.Context, k gateKey) (int64, error) {
	if id, ok := s.gates.id(k); ok {
		return id, nil
	}
	s.gates.making.Lock() // one after the other: each would want a connection
	defer s.gates.making.Unlock()
	if id, ok := s.gates.id(k); ok {
		return id, nil
	}
	var id int64
	err := s.attempt(ctx, "make a gate in "+s.name, func(t *tx) error {
		t.queue("INSERT INTO gates (endpoint, key) VALUES ($1, $2) ON CONFLICT (endpoint, key) DO NOTHING", k.endpoint, k.key)
		t.queue("SELECT gate FROM gates WHERE endpoint = $1 AND key = $2", k.endpoint, k.key).
			QueryRow(func(r pgx.Row) error { return r.Scan(&id) })
		return t.commit()
	})
	if err != nil {
		return 0, err
	}
	s.gates.learn(id, k)
	return id, nil
}

// learnGates makes sure that the keys of all gates are known which the numbers
// name.
func (s *Store) learnGates(t *tx, ids map[int64]bool) error {
	var unknown []int64
	for id := range ids {
		if _, ok := s.gates.key(id); !ok {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	t.queue("SELECT gate, endpoint, key FROM gates WHERE gate = ANY($1)", unknown).Query(func(rows pgx.Rows) error {
		var id int64
		var k gateKey
		_, err := pgx.ForEachRow(rows, []any{&id, &k.endpoint, &k.key}, func() error {
			s.gates.learn(id, k)
			return nil
		})
		return err
	})
	return t.flush()
}

// SetGate implements queue.Gates.
func (s *Store) SetGate(ctx context.Context, now time.Time, change queue.GateChange) error {
	if change.Endpoint == "" || !fits(change.Endpoint, change.Key) {
		return fmt.Errorf("set a gate: no endpoint is named: %w", queue.ErrInvalid)
	}
	id, err := s.gateOf(ctx, gateKey{change.Endpoint, change.Key})
	if err != nil {
		return err
	}
	var closed *int64
	var source *string
	if change.Closed != nil {
		at, word := nanos(*change.Closed), fit(change.Source)
		closed, source = &at, &word
	}
	return s.attempt(ctx, "set a gate in "+s.name, func(t *tx) error {
		t.queue(`UPDATE gates SET closed = coalesce($2, closed), source = coalesce($3, source), paused = coalesce($4, paused),
			most = coalesce($5, most) WHERE gate = $1`, id, closed, source, change.Paused, change.Limit)
		return t.commit()
	})
}

// gatesQuery finds the longest due call of each gate by the head of each line.
const gatesQuery = `SELECT g.endpoint, g.key, g.closed, g.source, g.paused, g.most, g.served, l.running,
		coalesce((SELECT sum(n) FROM live t WHERE t.gate = g.gate), 0)::bigint - l.running,
		coalesce((SELECT min(h.next_at) FROM (SELECT line FROM live WHERE gate = g.gate GROUP BY line) q CROSS JOIN LATERAL
			(SELECT next_at FROM due d WHERE d.gate = g.gate AND d.line = q.line ORDER BY next_at LIMIT 1) h), 0)
	FROM gates g CROSS JOIN LATERAL (SELECT count(*) AS running FROM leases l WHERE l.gate = g.gate) l ORDER BY g.endpoint, g.key`

// Gates implements queue.Gates.
func (s *Store) Gates(ctx context.Context) ([]queue.Gate, error) {
	var all []queue.Gate
	err := s.rows(ctx, gatesQuery, nil, func(r pgx.Rows) error {
		var g queue.Gate
		var closed, served, due int64
		err := r.Scan(&g.Endpoint, &g.Key, &closed, &g.Source, &g.Paused, &g.Limit, &served, &g.Running, &g.Queued, &due)
		g.Closed, g.Served, g.Due = instant(closed), instant(served), instant(due)
		all = append(all, g)
		return failed(err)
	})
	return all, err
}
