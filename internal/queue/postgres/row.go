package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heedproject/heed/internal/queue"
)

// stateOf tells the state of a call that is joined with its lease: what is
// claimed is marked by that alone.
const stateOf = `CASE WHEN l.seq IS NULL THEN c.state ELSE 1::smallint END`

// columns of a call, joined with its lease, in the order in which a row scans them.
const columns = stateOf + `, coalesce(l.token, c.token), coalesce(l.begun, 0), ` + factColumns

const factColumns = `c.seq, c.gate, c.id, c.method, c.template, c.tenant, c.priority, c.correlation, c.traceparent,
	c.repeatable, c.size, c.revision, c.reason, c.class, c.status, c.attempts, c.waits, c.wait_source,
	c.not_before, c.expires, c.created, c.next_at, c.first_at, c.last_at, c.ended, c.kept_until, c.waited, c.delay, c.note`

// row is a call as it lies in the database.
type row struct {
	queue.Facts
	key              gateKey
	seq, gate, token int64
	state            int16
	trail, note      []byte
	times            [8]int64 // as they lie in the database, whatever becomes of Facts
	waited, delay    int64
	begun            int64 // since when it may have been sent under its lease; 0: it was not
	damaged          bool  // not all of it could be read
}

// line is where it stands while it is queued.
func (r *row) line() queue.Line { return queue.LineOf(r.Tenant, r.Priority) }

// fields are where columns go.
func (r *row) fields(more ...any) []any {
	f, t := &r.Facts, &r.times
	all := make([]any, 0, 40)
	all = append(all, &r.state, &r.token, &r.begun, &r.seq, &r.gate, &f.ID, &f.Method, &f.Template, &f.Tenant, &f.Priority, &f.CorrelationID,
		&f.TraceParent, &f.Repeatable, &f.Size, &f.Revision, &f.Reason, &f.Class, &f.Status, &f.Ladder.Attempts, &f.Ladder.Waits,
		&f.Ladder.WaitSource, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7], &r.waited, &r.delay, &r.note)
	return append(all, more...)
}

// read turns what was scanned into facts.
func (r *row) read() error {
	f := &r.Facts
	f.Endpoint, f.Gate, f.State = r.key.endpoint, r.key.key, queue.State(r.state)
	f.Begun = instant(r.begun)
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
