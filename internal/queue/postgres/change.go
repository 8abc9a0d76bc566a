package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// change is a call that was moved on, and what it was before: it is saved only
// if it is still that.
type change struct {
	*row
	was    queue.State
	reason string
	held   int64  // the token it was held by
	answer []byte // nil: what is kept stays
}

// change remembers what a row is before it is changed.
func (r *row) change() change {
	return change{row: r, was: r.State, reason: r.Reason, held: r.token}
}

// at is what the row names that its owner deletes.
func (c *change) at() int64 {
	switch {
	case c.was == queue.Queued:
		return c.times[3] // next_at
	case c.was.Ended():
		return c.times[7] // kept_until
	}
	return c.held
}

// The row of due, leases or ends is deleted that makes a call ours, and what
// lies in it elsewhere follows from that.
const (
	fromDue    = `due d USING changes u WHERE d.gate = u.gate AND d.line = u.line AND d.next_at = u.was_at AND d.seq = u.seq`
	fromLeases = `leases l USING changes u WHERE l.gate = u.gate AND l.seq = u.seq AND l.token = u.was_at`
	fromEnds   = `ends e USING changes u WHERE e.kept_until = u.was_at AND e.seq = u.seq`

	changed = `WITH changes AS (
			SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::integer[],
				$8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::integer[], $13::integer[], $14::integer[], $15::bigint[],
				$16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bytea[], $21::bytea[], $22::bigint[], $23::bigint[],
				$24::bytea[])
			u(seq, gate, line, was_at, state, token, revision, next_at, expires, reason, class, status, attempts, waits, waited,
			wait_source, delay, first_at, last_at, trail, note, ended, kept_until, answer)
		), own AS (DELETE FROM %s RETURNING u.*
		), again AS (
			INSERT INTO due (gate, next_at, seq, expires, line) SELECT gate, next_at, seq, expires, line FROM own WHERE state = 0
		), over AS (
			INSERT INTO ends (kept_until, seq, state) SELECT kept_until, seq, state FROM own WHERE state > 1
		)
		UPDATE calls c SET state = u.state, token = u.token, revision = u.revision, next_at = u.next_at, expires = u.expires,
			reason = u.reason, class = u.class, status = u.status, attempts = u.attempts, waits = u.waits, waited = u.waited,
			wait_source = u.wait_source, delay = u.delay, first_at = u.first_at, last_at = u.last_at, trail = u.trail, note = u.note,
			ended = u.ended, kept_until = u.kept_until, answer = coalesce(u.answer, c.answer),
			request = CASE WHEN u.state = 2 THEN NULL ELSE c.request END
		FROM own u WHERE c.seq = u.seq`
	// allOrNone fails (22012) unless all are ours: what follows from a change can
	// then be sent with it.
	allOrNone = ` AND 1 / (CASE WHEN (SELECT count(*) FROM own) = cardinality($1) THEN 1 ELSE 0 END) = 1`
	returning = ` RETURNING c.seq, u.was_at`
)

// saveHeld saves what is still held by all claims, or nothing.
var saveHeld = fmt.Sprintf(changed, fromLeases) + allOrNone

var saving = map[string]string{
	fromDue:    fmt.Sprintf(changed, fromDue) + returning,
	fromLeases: fmt.Sprintf(changed, fromLeases) + returning,
	fromEnds:   fmt.Sprintf(changed, fromEnds) + returning,
}

// saveAll saves calls that are believed to be held, counts them anew and
// commits, in one round trip.
func (t *tx) saveAll(changes []change) error {
	a, err := arrays(changes)
	if err != nil {
		return err
	}
	t.queue(saveHeld, a...)
	t.follow(changes)
	return t.commit()
}

// save queues an update of the calls and tells the place and at of those that
// were still what they were. The order of changes is that in which rows are locked.
func (t *tx) save(changes []change, saved func(seq, at int64)) error {
	parts := map[string][]change{}
	for _, c := range changes {
		from := fromLeases
		switch {
		case c.was == queue.Queued:
			from = fromDue
		case c.was.Ended():
			from = fromEnds
		}
		parts[from] = append(parts[from], c)
	}
	for _, from := range []string{fromLeases, fromDue, fromEnds} {
		if len(parts[from]) == 0 {
			continue
		}
		a, err := arrays(parts[from])
		if err != nil {
			return err
		}
		t.queue(saving[from], a...).Query(func(rows pgx.Rows) error {
			var seq, at int64
			_, err := pgx.ForEachRow(rows, []any{&seq, &at}, func() error {
				saved(seq, at)
				return nil
			})
			return err
		})
	}
	return nil
}

// arrays lays changes out as the columns of changed.
func arrays(changes []change) ([]any, error) {
	n := len(changes)
	line, state := make([]int16, n), make([]int16, n)
	revision, status, attempts, waits := make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	reason, class, source := make([]string, n), make([]string, n), make([]string, n)
	var big [12][]int64
	for i := range big {
		big[i] = make([]int64, n)
	}
	trail, note, answer := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i := range changes {
		c := &changes[i]
		f, l := &c.Facts, &c.Ladder
		f.Reason, f.Class, l.WaitSource = fit(f.Reason), fit(f.Class), fit(l.WaitSource)
		line[i], state[i] = int16(c.line()), int16(f.State)
		revision[i], status[i], attempts[i], waits[i] = int32(f.Revision), int32(f.Status), int32(l.Attempts), int32(l.Waits)
		reason[i], class[i], source[i], answer[i] = f.Reason, f.Class, l.WaitSource, c.answer
		for j, v := range [...]int64{c.seq, c.gate, c.at(), c.token, nanos(f.NextAt), nanos(f.Expires), int64(l.Waited),
			int64(l.Delay), nanos(l.First), nanos(l.Last), nanos(f.Ended), nanos(f.KeptUntil)} {
			big[j][i] = v
		}
		var err error
		if trail[i], note[i], err = c.papers(); err != nil {
			return nil, err
		}
	}
	return []any{big[0], big[1], line, big[2], state, big[3], revision, big[4], big[5], reason, class, status, attempts, waits,
		big[6], source, big[7], big[8], big[9], trail, note, big[10], big[11], answer}, nil
}

// papers writes out what lies in the row as JSON.
func (r *row) papers() (trail, note []byte, err error) {
	if len(r.Trail) > 0 {
		if trail, err = json.Marshal(r.Trail); err != nil {
			return nil, nil, fmt.Errorf("write the attempts of call %s: %w", r.ID, err)
		}
	}
	if r.Note != nil {
		if note, err = json.Marshal(r.Note); err != nil {
			return nil, nil, fmt.Errorf("write the note of call %s: %w", r.ID, err)
		}
	}
	return trail, note, nil
}
