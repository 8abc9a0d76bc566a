// Package postgres keeps the queue in a Postgres database, for one gateway or
// for many at once.
//
// Each call is a row, and so is the gate of each quota key; small rows beside
// the call tell that it waits, runs or has ended. A claim locks the rows of the
// gates it takes from, skipping those that another gateway holds, and counts
// the leases of each that has a limit: it holds over all gateways. A lease
// lasts as long as the worker renews it; when it has run out any gateway takes
// the call over, and the token of the claim fences off what the former owner
// still writes. Steps that come together are written in one transaction, and
// answered when the server has them on its disk, but for claims whose writes
// are begun by a step of their own: an enqueue and a settlement take one round
// trip, since they are written first, and looked into only if the server
// refuses them.
//
// Limits: the clocks of the gateways must agree, and a server is refused whose
// clock differs by more than MaxSkew. A connection through a pooler must be a
// session of its own. What is erased leaves the server's files when Postgres
// vacuums and recycles its log; it is sealed all the while.
package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options says where and how to keep the queue.
type Options struct {
	// Address says where the server is. Its user must own the schema, or be
	// allowed to create it.
	Address Address
	// Schema holds the tables. Empty: "heed".
	Schema string
	// Keys seal what calls say. Required, and the same for all gateways.
	Keys *queue.Keys
	Keep queue.Keep
	// Most bounds the calls that are queued or running. 0: no bound but the
	// disk. What several gateways take in at one instant may exceed it.
	Most int
	// Connections bounds those to the server. 0: 10.
	Connections int
}

const (
	// DefaultLease is how long a claim lasts that does not say so.
	DefaultLease = 30 * time.Second
	// MaxSkew is how far the clocks of gateway and server may differ: a sixth
	// of the default lease, the time after which it is renewed.
	MaxSkew = DefaultLease / 6
	// enqueuers and settlers are how many groups of each are under way at once.
	// With two the server is at one while the callers of the other come back; a
	// third makes the groups smaller and costs the server more.
	enqueuers = 2
	settlers  = 1
)

// Store is a queue.Store.
type Store struct {
	name   string // host, port and database
	schema string
	keys   *queue.Keys
	keep   queue.Keep
	most   int
	pool   *pgxpool.Pool
	stripe int // the first of its stripes
	// arrived is how long the lists of arrivals may be that stripes have.
	arrived [stripes]int
	gates   gateIDs
	leases  leases
	turns   turns
	doors   doors
	flights flights

	intake *desk[*intake]
	ends   *desk[*ends]
	begins *desk[*begins]
	closed chan struct{}
	close  sync.Once
	wg     sync.WaitGroup
}

var (
	_ queue.Store    = (*Store)(nil)
	_ queue.Beginner = (*Store)(nil)
)

// Open connects to the server and brings the schema up.
func Open(ctx context.Context, o Options) (*Store, error) {
	c, err := o.Address.parse()
	if err != nil {
		return nil, err
	}
	s := &Store{name: place(c), schema: o.Schema, keys: o.Keys, keep: o.Keep, most: o.Most,
		stripe: rand.IntN(stripes), closed: make(chan struct{})}
	if s.keys == nil {
		return nil, fmt.Errorf("open %s: no key to seal it with: make one with heed keys new: %w", s.name, queue.ErrInvalid)
	}
	if s.schema == "" {
		s.schema = "heed"
	}
	c.MaxConns = 10
	if o.Connections > 0 {
		c.MaxConns = int32(max(o.Connections, 2))
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = patience / 2
	}
	c.ConnConfig.RuntimeParams["application_name"] = "heed"
	c.AfterConnect = s.prepare
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), c); err != nil {
		return nil, s.wrap("open "+s.name, failed(err))
	}
	if err := s.start(ctx); err != nil {
		s.pool.Close()
		return nil, err
	}
	return s, nil
}

// Ahead is by how much now is ahead of the clock of the database. Leases go by
// the clocks of those who share it: whoever is ahead of the others by more than
// a lease takes their calls away.
func (s *Store) Ahead(ctx context.Context, now time.Time) (ahead time.Duration, err error) {
	err = s.rows(ctx, "SELECT clock_timestamp()", nil, func(r pgx.Rows) error {
		var theirs time.Time
		err := r.Scan(&theirs)
		ahead = now.Sub(theirs)
		return failed(err)
	})
	return ahead, err
}

