package sqlite

import (
	"encoding/binary"
	"encoding/hex"
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

// take takes the idempotency key of a call, or tells who has it.
func (b *book) take(now time.Time, p *parcel) (queue.Receipt, bool) {
	if len(p.prints) == 0 {
		return queue.Receipt{}, false
	}
	for i := range p.prints[1:] {
		if r, taken := b.taken(now, &p.prints[i+1]); taken {
			return r, true
		}
	}
	d := &p.prints[0]
	if b.exec(b.q.take, d.key, d.body, d.by, p.id, p.until) == 1 {
		return queue.Receipt{}, false
	}
	if r, taken := b.taken(now, d); taken || b.broken != nil {
		return r, true
	}
	b.exec(b.q.retake, d.body, d.by, p.id, p.until, d.key)
	return queue.Receipt{}, false
}

// taken tells which call has a key.
func (b *book) taken(now time.Time, d *print) (queue.Receipt, bool) {
	var body int64
	r := queue.Receipt{Admission: queue.Duplicate, State: queue.Done}
	if !b.row(b.q.taken, []any{&body, &r.ID}, d.key, nanos(now)) {
		return queue.Receipt{}, false
	}
	if body != d.body {
		r.Admission = queue.Conflict
	}
	b.row(b.q.state, []any{&r.State}, r.ID)
	return r, true
}
