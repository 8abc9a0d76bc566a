package sim

import "time"

// Entry is one request as the simulator saw it.
type Entry struct {
	Seq        int           `json:"seq"` // from 1, in the order of arrival
	Time       time.Time     `json:"time"`
	Caller     string        `json:"caller"` // anonymous, or a short hash of the credential
	Connection string        `json:"connection,omitempty"`
	Method     string        `json:"method"`
	Path       string        `json:"path"`
	Operation  string        `json:"operation,omitempty"` // empty: there is none
	Attempt    int           `json:"attempt"`             // of this caller at this method and path
	Step       string        `json:"step,omitempty"`      // of the script; empty: the list is used up, or there is none
	Status     int           `json:"status"`              // 0: no answer, or none yet
	Took       time.Duration `json:"took_ns"`
	Open       bool          `json:"open,omitempty"`      // the answer is still to come
	Throttled  bool          `json:"throttled,omitempty"` // by the rate limit
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
}

// journal is a ring.
type journal struct {
	seq  int
	size int
	ring []Entry
}

func (j *journal) add(e Entry) Entry {
	j.seq++
	e.Seq, e.Open = j.seq, true
	if len(j.ring) < j.size {
		j.ring = append(j.ring, e)
	} else {
		j.ring[(e.Seq-1)%j.size] = e
	}
	return e
}

// settle replaces the entry of a request that ended, unless it was dropped.
func (j *journal) settle(e Entry) {
	e.Open = false
	if at := (e.Seq - 1) % j.size; at < len(j.ring) && j.ring[at].Seq == e.Seq {
		j.ring[at] = e
	}
}

func (j *journal) read() Journal {
	out := Journal{Requests: j.seq, Dropped: j.seq - len(j.ring), Entries: make([]Entry, 0, len(j.ring))}
	oldest := j.seq % j.size
	if len(j.ring) < j.size {
		oldest = 0
	}
	out.Entries = append(out.Entries, j.ring[oldest:]...)
	out.Entries = append(out.Entries, j.ring[:oldest]...)
	return out
}
