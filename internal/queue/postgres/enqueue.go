package postgres

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
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
	line   queue.Line
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

func (in *intake) bytes() (n int) {
	for i := range in.parcels {
		n += len(in.parcels[i].sealed)
	}
	return n
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

const (
	// maxID bounds the ids that callers give: they are indexed.
	maxID = 512
	// maxField is what one field of a row may hold (postgresql.org/docs, "Limits").
	maxField = 1<<30 - 1
)

func (s *Store) pack(ctx context.Context, now time.Time, c *queue.Call, p *parcel) error {
	p.Call, p.id, p.given, p.now = c, c.ID, c.ID != "", now
	if err := c.Check(); err != nil {
		return err
	}
	p.line = queue.LineOf(c.Tenant, c.Priority)
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
	if len(p.sealed) > maxField {
		return fmt.Errorf("enqueue a call to %s: its body is longer than Postgres holds, 1 GB: %w", c.Endpoint, queue.ErrInvalid)
	}
	p.prints = s.keys.Prints(c)
	p.gate, err = s.gateOf(ctx, gateKey{c.Endpoint, c.Gate})
	return err
}

// takeIn writes a group of intakes. It writes them blindly, in one round trip,
// and looks what is there already when the server has refused one, for a while
// then at every group.
func (s *Store) takeIn(ctx context.Context, stripe int, group []*step[*intake]) error {
	n, rings := 0, 1
	for _, st := range group {
		n += len(st.in.parcels)
		for i := range st.in.parcels {
			rings = max(rings, len(st.in.parcels[i].prints))
		}
	}
	// What was taken under an older key of the ring the server cannot refuse.
	blind := rings == 1 && s.doors.mayBeBlind(n, time.Now())
	return s.attempt(ctx, "enqueue in "+s.name, func(t *tx) error {
		t.stripe = stripe
		k := newKnown(s)
		if !blind || t.again {
			if err := s.look(t, group, k); err != nil {
				return err
			}
		}
		fresh := s.admit(group, k, n)
		if len(fresh) == 0 {
			return nil
		}
		err := t.store(fresh, k)
		if met(err) {
			s.doors.met()
			blind = false
		}
		return err
	})
}

// admit answers the intakes, and returns what is to be written.
func (s *Store) admit(group []*step[*intake], k *known, n int) []*parcel {
	fresh := make([]*parcel, 0, n)
	seq := s.doors.places(n)
	for _, st := range group {
		for i := range st.in.parcels {
			p := &st.in.parcels[i]
			p.seq = 0
			if st.in.receipts[i] = k.admit(p, seq); p.seq > 0 {
				fresh, seq = append(fresh, p), seq+1
			}
		}
	}
	return fresh
}

// known is what a group may meet in the database, and meets in itself.
type known struct {
	s       *Store
	calls   map[string]*stored     // by id, those that parcels name
	states  map[string]queue.State // of calls that have keys, by id
	keys    map[string]*holder     // of idempotency keys by digest
	overdue map[string]int64       // digests whose window has ended, and when
	room    int                    // for new calls
}

// stored is a call that is there, with what was handed in.
type stored struct {
	id, endpoint, method string
	state                queue.State
	sealed               []byte // nil: it is erased
}

// holder is the call that has an idempotency key.
type holder struct {
	body  []byte
	id    string
	until int64
}

const (
	lookIDs = `SELECT c.id, ` + stateOf + `, c.method, g.endpoint, coalesce(
			(SELECT sealed FROM revisions r WHERE r.seq = c.seq ORDER BY revision LIMIT 1), c.request)
		FROM calls c JOIN gates g ON g.gate = c.gate LEFT JOIN leases l ON l.gate = c.gate AND l.seq = c.seq WHERE c.id = ANY($1)`
	lookKeys = `SELECT t.print, t.body, t.id, t.until, CASE WHEN c.seq IS NOT NULL THEN ` + stateOf + ` END
		FROM taken t LEFT JOIN calls c ON c.id = t.id LEFT JOIN leases l ON l.gate = c.gate AND l.seq = c.seq WHERE t.print = ANY($1)`
	live = `SELECT coalesce(sum(n), 0)::bigint FROM live`
)

func newKnown(s *Store) *known {
	return &known{s: s, calls: map[string]*stored{}, states: map[string]queue.State{}, keys: map[string]*holder{},
		overdue: map[string]int64{}, room: math.MaxInt}
}

// look reads what the group may meet. In a try that repeats one whose end is
// open it looks for all ids: its own may be there.
func (s *Store) look(t *tx, group []*step[*intake], k *known) error {
	var ids []string
	var prints [][]byte
	for _, st := range group {
		for i := range st.in.parcels {
			p := &st.in.parcels[i]
			if p.given || t.again {
				ids = append(ids, p.id)
			}
			for _, d := range p.prints {
				prints = append(prints, d.Key)
			}
		}
	}
	if len(ids) > 0 {
		t.queue(lookIDs, ids).Query(k.readCalls)
	}
	if len(prints) > 0 {
		t.queue(lookKeys, prints).Query(k.readKeys)
	}
	if s.most > 0 {
		var now int
		t.queue(live).QueryRow(func(r pgx.Row) error { return r.Scan(&now) })
		if err := t.flush(); err != nil {
			return err
		}
		k.room = s.most - now
		s.doors.saw(k.room, time.Now())
	}
	return t.flush()
}

func (k *known) readCalls(rows pgx.Rows) error {
	for rows.Next() {
		c := &stored{}
		var state int16
		if err := rows.Scan(&c.id, &state, &c.method, &c.endpoint, &c.sealed); err != nil {
			return err
		}
		c.state = queue.State(state)
		k.calls[c.id] = c
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
// the same group. A new one has its place then.
func (k *known) admit(p *parcel, seq int64) queue.Receipt {
	if c := k.calls[p.id]; c != nil {
		return k.again(p, c)
	}
	if r, taken := k.taken(p); taken {
		return r
	}
	if k.room <= 0 {
		return queue.Receipt{Admission: queue.Full}
	}
	k.room--
	p.seq = seq
	if p.given { // an id of our own has no twin
		k.calls[p.id] = &stored{id: p.id, endpoint: p.Endpoint, method: p.Method, sealed: p.sealed}
	}
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
	r.Admission, r.State = queue.Duplicate, c.state
	if c.sealed != nil && !k.s.keys.Same(&queue.Facts{ID: c.id, Endpoint: c.endpoint, Method: c.method}, c.sealed, p.Call) {
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
			r.State = c.state
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
	copyCalls = `COPY calls (seq, gate, not_before, expires, created, next_at, size, priority, repeatable, id, method, template, tenant,
		correlation, traceparent, request) FROM STDIN BINARY`
	copyDue  = `COPY due (gate, next_at, seq, expires, line) FROM STDIN BINARY`
	copyKeys = `COPY taken (print, body, key, id, until) FROM STDIN BINARY`
	// another gateway may have taken one anew
	dropKeys = `DELETE FROM taken t USING unnest($1::bytea[], $2::bigint[]) u(print, until)
		WHERE t.print = u.print AND t.until = u.until`
)

// store writes new calls, and commits. Keys go first and in order: two gateways
// that take the same ones wait for each other, and the one that comes late is
// told of the duplicate and looks again.
func (t *tx) store(fresh []*parcel, k *known) error {
	k.drop(t)
	count, err := k.s.arrive(t, fresh)
	if err != nil {
		return err
	}
	f := k.s.flights.take()
	defer k.s.flights.land(f)
	if !t.begun && len(k.overdue) == 0 {
		f.say(begin)
	}
	keyed := withKeys(fresh)
	if len(keyed) > 0 {
		f.say(copyKeys)
	}
	f.say(copyCalls, copyDue, count)
	if len(keyed) > 0 {
		f.keys(keyed)
	}
	f.calls(fresh)
	f.say("COMMIT")
	return t.send(f)
}

// keys adds the rows of copyKeys.
func (f *flight) keys(keyed []*parcel) {
	f.begin()
	for _, p := range keyed {
		d := &p.prints[0]
		f.row(5)
		f.bytea(d.Key)
		f.bytea(d.Body)
		f.texts(d.By, p.id)
		f.bigints(nanos(p.now.Add(p.window())))
	}
	f.done()
}

// calls adds the rows of copyCalls, and those of copyDue.
func (f *flight) calls(fresh []*parcel) {
	f.begin()
	for _, p := range fresh {
		f.row(16)
		f.bigints(p.seq, p.gate, nanos(p.NotBefore), nanos(p.Expires), nanos(p.now), p.due())
		f.integer(int32(len(p.Body)))
		f.smallint(int16(p.Priority))
		f.boolean(p.Repeatable)
		f.texts(p.id, p.Method, p.Template, p.Tenant, p.CorrelationID, p.TraceParent)
		f.bytea(p.sealed)
	}
	f.done()
	f.begin()
	for _, p := range fresh {
		f.row(5)
		f.bigints(p.gate, p.due(), p.seq, nanos(p.Expires))
		f.smallint(int16(p.line))
	}
	f.done()
}

// due is when the call may first be sent.
func (p *parcel) due() int64 { return max(nanos(p.now), nanos(p.NotBefore)) }

// drop queues the end of keys whose window is over.
func (k *known) drop(t *tx) {
	if len(k.overdue) == 0 {
		return
	}
	var prints [][]byte
	var until []int64
	for _, d := range slices.Sorted(maps.Keys(k.overdue)) {
		prints, until = append(prints, []byte(d)), append(until, k.overdue[d])
	}
	t.queue(dropKeys, prints, until)
}

// withKeys selects the parcels with an idempotency key, in the order of these.
func withKeys(all []*parcel) []*parcel {
	keyed := make([]*parcel, 0, len(all))
	for _, p := range all {
		if len(p.prints) > 0 {
			keyed = append(keyed, p)
		}
	}
	slices.SortFunc(keyed, func(a, b *parcel) int { return bytes.Compare(a.prints[0].Key, b.prints[0].Key) })
	return keyed
}
