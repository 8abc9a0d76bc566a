package postgres

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// parcel is a call that is ready to be written: what takes time was done
// before it reached a desk.
type parcel struct {
	*queue.Call
	id     string
	given  bool // the id came with the call
	gate   int64
	sealed []byte
	prints []queue.Print
	now    time.Time
	seq    int64
}

// intake is one Enqueue.
type intake struct {
	parcels  []parcel
	receipts []queue.Receipt
}

// Enqueue implements queue.Intake.
func (s *Store) Enqueue(ctx context.Context, now time.Time, calls []queue.Call) ([]queue.Receipt, error) {
	in := &intake{parcels: make([]parcel, len(calls)), receipts: make([]queue.Receipt, len(calls))}
	for i := range calls {
		if err := s.pack(ctx, now, &calls[i], &in.parcels[i]); err != nil {
			return nil, err
		}
	}
	if err := s.intake.do(ctx, in); err != nil {
		return nil, err
	}
	return in.receipts, nil
}

// maxID bounds the ids that callers give: they are indexed.
const maxID = 512

func (s *Store) pack(ctx context.Context, now time.Time, c *queue.Call, p *parcel) error {
	p.Call, p.id, p.given, p.now = c, c.ID, c.ID != "", now
	if err := c.Check(); err != nil {
		return err
	}
	if len(c.ID) > maxID || !fits(c.ID, c.Endpoint, c.Gate, c.Method, c.Template, c.Tenant, c.CorrelationID, c.TraceParent) {
		return fmt.Errorf("call to %.64q: its id is longer than %d bytes, or a word of it is not text in UTF-8: %w",
			c.Endpoint, maxID, queue.ErrInvalid)
	}
	if !p.given {
		p.id = queue.NewID(now)
	}
	var err error
	if p.sealed, err = s.keys.SealRequest(&queue.Facts{ID: p.id, Endpoint: c.Endpoint}, &c.Request); err != nil {
		return fmt.Errorf("enqueue a call to %s: %w", c.Endpoint, err)
	}
	p.prints = s.keys.Prints(c)
	p.gate, err = s.gateOf(ctx, gateKey{c.Endpoint, c.Gate})
	return err
}

// takeIn writes a group of intakes.
func (s *Store) takeIn(ctx context.Context, lane int, group []*step[*intake]) error {
	return s.attempt(ctx, "enqueue in "+s.name, func(t *tx) error {
		t.lane = lane
		k, err := s.look(t, group)
		if err != nil {
			return err
		}
		var fresh []*parcel
		for _, st := range group {
			for i := range st.in.parcels {
				p := &st.in.parcels[i]
				r := k.admit(p)
				if st.in.receipts[i] = r; r.Admission == queue.New && p.seq > 0 {
					fresh = append(fresh, p)
				}
			}
		}
		if len(fresh) == 0 {
			return nil
		}
		t.store(fresh, k)
		return t.commit()
	})
}

// known is what a group may meet in the database, and meets in itself.
type known struct {
	s       *Store
	calls   map[string]*stored     // by id, those that parcels name
	states  map[string]queue.State // of calls that have keys, by id
	keys    map[string]*holder     // of idempotency keys by digest
	overdue map[string]int64       // digests whose window has ended, and when
	seqs    []int64                // places for new calls
	room    int                    // for new calls
	bounded bool
}

// stored is a call that is there, with what was handed in.
type stored struct {
	queue.Facts
	sealed []byte // nil: it is erased
}

// holder is the call that has an idempotency key.
type holder struct {
	body  []byte
	id    string
	until int64
}

const (
	lookIDs = `SELECT c.id, c.state, c.method, g.endpoint, coalesce(
			(SELECT sealed FROM revisions r WHERE r.seq = c.seq ORDER BY revision LIMIT 1), (SELECT sealed FROM requests q WHERE q.seq = c.seq))
		FROM calls c JOIN gates g USING (gate) WHERE c.id = ANY($1)`
	lookKeys = `SELECT t.print, t.body, t.id, t.until, c.state FROM taken t LEFT JOIN calls c ON c.id = t.id WHERE t.print = ANY($1)`
	places   = `SELECT nextval('places') FROM generate_series(1, $1)`
	live     = `SELECT (coalesce((SELECT sum(n) FROM tallies WHERE state = 0), 0) + coalesce((SELECT sum(running) FROM gates), 0))::bigint`
)

