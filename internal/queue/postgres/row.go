package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// columns of a call in the order in which a row scans them.
const columns = `c.seq, c.gate, c.token, c.state, c.id, c.method, c.template, c.tenant, c.priority, c.correlation,
	c.traceparent, c.repeatable, c.begun, c.size, c.revision, c.reason, c.class, c.status, c.attempts, c.waits, c.wait_source,
	c.not_before, c.expires, c.created, c.next_at, c.first_at, c.last_at, c.ended, c.kept_until, c.waited, c.delay, c.note`

// row is a call as it lies in the database.
type row struct {
	queue.Facts
	key              gateKey
	seq, gate, token int64
	state            int16
	trail, note      []byte
	times            [8]int64
	waited, delay    int64
	begun            bool // it may have been sent under its lease
	damaged          bool // not all of it could be read
}

// fields are where columns go.
func (r *row) fields(more ...any) []any {
	f, t := &r.Facts, &r.times
	return append([]any{&r.seq, &r.gate, &r.token, &r.state, &f.ID, &f.Method, &f.Template, &f.Tenant, &f.Priority, &f.CorrelationID,
		&f.TraceParent, &f.Repeatable, &r.begun, &f.Size, &f.Revision, &f.Reason, &f.Class, &f.Status, &f.Ladder.Attempts, &f.Ladder.Waits,
		&f.Ladder.WaitSource, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7], &r.waited, &r.delay, &r.note}, more...)
}

// read turns what was scanned into facts.
func (r *row) read() error {
	f := &r.Facts
	f.Endpoint, f.Gate, f.State = r.key.endpoint, r.key.key, queue.State(r.state)
	f.Ladder.Waited, f.Ladder.Delay = time.Duration(r.waited), time.Duration(r.delay)
	for i, t := range []*time.Time{&f.NotBefore, &f.Expires, &f.Created, &f.NextAt, &f.Ladder.First, &f.Ladder.Last,
		&f.Ended, &f.KeptUntil} {
		*t = instant(r.times[i])
	}
	if len(r.note) > 0 {
		f.Note = new(queue.Note)
		if err := json.Unmarshal(r.note, f.Note); err != nil {
			return fmt.Errorf("read the note of call %s: %w", f.ID, queue.ErrCorrupt)
		}
	}
	if len(r.trail) > 0 {
		if err := json.Unmarshal(r.trail, &f.Trail); err != nil {
			return fmt.Errorf("read the attempts of call %s: %w", f.ID, queue.ErrCorrupt)
		}
	}
	return nil
}

func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func nanos(t time.Time) int64 { return queue.Nanos(t) }

// fits tells whether the words can be stored: Postgres takes no zero bytes and
// no broken UTF-8.
func fits(words ...string) bool {
	for _, w := range words {
		if !utf8.ValidString(w) || strings.IndexByte(w, 0) >= 0 {
			return false
		}
	}
	return true
}

// fit makes a word storable that cannot be refused any more.
func fit(w string) string {
	if fits(w) {
		return w
	}
	return strings.ReplaceAll(strings.ToValidUTF8(w, "\uFFFD"), "\x00", "")
}

// change is a call that was moved on, and what it was before: it is saved only
// if it is still that.
type change struct {
	*row
	was    queue.State
	reason string
	held   int64 // the token it was held by
	answer []byte
}

// was remembers what a row is before it is changed.
func (r *row) change() change {
	return change{row: r, was: r.State, reason: r.Reason, held: r.token}
}

const saveCalls = `UPDATE calls c SET state = u.state, token = u.token, lease_until = 0, revision = u.revision,
		next_at = u.next_at, expires = u.expires, reason = u.reason, class = u.class, status = u.status, attempts = u.attempts,
		waits = u.waits, waited = u.waited, wait_source = u.wait_source, delay = u.delay, first_at = u.first_at,
		last_at = u.last_at, trail = u.trail, note = u.note, ended = u.ended, kept_until = u.kept_until
	FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::integer[], $7::bigint[],
		$8::bigint[], $9::text[], $10::text[], $11::integer[], $12::integer[], $13::integer[], $14::bigint[], $15::text[],
		$16::bigint[], $17::bigint[], $18::bigint[], $19::bytea[], $20::bytea[], $21::bigint[], $22::bigint[])
		u(seq, was, held, state, token, revision, next_at, expires, reason, class, status, attempts, waits, waited, wait_source,
		delay, first_at, last_at, trail, note, ended, kept_until)
	WHERE c.seq = u.seq AND c.state = u.was AND c.token = u.held RETURNING c.seq`

// save queues an update of the calls and tells the numbers of those that were
// still what they were. The order of changes is that in which rows are locked.
func (t *tx) save(changes []change, saved func(seq int64)) error {
	a, err := arrays(changes)
	if err != nil {
		return err
	}
	t.queue(saveCalls, a...).Query(func(rows pgx.Rows) error {
		var seq int64
		_, err := pgx.ForEachRow(rows, []any{&seq}, func() error {
			saved(seq)
			return nil
		})
		return err
	})
	return nil
}

// arrays lays changes out as the columns of saveCalls.
func arrays(changes []change) ([]any, error) {
	n := len(changes)
	seq, held, token := make([]int64, n), make([]int64, n), make([]int64, n)
	was, state := make([]int16, n), make([]int16, n)
	revision, status, attempts, waits := make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	reason, class, source := make([]string, n), make([]string, n), make([]string, n)
	var times [8][]int64
	for i := range times {
		times[i] = make([]int64, n)
	}
	trail, note := make([][]byte, n), make([][]byte, n)
	for i := range changes {
		c := &changes[i]
		f, l := &c.Facts, &c.Ladder
		seq[i], held[i], token[i], was[i], state[i] = c.seq, c.held, c.token, int16(c.was), int16(f.State)
		revision[i], status[i], attempts[i], waits[i] = int32(f.Revision), int32(f.Status), int32(l.Attempts), int32(l.Waits)
		f.Reason, f.Class, l.WaitSource = fit(f.Reason), fit(f.Class), fit(l.WaitSource)
		reason[i], class[i], source[i] = f.Reason, f.Class, l.WaitSource
		for j, v := range [8]int64{nanos(f.NextAt), nanos(f.Expires), int64(l.Waited), int64(l.Delay), nanos(l.First),
			nanos(l.Last), nanos(f.Ended), nanos(f.KeptUntil)} {
			times[j][i] = v
		}
		var err error
		if len(f.Trail) > 0 {
			if trail[i], err = json.Marshal(f.Trail); err != nil {
				return nil, fmt.Errorf("write the attempts of call %s: %w", f.ID, err)
			}
		}
		if f.Note != nil {
			if note[i], err = json.Marshal(f.Note); err != nil {
				return nil, fmt.Errorf("write the note of call %s: %w", f.ID, err)
			}
		}
	}
	return []any{seq, was, held, state, token, revision, times[0], times[1], reason, class, status, attempts, waits,
		times[2], source, times[3], times[4], times[5], trail, note, times[6], times[7]}, nil
}
