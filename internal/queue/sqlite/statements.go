package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// columns of a call in the order in which a row scans them.
const columns = `c.seq, c.gate, c.id, c.method, c.template, c.tenant, c.line, c.correlation, c.traceparent,
	c.repeatable, c.not_before, c.expires, c.created, c.size, c.state, c.revision, c.next_at, c.reason, c.class,
	c.status, c.attempts, c.waits, c.waited, c.wait_source, c.delay, c.first_at, c.last_at, c.note, c.ended,
	c.kept_until, c.token, c.epoch, c.begun`

// row is a call as it lies in the file.
type row struct {
	queue.Facts
	seq, gate    int64
	line         int // a queue.Line
	token, epoch int64
	begun        int64 // since when it may have been sent under its lease; 0: it was not
	damaged      bool  // not all of it could be read
	trail, note  []byte
	sealed       []byte
	times        [8]int64
}

// fields are where columns go.
func (r *row) fields() []any {
	f := &r.Facts
	return []any{&r.seq, &r.gate, &f.ID, &f.Method, &f.Template, &f.Tenant, &r.line, &f.CorrelationID, &f.TraceParent,
		&f.Repeatable, &r.times[0], &r.times[1], &r.times[2], &f.Size, &f.State, &f.Revision, &r.times[3], &f.Reason,
		&f.Class, &f.Status, &f.Ladder.Attempts, &f.Ladder.Waits, &f.Ladder.Waited, &f.Ladder.WaitSource,
		&f.Ladder.Delay, &r.times[4], &r.times[5], &r.note, &r.times[6], &r.times[7], &r.token, &r.epoch, &r.begun}
}

// read turns what was scanned into facts. What cannot be read is left out.
func (r *row) read() {
	f := &r.Facts
	r.line = min(max(r.line, 0), queue.Lines-1)
	f.Priority = queue.Line(r.line).Priority()
	for i, t := range []*time.Time{&f.NotBefore, &f.Expires, &f.Created, &f.NextAt, &f.Ladder.First, &f.Ladder.Last,
		&f.Ended, &f.KeptUntil} {
		*t = instant(r.times[i])
	}
	if f.State == queue.Running {
		f.Begun = instant(r.begun)
	}
	if len(r.note) > 0 {
		f.Note = new(queue.Note)
		if json.Unmarshal(r.note, f.Note) != nil {
			f.Note, r.damaged = nil, true
		}
	}
	if len(r.trail) > 0 && json.Unmarshal(r.trail, &f.Trail) != nil {
		f.Trail, r.damaged = nil, true
	}
}

// scan reads a row whose columns are followed by more. Of one that is damaged
// it reads what can be read: it still has to be listed, and ended.
func (r *row) scan(scan func(...any) error, more ...any) error {
	if scan(append(r.fields(), more...)...) == nil {
		return nil
	}
	*r = row{damaged: true}
	into := append(r.fields(), more...)
	raw := make([]any, len(into))
	to := make([]any, len(into))
	for i := range raw {
		to[i] = &raw[i]
	}
	if err := scan(to...); err != nil {
		return err
	}
	for i, v := range raw {
		salvage(into[i], v)
	}
	return nil
}

// salvage takes a value over if it is of the right kind.
func salvage(to, v any) {
	switch to := to.(type) {
	case *int64:
		*to, _ = v.(int64)
	case *int:
		n, _ := v.(int64)
		*to = int(n)
	case *queue.State:
		n, _ := v.(int64)
		*to = queue.State(n)
	case *string:
		*to, _ = v.(string)
	case *bool:
		n, _ := v.(int64)
		*to = n != 0
	case *[]byte:
		*to, _ = v.([]byte)
	}
}

func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func nanos(t time.Time) int64 { return queue.Nanos(t) }

// statements are those of the writer: what each says, or what came of preparing it.
type statements[T any] struct {
	insert, keep, known, state, revision         T
	fresh, filed, take, file, filedTo, forget    T
	newGate, setGate, serve, closeGate, tally    T
	heads, lines, mend, lost, bySeq, whole, byID T
	list, listedTo, stillDue, stillOpen          T
	lease, begin, renew, save                    T
	request, erase, replace, answer, free        T
	rename                                       T
	versions, revise, expired, ended             T
	overdue, unfile, freshOverdue, freshUntil    T
	dropCall, dropAnswer, dropRevisions          T
}

// all lists them, in one order for all T.
func (q *statements[T]) all() []*T {
	return []*T{
		&q.insert, &q.keep, &q.known, &q.state, &q.revision,
		&q.fresh, &q.filed, &q.take, &q.file, &q.filedTo, &q.forget,
		&q.newGate, &q.setGate, &q.serve, &q.closeGate, &q.tally,
		&q.heads, &q.lines, &q.mend, &q.lost, &q.bySeq, &q.whole, &q.byID,
		&q.list, &q.listedTo, &q.stillDue, &q.stillOpen,
		&q.lease, &q.begin, &q.renew, &q.save,
		&q.request, &q.erase, &q.replace, &q.answer, &q.free,
		&q.rename,
		&q.versions, &q.revise, &q.expired, &q.ended,
		&q.overdue, &q.unfile, &q.freshOverdue, &q.freshUntil,
		&q.dropCall, &q.dropAnswer, &q.dropRevisions,
	}
}