// look reads what the group may meet. In a try that repeats one whose end is
// open it looks for all ids: its own may be there.
func (s *Store) look(t *tx, group []*step[*intake]) (*known, error) {
	k := &known{s: s, calls: map[string]*stored{}, states: map[string]queue.State{}, keys: map[string]*holder{}, overdue: map[string]int64{}, bounded: s.most > 0}
	var ids []string
	var prints [][]byte
	n := 0
	for _, st := range group {
		for i := range st.in.parcels {
			p := &st.in.parcels[i]
			if p.seq = 0; p.given || t.again {
				ids = append(ids, p.id)
			}
			for _, d := range p.prints {
				prints = append(prints, d.Key)
			}
		}
		n += len(st.in.parcels)
	}
	if len(ids) > 0 {
		t.queue(lookIDs, ids).Query(k.readCalls)
	}
	if len(prints) > 0 {
		t.queue(lookKeys, prints).Query(k.readKeys)
	}
	t.queue(places, n).Query(func(rows pgx.Rows) (err error) {
		k.seqs, err = pgx.AppendRows(make([]int64, 0, n), rows, pgx.RowTo[int64])
		return err
	})
	if k.bounded {
		var now int
		t.queue(live).QueryRow(func(r pgx.Row) error {
			err := r.Scan(&now)
			k.room = s.most - now
			return err
		})
	}
	return k, t.flush()
}

func (k *known) readCalls(rows pgx.Rows) error {
	for rows.Next() {
		c := &stored{}
		var state int16
		if err := rows.Scan(&c.ID, &state, &c.Method, &c.Endpoint, &c.sealed); err != nil {
			return err
		}
		c.State = queue.State(state)
		k.calls[c.ID] = c
	}
	return rows.Err()
}

func (k *known) readKeys(rows pgx.Rows) error {
	for rows.Next() {
		var print []byte
		var state *int16
		h := &holder{}
		if err := rows.Scan(&print, &h.body, &h.id, &h.until, &state); err != nil {
			return err
		}
		k.keys[string(print)] = h
		if state != nil {
			k.states[h.id] = queue.State(*state)
		}
	}
	return rows.Err()
}

// admit says what becomes of a parcel, and keeps it in mind for its twins in
// the same group.
func (k *known) admit(p *parcel) queue.Receipt {
	if c := k.calls[p.id]; c != nil {
		return k.again(p, c)
	}
	if r, taken := k.taken(p); taken {
		return r
	}
	if k.bounded {
		if k.room <= 0 {
			return queue.Receipt{Admission: queue.Full}
		}
		k.room--
	}
	p.seq, k.seqs = k.seqs[0], k.seqs[1:]
	k.calls[p.id] = &stored{queue.Facts{ID: p.id, Endpoint: p.Endpoint, Method: p.Method}, p.sealed}
	if len(p.prints) > 0 {
		d := &p.prints[0]
		k.keys[string(d.Key)] = &holder{d.Body, p.id, nanos(p.now) + int64(p.window())}
	}
	return queue.Receipt{ID: p.id}
}

// again answers a parcel whose id is there. If what was handed in then is no
// longer kept, nothing is left to compare: it is a duplicate.
func (k *known) again(p *parcel, c *stored) queue.Receipt {
	r := queue.Receipt{ID: p.id}
	if !p.given {
		return r // an earlier try has stored it
	}
	r.Admission, r.State = queue.Duplicate, c.State
	if c.sealed != nil && !k.s.keys.Same(&c.Facts, c.sealed, p.Call) {
		r.Admission = queue.Conflict
	}
	return r
}

