package sim

import (
	"slices"
	"time"

	"github.com/heedproject/heed/sim/rate"
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
	Note       string        `json:"note,omitempty"`      // what the step could not do
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
	time       int64 // in the zone of the journal
	pack       *pack
	operation  *operation // nil: there is none
	caller     *caller
	connection string
	method     string
	path       string
	step       *step       // nil: none
	limit      *rate.Limit // nil: none refused
	took       time.Duration
	early      time.Duration
	key, body  fingerprint
	attempt    int32
	bytesIn    int32
	bytesOut   int32
	status     int16
	open       bool
	throttled  bool
	replayed   bool
	note       note
}

// note says what a step could not do, so that a test does not take for a
// failure what was none.
type note uint8

const (
	noNote note = iota
	sentWhole
	notStale
)

var notes = [...]string{"", "there was nothing to leave out: the answer was sent whole", "nothing is known of it before its last write, or that was longer ago: the answer is as now"}

func (r *record) entry(zone *time.Location) Entry {
	e := Entry{
		Seq: r.seq, Time: time.Unix(0, r.time).In(zone), Pack: r.pack.Name, Caller: r.caller.name, Connection: r.connection,
		Method: r.method, Path: r.path, Attempt: int(r.attempt), Status: int(r.status),
		Took: r.took, Open: r.open, Throttled: r.throttled, Replayed: r.replayed, Early: r.early,
		Key: r.key.String(), Body: r.body.String(), BytesIn: int(r.bytesIn), BytesOut: int(r.bytesOut),
	}
	if r.step != nil {
		e.Step = r.step.text
	}
	e.Note = notes[r.note]
	if r.limit != nil {
		e.Limit = r.limit.Name
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

// pageSize is how many records are made room for at a time, so that a journal
// is not copied as it grows.
const pageSize = 32

// journal is a ring of pages.
type journal struct {
	seq   int
	size  int
	pages [][]record
	zone  *time.Location

	deliveries []Delivery
	delivered  int // counts all
}

// slot is where the record with this number stands, or stood.
func (j *journal) slot(seq int) *record {
	at := (seq - 1) % j.size
	return &j.pages[at/pageSize][at%pageSize]
}

// add writes r down as open and numbers it.
func (j *journal) add(r *record) {
	j.seq++
	r.seq, r.open = j.seq, true
	if have := len(j.pages) * pageSize; j.seq > have && have < j.size {
		j.pages = append(j.pages, make([]record, min(pageSize, j.size-have)))
	}
	*j.slot(r.seq) = *r
}

// settle replaces the record of a request that ended, unless it was dropped.
func (j *journal) settle(r *record) {
	r.open = false
	if at := j.slot(r.seq); at.seq == r.seq {
		*at = *r
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
	dropped := max(j.seq-j.size, 0)
	out := Journal{Requests: j.seq, Dropped: dropped, Entries: make([]Entry, 0, j.seq-dropped)}
	out.Webhooks = slices.Clone(j.deliveries[max(len(j.deliveries)-j.size, 0):])
	for seq := dropped + 1; seq <= j.seq; seq++ {
		out.Entries = append(out.Entries, j.slot(seq).entry(j.zone))
	}
	return out
}
