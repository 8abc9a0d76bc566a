package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// flight is messages of the wire protocol that leave together, for one round
// trip: statements as text and COPYs with their rows, which take the server
// half as long as INSERTs (postgresql.org/docs, "Message Formats" and COPY,
// "Binary Format"). The driver has no COPY within a batch. The zero value is
// empty.
type flight struct {
	b          []byte
	statements []string
	message    int // where the CopyData begins that is being written
	exchanges  int // each ends with a ReadyForQuery
}

// flights are kept for the next group: each is as large as what it carries. The
// zero value is ready.
type flights struct {
	mu   sync.Mutex
	idle []*flight
}

const (
	// maxKept is how large a flight may be that is kept, and mostKept how many are.
	maxKept  = 1 << 20
	mostKept = 4
	// chunk is after how many bytes a CopyData ends: the server holds a message
	// in memory.
	chunk = 16 << 10
)

// take returns an empty one; land is to be called when it is over.
func (s *flights) take() *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.idle) - 1
	if last < 0 {
		return new(flight)
	}
	f := s.idle[last]
	s.idle = s.idle[:last]
	return f
}

func (s *flights) land(f *flight) {
	if cap(f.b) > maxKept {
		return
	}
	f.b, f.statements, f.exchanges = f.b[:0], f.statements[:0], 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) < mostKept {
		s.idle = append(s.idle, f)
	}
}

// say adds statements without values. What is said before rows, or the end, is
// one query, and the rows of its COPYs follow in their order: the server answers
// once.
func (f *flight) say(statements ...string) { f.statements = append(f.statements, statements...) }

// begin begins the rows of a COPY. Rows follow, and done.
func (f *flight) begin() {
	f.speak()
	f.open()
	f.b = append(f.b, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// speak puts what is said into one query.
func (f *flight) speak() {
	if len(f.statements) == 0 {
		return
	}
	at := len(f.b)
	f.b = append(f.b, 'Q', 0, 0, 0, 0)
	for i, text := range f.statements {
		if i > 0 {
			f.b = append(f.b, ';')
		}
		f.b = append(f.b, text...)
	}
	f.b = append(f.b, 0)
	binary.BigEndian.PutUint32(f.b[at+1:], uint32(len(f.b)-at-1))
	f.statements = f.statements[:0]
	f.exchanges++
}

func (f *flight) done() {
	f.b = append(f.b, 0xff, 0xff)
	f.shut()
	f.b = append(f.b, 'c', 0, 0, 0, 4)
}

// open and shut begin and end a CopyData.
func (f *flight) open() {
	f.message = len(f.b)
	f.b = append(f.b, 'd', 0, 0, 0, 0)
}

func (f *flight) shut() {
	binary.BigEndian.PutUint32(f.b[f.message+1:], uint32(len(f.b)-f.message-1))
}

// row begins a row of so many columns.
func (f *flight) row(columns int) {
	if len(f.b)-f.message > chunk {
		f.shut()
		f.open()
	}
	f.b = binary.BigEndian.AppendUint16(f.b, uint16(columns))
}

func (f *flight) bigints(v ...int64) {
	for _, n := range v {
		f.b = binary.BigEndian.AppendUint32(f.b, 8)
		f.b = binary.BigEndian.AppendUint64(f.b, uint64(n))
	}
}

func (f *flight) integer(v int32) {
	f.b = binary.BigEndian.AppendUint32(f.b, 4)
	f.b = binary.BigEndian.AppendUint32(f.b, uint32(v))
}

func (f *flight) smallint(v int16) {
	f.b = binary.BigEndian.AppendUint32(f.b, 2)
	f.b = binary.BigEndian.AppendUint16(f.b, uint16(v))
}

func (f *flight) boolean(v bool) {
	f.b = append(f.b, 0, 0, 0, 1, 0)
	if v {
		f.b[len(f.b)-1] = 1
	}
}

func (f *flight) texts(v ...string) {
	for _, w := range v {
		f.b = binary.BigEndian.AppendUint32(f.b, uint32(len(w)))
		f.b = append(f.b, w...)
	}
}

func (f *flight) bytea(v []byte) {
	f.b = binary.BigEndian.AppendUint32(f.b, uint32(len(v)))
	f.b = append(f.b, v...)
}

// send carries a flight out, after what is queued. Its last statement is the
// COMMIT. One that fails makes those behind it fail too, in a transaction.
func (t *tx) send(f *flight) error {
	if err := t.flush(); err != nil {
		return err
	}
	t.begun = true
	f.speak()
	c := t.conn.PgConn()
	until, _ := t.ctx.Deadline()
	c.Conn().SetDeadline(until) // costs less than to watch the context of each message
	defer c.Conn().SetDeadline(time.Time{})
	_, err := c.Conn().Write(f.b)
	var last string
	var refused *pgconn.PgError
	for ended := 0; err == nil && ended < f.exchanges; {
		var m pgproto3.BackendMessage
		if m, err = c.ReceiveMessage(context.Background()); err != nil {
			break
		}
		switch m := m.(type) {
		case *pgproto3.CommandComplete:
			last = string(m.CommandTag)
		case *pgproto3.ErrorResponse:
			if refused == nil { // the others follow from it
				refused = pgconn.ErrorResponseToPgError(m)
			}
		case *pgproto3.ReadyForQuery:
			ended++
		}
	}
	switch {
	case refused != nil && err == nil:
		return failed(refused)
	case err != nil:
		t.conn.Close(t.ctx) // what it would answer next is not known
		if errors.Is(err, os.ErrDeadlineExceeded) {
			<-t.ctx.Done() // at the same instant
		}
		return failed(err)
	case last != "COMMIT":
		return failed(fmt.Errorf("%w: it said %q", errNotCommitted, last))
	}
	return nil
}