var texts = statements[string]{
	insert: `INSERT INTO calls (seq, id, gate, method, template, tenant, line, correlation, traceparent, repeatable,
		not_before, expires, created, size, state, revision, next_at, print, print_body, print_key, print_until)
		SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,1,?,?,?,?,? WHERE NOT EXISTS (SELECT 1 FROM filed WHERE print = ? AND until > ?)`,
	keep:     `INSERT INTO requests (seq, sealed) VALUES (?, ?)`,
	known:    `SELECT state, seq, gate, method FROM calls WHERE id = ?`,
	state:    `SELECT state FROM calls WHERE id = ?`,
	revision: `SELECT sealed FROM revisions WHERE seq = ? ORDER BY revision LIMIT 1`,
	fresh:    `SELECT id, state, print_body, print_until FROM calls WHERE seq = ?`,
	filed:    `SELECT body, id FROM filed WHERE print = ? AND until > ?`,
	take:     `INSERT OR REPLACE INTO filed (print, body, key, id, until) VALUES (?, ?, ?, ?, ?)`,
	file: `INSERT OR REPLACE INTO filed (print, body, key, id, until)
		SELECT c.print, c.print_body, c.print_key, c.id, c.print_until FROM json_each(?) j CROSS JOIN calls c
		WHERE c.seq = j.value AND c.print IS NOT NULL`,
	filedTo:   `UPDATE meta SET value = ? WHERE name = 'filed'`,
	forget:    `UPDATE calls SET print = NULL, print_until = NULL WHERE seq = ?`,
	free:      `DELETE FROM filed WHERE print = ? AND id = ?`,
	newGate:   `INSERT INTO gates (endpoint, key) VALUES (?, ?) RETURNING gate`,
	setGate:   `UPDATE gates SET closed = ?, source = coalesce(?, source), paused = ?, most = ? WHERE gate = ?`,
	closeGate: `UPDATE gates SET closed = ?, source = ? WHERE gate = ?`,
	serve:     `UPDATE gates SET served = ? WHERE gate = ?`,
	tally: `INSERT INTO tallies (gate, state, reason, n) VALUES (?, ?, ?, ?)
		ON CONFLICT (gate, state, reason) DO UPDATE SET n = n + excluded.n`,
	heads: `SELECT seq, next_at FROM calls INDEXED BY due WHERE state = 0 AND listed = 1 AND gate = ? AND line = ?
		ORDER BY next_at, seq LIMIT ?`,
	lines: `WITH RECURSIVE l(line) AS (` + minLine(`?1`) + ` UNION ALL SELECT (` + minLine(`?1 AND line > l.line`) + `) FROM l
		WHERE line IS NOT NULL) SELECT ` + sane + `, ` + odd + ` FROM l WHERE line IS NOT NULL`,
	mend:      `UPDATE calls SET line = ` + sane + ` WHERE state = 0 AND listed = 1 AND gate = ? AND ` + odd,
	list:      `UPDATE calls SET listed = 1, line = ` + sane + ` WHERE seq > ? AND seq <= ? AND state = 0`,
	listedTo:  `UPDATE meta SET value = ? WHERE name = 'listed'`,
	stillDue:  `UPDATE calls SET next_at = ?1 WHERE state = 0 AND next_at > ?1 AND next_at <= ?2 AND not_before <= ?1`,
	stillOpen: `UPDATE gates SET closed = ?1 WHERE closed > ?1 AND closed <= ?2 AND source <> ?3 RETURNING gate`,
	lost:      `SELECT seq FROM calls INDEXED BY leases WHERE state = 1 AND lease_until <= ? LIMIT ?`,
	bySeq:     `SELECT ` + columns + `, c.trail FROM json_each(?) j CROSS JOIN calls c WHERE c.seq = j.value`,
	whole: `SELECT ` + columns + `, c.trail, r.sealed FROM json_each(?) j CROSS JOIN calls c ON c.seq = j.value
		LEFT JOIN requests r ON r.seq = c.seq`,
	byID: `SELECT ` + columns + `, c.trail FROM calls c WHERE c.id = ?`,
	lease: `UPDATE calls SET state = 1, token = ?, epoch = ?, lease_until = ?, begun = ?
		WHERE seq IN (SELECT value FROM json_each(?))`,
	renew: `UPDATE calls SET lease_until = ? WHERE seq = ?`,
	begin: `UPDATE calls SET begun = ? WHERE seq = ?`,
	save: `UPDATE calls SET state = ?, revision = ?, next_at = ?, listed = ?, expires = ?, reason = ?, class = ?, status = ?,
		attempts = ?, waits = ?, waited = ?, wait_source = ?, delay = ?, first_at = ?, last_at = ?, trail = ?, note = ?,
		ended = ?, kept_until = ?, token = 0, lease_until = 0 WHERE seq = ?`,
	request:       `SELECT sealed FROM requests WHERE seq = ?`,
	versions:      `SELECT sealed FROM requests WHERE seq = ? UNION ALL SELECT sealed FROM revisions WHERE seq = ?`,
	erase:         `DELETE FROM requests WHERE seq IN (SELECT value FROM json_each(?))`,
	replace:       `UPDATE requests SET sealed = ? WHERE seq = ?`,
	rename:        `UPDATE calls SET template = ? WHERE seq = ?`,
	answer:        `INSERT INTO answers (seq, sealed) VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET sealed = excluded.sealed`,
	revise:        `INSERT INTO revisions (seq, revision, sealed) VALUES (?, ?, ?)`,
	expired:       `SELECT seq FROM calls INDEXED BY expiring WHERE state = 0 AND expires > 0 AND expires <= ? LIMIT ?`,
	ended:         `SELECT seq FROM calls INDEXED BY kept WHERE state > 1 AND kept_until <= ? LIMIT ?`,
	overdue:       `SELECT print FROM filed INDEXED BY filed_until WHERE until >> 36 < ? >> 36 LIMIT ?`,
	unfile:        `DELETE FROM filed WHERE print = ?`,
	freshOverdue:  `SELECT print, seq FROM calls WHERE seq > ? AND print_until <= ? LIMIT ?`,
	freshUntil:    `SELECT min(print_until) FROM calls WHERE seq > ? AND print IS NOT NULL HAVING count(*) > 0`,
	dropCall:      `DELETE FROM calls WHERE seq = ?`,
	dropAnswer:    `DELETE FROM answers WHERE seq = ?`,
	dropRevisions: `DELETE FROM revisions WHERE seq = ?`,
}

