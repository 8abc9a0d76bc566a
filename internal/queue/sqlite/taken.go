package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// print is a queue.Print in numbers. 64 bits of a digest are enough: among a
// hundred million keys in their window, one new key in 10^11 meets the digest
// of another, and nobody without the ring can look for one that does.
type print struct{ key, body, by int64 }

func prints(k *queue.Keys, c *queue.Call) []print {
	all := k.Prints(c)
	out := make([]print, len(all))
	for i, p := range all {
		out[i] = print{key: number(p.Key), body: number(p.Body), by: keyNumber(p.By)}
	}
	return out
}

func number(digest []byte) int64 { return int64(binary.BigEndian.Uint64(digest)) }

// keyNumber is the id of a key, which is eight bytes in hex, as a number.
func keyNumber(id string) int64 {
	b, _ := hex.DecodeString(id)
	return number(b)
}

func keyID(n int64) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// ledger tells which call has a key that is not filed yet: a key lies on any
// page of the table of those that are, and writing a page for each would cost
// more than the rest of its call. A key is taken in the row of its call, which
// is written anyway, and is known from memory. Many are then filed together in
// the order of their table, a few with each transaction, so that they share
// pages. What the ledger says goes before what is filed.
type ledger struct {
	fresh  map[int64]int64 // print → seq of the call
	filing map[int64]int64 // those before, while they are filed
	line   []int64         // the prints of filing that are left, in order
	end    int64           // seq of the last call of filing
	filed  int64           // the keys of calls up to this seq are filed
	free   int64           // when the first key is free again: never later than the truth
}

// of returns the call that has a key; 0: no call of the ledger.
func (l *ledger) of(key int64) int64 {
	if seq := l.fresh[key]; seq != 0 {
		return seq
	}
	return l.filing[key]
}

// readKeys fills the ledger from the rows of calls.
func (b *book) readKeys(ctx context.Context, c *sql.Conn) error {
	l := &b.keys
	l.fresh, l.free = map[int64]int64{}, math.MaxInt64
	text := fmt.Sprintf("SELECT print, seq, print_until FROM calls WHERE seq > %d AND typeof(print) = 'integer' ORDER BY seq", l.filed)
	return each(ctx, c, text, func(r *sql.Rows) error {
		var key, seq, until int64
		err := r.Scan(&key, &seq, &until)
		l.fresh[key], l.free = seq, min(l.free, until)
		return err
	})
}

// took notes that a call has a key.
func (b *book) took(key, seq, until int64) {
	b.keys.fresh[key], b.keys.free = seq, min(b.keys.free, until)
	b.arrived++
	b.undo = append(b.undo, func() { delete(b.keys.fresh, key) })
}

// forget takes a key out of the ledger and the row of its call.
func (b *book) forget(key, seq int64) {
	b.exec(b.q.forget, seq)
	for _, m := range []map[int64]int64{b.keys.fresh, b.keys.filing} {
		if m[key] == seq {
			delete(m, key)
			b.undo = append(b.undo, func() { m[key] = seq })
		}
	}
}

// before tells which call has one of the keys of a new one. Where all is
// false, the insert looks whether the first of them is filed.
func (b *book) before(now time.Time, prints []print, all bool) (queue.Receipt, bool) {
	for i := range prints {
		r, taken := b.lately(now, &prints[i])
		if !taken && (all || i > 0) {
			r, taken = b.filed(now, &prints[i])
		}
		if taken {
			return r, true
		}
	}
	return queue.Receipt{}, false
}

// lately tells which call of the ledger has a key.
func (b *book) lately(now time.Time, d *print) (queue.Receipt, bool) {
	seq := b.keys.of(d.key)
	if seq == 0 {
		return queue.Receipt{}, false
	}
	var body, until int64
	r := queue.Receipt{Admission: queue.Duplicate}
	if !b.row(b.q.fresh, []any{&r.ID, &r.State, &body, &until}, seq) || until <= nanos(now) {
		b.forget(d.key, seq)
		return queue.Receipt{}, false
	}
	if body != d.body {
		r.Admission = queue.Conflict
	}
	return r, true
}

// filed tells which call has a key that is filed.
func (b *book) filed(now time.Time, d *print) (queue.Receipt, bool) {
	var body int64
	r := queue.Receipt{Admission: queue.Duplicate, State: queue.Done}
	if !b.row(b.q.filed, []any{&body, &r.ID}, d.key, nanos(now)) {
		return queue.Receipt{}, false
	}
	if body != d.body {
		r.Admission = queue.Conflict
	}
	b.row(b.q.state, []any{&r.State}, r.ID)
	return r, true
}

// free gives up a key of a call.
func (b *book) free(key int64, r *row) {
	if b.keys.of(key) == r.seq {
		b.forget(key, r.seq)
	}
	b.exec(b.q.free, key, r.ID)
}

// file files some of the keys, and no less than come in.
func (b *book) file() {
	l := &b.keys
	if len(l.line) == 0 && len(l.fresh) < b.s.few.keys || b.broken != nil {
		return
	}
	was := *l
	b.undo = append(b.undo, func() { *l = was })
	if len(l.line) == 0 {
		l.filing, l.fresh, l.end = l.fresh, map[int64]int64{}, b.seq
		l.line = slices.Sorted(maps.Keys(l.filing))
	}
	n := min(len(l.line), max(b.s.few.filed, 2*b.arrived))
	seqs := make([]int64, 0, n)
	for _, key := range l.line[:n] {
		if seq := l.filing[key]; seq != 0 {
			seqs = append(seqs, seq)
		}
	}
	b.exec(b.q.file, array(seqs))
	if l.line = l.line[n:]; len(l.line) == 0 {
		b.exec(b.q.filedTo, l.end)
		l.filing, l.filed = nil, l.end
	}
}

// overdue frees keys whose window has ended, up to a limit, and tells how many.
func (b *book) overdue(at int64, limit int) int {
	keys := b.seqs(b.q.overdue, at, limit)
	for _, k := range keys {
		b.exec(b.q.unfile, k)
	}
	l := &b.keys
	if len(keys) == limit || l.free > at {
		return len(keys)
	}
	fresh := map[int64]int64{}
	b.rows(b.q.freshOverdue, func(scan func(...any) error) error {
		var key, seq int64
		err := scan(&key, &seq)
		fresh[key] = seq
		return err
	}, l.filed, at, limit-len(keys))
	for key, seq := range fresh {
		b.forget(key, seq)
	}
	if len(keys)+len(fresh) < limit {
		was := l.free
		b.undo = append(b.undo, func() { l.free = was })
		l.free = math.MaxInt64
		b.row(b.q.freshUntil, []any{&l.free}, l.filed)
	}
	return len(keys) + len(fresh)
}