// taken tells whether another call has the key of a parcel.
func (k *known) taken(p *parcel) (queue.Receipt, bool) {
	for _, d := range p.prints {
		h := k.keys[string(d.Key)]
		if h == nil {
			continue
		}
		if h.until <= nanos(p.now) {
			k.overdue[string(d.Key)] = h.until
			continue
		}
		r := queue.Receipt{Admission: queue.Duplicate, ID: h.id, State: queue.Done}
		if !bytes.Equal(h.body, d.Body) {
			r.Admission = queue.Conflict
		}
		if state, ok := k.states[h.id]; ok {
			r.State = state
		} else if c := k.calls[h.id]; c != nil {
			r.State = c.State
		}
		return r, true
	}
	return queue.Receipt{}, false
}

func (p *parcel) window() time.Duration {
	if p.KeyWindow > 0 {
		return p.KeyWindow
	}
	return queue.DefaultKeyWindow
}

const (
	insertCalls = `INSERT INTO calls (seq, gate, id, method, template, tenant, priority, correlation, traceparent, repeatable,
			not_before, expires, created, size, next_at)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::text[],
			$9::text[], $10::boolean[], $11::bigint[], $12::bigint[], $13::bigint[], $14::integer[], $15::bigint[])`
	insertRequests = `INSERT INTO requests (seq, sealed) SELECT * FROM unnest($1::bigint[], $2::bytea[])`
	insertKeys     = `INSERT INTO taken (print, body, key, id, until)
		SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::text[], $5::bigint[])`
	// another gateway may have taken one anew
	dropKeys = `DELETE FROM taken t USING unnest($1::bytea[], $2::bigint[]) u(print, until)
		WHERE t.print = u.print AND t.until = u.until`
)

// store queues the statements that write new calls. Keys go first and in
// order: two gateways that take the same ones wait for each other, and the one
// that comes late is told of the duplicate and looks again.
func (t *tx) store(fresh []*parcel, k *known) {
	t.storeKeys(fresh, k)
	n := len(fresh)
	seq, gate, size, priority, again := make([]int64, n), make([]int64, n), make([]int32, n), make([]int16, n), make([]bool, n)
	notBefore, expires, created, nextAt := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	var words [6][]string
	for i := range words {
		words[i] = make([]string, n)
	}
	sealed := make([][]byte, n)
	for i, p := range fresh {
		seq[i], gate[i], size[i], priority[i], again[i] = p.seq, p.gate, int32(len(p.Body)), int16(p.Priority), p.Repeatable
		for j, w := range [6]string{p.id, p.Method, p.Template, p.Tenant, p.CorrelationID, p.TraceParent} {
			words[j][i] = w
		}
		at := nanos(p.now)
		notBefore[i], expires[i], created[i], nextAt[i] = nanos(p.NotBefore), nanos(p.Expires), at, max(at, nanos(p.NotBefore))
		sealed[i] = p.sealed
		t.move(p.gate, queue.Queued, "", 1)
	}
	t.queue(insertCalls, seq, gate, words[0], words[1], words[2], words[3], priority, words[4], words[5], again, notBefore,
		expires, created, size, nextAt)
	t.queue(insertRequests, seq, sealed)
}

func (t *tx) storeKeys(fresh []*parcel, k *known) {
	if len(k.overdue) > 0 {
		var prints [][]byte
		var until []int64
		for _, d := range slices.Sorted(maps.Keys(k.overdue)) {
			prints, until = append(prints, []byte(d)), append(until, k.overdue[d])
		}
		t.queue(dropKeys, prints, until)
	}
	keyed := make([]*parcel, 0, len(fresh))
	for _, p := range fresh {
		if len(p.prints) > 0 {
			keyed = append(keyed, p)
		}
	}
	if len(keyed) == 0 {
		return
	}
	slices.SortFunc(keyed, func(a, b *parcel) int { return bytes.Compare(a.prints[0].Key, b.prints[0].Key) })
	n := len(keyed)
	print, body, by, id, until := make([][]byte, n), make([][]byte, n), make([]string, n), make([]string, n), make([]int64, n)
	for i, p := range keyed {
		d := &p.prints[0]
		print[i], body[i], by[i], id[i], until[i] = d.Key, d.Body, d.By, p.id, nanos(p.now.Add(p.window()))
	}
	t.queue(insertKeys, print, body, by, id, until)
}