func (s *Store) start(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if err := s.checkKeys(ctx); err != nil {
		return err
	}
	s.doors.bounded = s.most > 0
	for i := range s.arrived {
		s.arrived[i] = longest // somebody may have left one
	}
	err := s.rows(ctx, "SELECT coalesce(max(seq), 0) FROM calls", nil, func(r pgx.Rows) error {
		return failed(r.Scan(&s.doors.last))
	})
	if err != nil {
		return err
	}
	s.intake = newDesk(s.closed, s.takeIn)
	s.ends = newDesk(s.closed, s.settle)
	s.begins = newDesk(s.closed, s.begin)
	s.intake.weigh, s.ends.weigh = (*intake).bytes, (*ends).bytes
	s.begins.serve(&s.wg, s.claimStripe())
	s.intake.serve(&s.wg, s.nthStripes(0, enqueuers)...)
	s.ends.serve(&s.wg, s.nthStripes(enqueuers, settlers)...)
	return nil
}

// claimStripe is the stripe of all that no desk writes.
func (s *Store) claimStripe() int { return s.nthStripes(enqueuers+settlers, 1)[0] }

func (s *Store) nthStripes(from, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = (s.stripe + from + i) % stripes
	}
	return all
}

// settings make a session ours. Each statement sees what was committed before
// it, whatever the default of the server: who was waited for is counted. Every join of this store goes from a few rows
// by an index to others: a plan that the planner chose while the tables were
// empty, and keeps, must be that one too. A session that hangs with locks in
// hand is ended well within a lease.
const settings = `SET search_path = %s; SET default_transaction_isolation = 'read committed';
	SET plan_cache_mode = force_generic_plan; SET jit = off;
	SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
	SET idle_in_transaction_session_timeout = '10s'; SET lock_timeout = '5s'; SET client_min_messages = error`

// prepare readies a new session, and refuses a server that cannot keep what
// it promises.
func (s *Store) prepare(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.PgConn().Exec(ctx, fmt.Sprintf(settings, pgx.Identifier{s.schema}.Sanitize())).ReadAll(); err != nil {
		return err
	}
	var fsync, commit string
	var there time.Time
	before := time.Now()
	err := c.QueryRow(ctx, "SELECT clock_timestamp(), current_setting('fsync'), current_setting('synchronous_commit')",
		pgx.QueryExecModeExec).Scan(&there, &fsync, &commit)
	if err != nil {
		return err
	}
	if err := checkClock(before, there, time.Now()); err != nil {
		return err
	}
	if fsync != "on" {
		return fmt.Errorf("the server runs with fsync = %s and would lose calls with its power: set fsync = on: %w",
			fsync, queue.ErrStorage)
	}
	if commit == "off" { // other values wait for this disk or for more
		_, err = c.Exec(ctx, "SET synchronous_commit = on", pgx.QueryExecModeExec)
	}
	return err
}

// checkClock compares the server's clock with ours just before and after.
func checkClock(before, there, after time.Time) error {
	if skew := max(before.Sub(there), there.Sub(after)); skew > MaxSkew {
		return fmt.Errorf("the clocks of this machine and of the server differ by %v, more than %v: set them (NTP): %w",
			skew.Round(time.Millisecond), MaxSkew, queue.ErrStorage)
	}
	return nil
}

// lastSealed begins with the last records. Of the latest calls some may be done
// and erased.
var lastSealed = []string{
	`SELECT substr(sealed, 1, 64) FROM (SELECT coalesce(request, answer) AS sealed FROM calls ORDER BY seq DESC LIMIT 1000) c
		WHERE sealed IS NOT NULL LIMIT 1`,
	`SELECT substr(sealed, 1, 64) FROM revisions ORDER BY seq DESC LIMIT 1`,
}

// checkKeys refuses a ring without the key of the last records: what it sealed
// could not be sent.
func (s *Store) checkKeys(ctx context.Context) error {
	for _, last := range lastSealed {
		var heads [][]byte
		err := s.rows(ctx, last, nil, func(r pgx.Rows) error {
			var head []byte
			err := r.Scan(&head)
			heads = append(heads, head)
			return failed(err)
		})
		if err != nil {
			return err
		}
		for _, head := range heads {
			id, err := queue.SealedBy(head)
			if err != nil {
				return fmt.Errorf("open %s: %w", s.name, err)
			}
			if !s.keys.Has(id) {
				return fmt.Errorf("open %s: its records are sealed with key %s, which is not in the ring: add it: %w",
					s.name, id, queue.ErrKey)
			}
		}
	}
	return nil
}

// Close ends the transactions under way and lets the connections go. What
// waits to be written gets ErrClosed. Leases last until they run out.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.closed)
		s.wg.Wait()
		s.pool.Close()
	})
	return nil
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}
