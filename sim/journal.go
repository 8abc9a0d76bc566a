package sim

import (
	"slices"
	"time"
)

// Entry is one request as the simulator saw it.
type Entry struct {
	Seq        int           `json:"seq"`  // from 1, in the order of arrival
	Time       time.Time     `json:"time"` // on the clock of the case
	Pack       string        `json:"pack"`
	Caller     string        `json:"caller"` // anonymous, or a short hash of the credential
	Connection string        `json:"connection,omitempty"`
	Method     string        `json:"method"`
	Path       string        `json:"path"`                // within the pack
	Operation  string        `json:"operation,omitempty"` // its logical name; empty: there is none
	Attempt    int           `json:"attempt"`             // of this caller at this method and path
	Step       string        `json:"step,omitempty"`      // of the script; empty: the list is used up, or there is none
	Status     int           `json:"status"`              // 0: no answer, or none yet
	Took       time.Duration `json:"took_ns"`
	Open       bool          `json:"open,omitempty"`      // the answer is still to come
	Throttled  bool          `json:"throttled,omitempty"` // by a rate limit
	Limit      string        `json:"limit,omitempty"`     // the name of that limit
	Replayed   bool          `json:"replayed,omitempty"`  // from the memory of the idempotency key
	Early      time.Duration `json:"early_ns,omitempty"`  // how long before the instant the caller was told
	Key        string        `json:"key_hash,omitempty"`  // hash of the idempotency key
	Body       string        `json:"body_hash,omitempty"` // hash of the request's body
	BytesIn    int           `json:"bytes_in,omitempty"`  // of the request's body
	BytesOut   int           `json:"bytes_out,omitempty"` // of the answer's body, as sent
}

// Journal is what was seen. Of more than World.JournalSize requests the oldest
// are dropped.
type Journal struct {
	Requests int     `json:"requests"` // all, dropped ones included
	Dropped  int     `json:"dropped"`
	Entries  []Entry `json:"entries"`
	// Webhooks are the attempts to deliver, the newest World.JournalSize of them.
	Webhooks []Delivery `json:"webhooks,omitempty"`
}

// record is an Entry in the form that costs least to write.
type record struct {
	seq        int
	time       time.Time
	pack       *pack
	operation  *operation
	caller     string
	connection string
	method     string
	path       string
	step       string
	limit      string
	took       time.Duration
	early      time.Duration
	attempt    int
	status     int
	bytesIn    int
	bytesOut   int
	key, body  fingerprint
	open       bool
	throttled  bool
	replayed   bool
}

func (r *record) entry() Entry {
	e := Entry{
		Seq: r.seq, Time: r.time, Pack: r.pack.Name, Caller: r.caller, Connection: r.connection,
		Method: r.method, Path: clip(r.path), Attempt: r.attempt, Step: r.step, Status: r.status,
		Took: r.took, Open: r.open, Throttled: r.throttled, Limit: r.limit, Replayed: r.replayed, Early: r.early,
		Key: r.key.String(), Body: r.body.String(), BytesIn: r.bytesIn, BytesOut: r.bytesOut,
	}
	if r.operation != nil {
		e.Operation = r.operation.Name
	}
	return e
}

// clip bounds what one request adds to the journal.
func clip(path string) string {
	const most = 256
	if len(path) > most {
		return path[:most] + "…"
	}
	return path
}

// journal is a ring.
type journal struct {
	seq  int
	size int
	ring []record

	deliveries []Delivery
	delivered  int // counts all
}

// add writes r down as open and numbers it.
func (j *journal) add(r *record) {
	j.seq++
	r.seq, r.open = j.seq, true
	if len(j.ring) < j.size {
		j.ring = append(j.ring, *r)
	} else {
		j.ring[(r.seq-1)%j.size] = *r
	}
}

// settle replaces the record of a request that ended, unless it was dropped.
func (j *journal) settle(r *record) {
	r.open = false
	if at := (r.seq - 1) % j.size; at < len(j.ring) && j.ring[at].seq == r.seq {
		j.ring[at] = *r
	}
}

// deliver writes an attempt down.
func (j *journal) deliver(d Delivery) {
	j.delivered++
	d.Seq = j.delivered
	if len(j.deliveries) >= 2*j.size {
		j.deliveries = slices.Clone(j.deliveries[j.size:])
	}
	j.deliveries = append(j.deliveries, d)
}

func (j *journal) read() Journal {
	out := Journal{Requests: j.seq, Dropped: j.seq - len(j.ring), Entries: make([]Entry, 0, len(j.ring))}
	out.Webhooks = slices.Clone(j.deliveries[max(len(j.deliveries)-j.size, 0):])
	oldest := 0
	if len(j.ring) == j.size {
		oldest = j.seq % j.size
	}
	for i := range j.ring {
		out.Entries = append(out.Entries, j.ring[(oldest+i)%len(j.ring)].entry())
	}
	return out
}