// prepare prepares what the texts say.
func prepare(ctx context.Context, c *sql.Conn) (q statements[*sql.Stmt], err error) {
	to := q.all()
	for i, text := range texts.all() {
		if *to[i], err = c.PrepareContext(ctx, *text); err != nil {
			return q, fmt.Errorf("statement %q: %w", *text, err)
		}
	}
	return q, nil
}

// shut lets the statements go: one that is open keeps its connection open.
func shut(q *statements[*sql.Stmt]) {
	for _, s := range q.all() {
		(*s).Close()
	}
}

// load reads one call; nil: there is none.
func (b *book) load(id string) *row {
	r := &row{}
	found := false
	b.rows(b.q.byID, func(scan func(...any) error) error {
		found = true
		return r.scan(scan, &r.trail)
	}, id)
	if !found || !b.facts(r) {
		return nil
	}
	return r
}

// facts turns what was scanned into facts. A call of a gate that is not there
// is damaged beyond use, and as good as gone.
func (b *book) facts(r *row) bool {
	r.read()
	g := b.byID[r.gate]
	if g != nil {
		r.Endpoint, r.Gate = g.gateKey.endpoint, g.gateKey.key
	}
	return g != nil
}

// save writes the facts of a call that is no longer leased and counts it anew.
func (b *book) save(r *row, was queue.State, reason string) {
	f := &r.Facts
	var trail, note []byte
	var err error
	if len(f.Trail) > 0 {
		trail, err = json.Marshal(f.Trail)
		b.fail(err)
	}
	if f.Note != nil {
		note, err = json.Marshal(f.Note)
		b.fail(err)
	}
	l := &f.Ladder
	b.exec(b.q.save, f.State, f.Revision, nanos(f.NextAt), r.seq <= b.listed, nanos(f.Expires), f.Reason, f.Class, f.Status,
		l.Attempts, l.Waits, int64(l.Waited), l.WaitSource, int64(l.Delay), nanos(l.First), nanos(l.Last), trail, note,
		nanos(f.Ended), nanos(f.KeptUntil), r.seq)
	if held := b.out[r.ID]; held != nil {
		delete(b.out, r.ID)
		b.undo = append(b.undo, func() { b.out[r.ID] = held })
	}
	g := b.byID[r.gate]
	b.move(g, was, reason, -1)
	b.move(g, f.State, f.Reason, 1)
	if was == queue.Queued {
		b.leave(g, r)
	}
	if f.State == queue.Queued {
		b.enter(g, newArrival(r.seq, nanos(f.NextAt), queue.Line(r.line)))
	}
}

// seqs runs a query for the numbers of rows.
func (b *book) seqs(q *sql.Stmt, args ...any) []int64 {
	var all []int64
	b.rows(q, func(scan func(...any) error) error {
		var seq int64
		err := scan(&seq)
		all = append(all, seq)
		return err
	}, args...)
	return all
}
