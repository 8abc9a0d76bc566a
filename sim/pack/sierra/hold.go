package sierra

import (
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
)

const (
	blocked   = "3000009" // may not place holds
	maxHolds  = 10        // of one patron
	readyTime = 2 * time.Second
	sameTime  = 5 * time.Minute // a request is the same one again for so long
)

// hold is a patron's wish for a record.
type hold struct {
	ID, Patron, Type, Record string
	Pickup, Note             string
	Placed                   time.Time
	Ready                    bool
}

func holds(x *sim.Exchange) *sim.Table[hold] { return sim.Rows[hold](x, "holds") }

// told is a hold as the API tells it.
type told struct {
	ID       string `json:"id"`
	Record   string `json:"record"`
	Patron   string `json:"patron"`
	Frozen   bool   `json:"frozen"`
	Placed   string `json:"placed"`
	Pickup   place  `json:"pickupLocation"`
	Status   place  `json:"status"`
	Type     string `json:"recordType"`
	Priority int    `json:"priority"`
	Note     string `json:"note,omitempty"`
}

func tell(x *sim.Exchange, h hold) told {
	kinds, status := "/items/", place{"0", "on hold."}
	if h.Type == "b" {
		kinds = "/bibs/"
	}
	if h.Ready {
		status = place{h.Type, "Requested item ready for pickup."}
	}
	return told{
		ID: x.URL(root + "/patrons/holds/" + h.ID), Record: x.URL(root + kinds + h.Record),
		Patron: x.URL(root + "/patrons/" + h.Patron), Placed: h.Placed.UTC().Format(day),
		Pickup: place{h.Pickup, h.Pickup}, Status: status, Type: h.Type, Priority: before(x, h), Note: h.Note,
	}
}

// before counts the holds of the same record that came earlier.
func before(x *sim.Exchange, h hold) (n int) {
	for id, o := range holds(x).All() {
		if id == h.ID {
			break
		}
		if o.Type == h.Type && o.Record == h.Record {
			n++
		}
	}
	return n
}

// circulation is an error of the circulation system: a business answer, with
// the status of a failure.
func circulation(x *sim.Exchange, specific int, text string) sim.Answer {
	return failed(x, fault{Code: 132, Specific: specific, Status: 500, Name: "XCirc error", Description: text})
}

func placeHold(x *sim.Exchange) sim.Answer {
	var sent struct {
		Type   string `json:"recordType"`
		Record int    `json:"recordNumber"`
		Pickup string `json:"pickupLocation"`
		Note   string `json:"note"`
	}
	if x.Decode(&sent) != nil || sent.Type != "i" && sent.Type != "b" || sent.Pickup == "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "send recordType i or b, recordNumber and pickupLocation"})
	}
	h := hold{Patron: x.Value("id"), Type: sent.Type, Record: strconv.Itoa(sent.Record),
		Pickup: sent.Pickup, Note: sent.Note, Placed: x.Now()}
	if _, ok := patrons(x).Get(h.Patron); !ok {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	if specific, text := why(x, h); specific != 0 {
		return circulation(x, specific, text)
	}
	all := holds(x)
	next := sim.Rows[int](x, "numbers")
	n, _ := next.Get("hold")
	next.Put("hold", n+1)
	h.ID = strconv.Itoa(n + 1)
	all.Put(h.ID, h)
	x.Effect("hold", h.Patron+"/"+h.Type+h.Record, 0)
	if before(x, h) == 0 {
		serve(x, h.ID)
	}
	return done()
}

// why says what keeps h from being placed; 0 is nothing.
func why(x *sim.Exchange, h hold) (specific int, text string) {
	if !there(x, h) {
		return 433, "Bib record cannot be loaded"
	}
	if h.Patron == blocked {
		return 2, "Request denied - You may not make requests."
	}
	own := 0
	for _, o := range holds(x).All() {
		if o.Patron != h.Patron {
			continue
		}
		own++
		if o.Type == h.Type && o.Record == h.Record {
			if x.Now().Sub(o.Placed) < sameTime {
				return 929, "Your request has already been sent."
			}
			return 2, "Request denied - already on hold for or checked out to you."
		}
	}
	if own >= maxHolds {
		return 2, "There is a limit to the number of requests."
	}
	return 0, ""
}

func there(x *sim.Exchange, h hold) bool {
	if h.Type == "b" {
		b, ok := bibs(x).Get(h.Record)
		return ok && !b.Deleted
	}
	i, ok := items(x).Get(h.Record)
	return ok && !i.Deleted
}

// serve makes a hold ready after a while, unless it is cancelled.
func serve(x *sim.Exchange, id string) {
	all := holds(x)
	x.After(readyTime, func(time.Time) {
		if h, ok := all.Get(id); ok {
			h.Ready = true
			all.Put(id, h)
		}
	})
}

func listHolds(x *sim.Exchange) sim.Answer {
	id := x.Value("id")
	if _, ok := patrons(x).Get(id); !ok {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	w, bad := wishOf(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	p := page{Start: w.offset, Entries: []any{}}
	skip := w.offset
	for _, h := range holds(x).All() {
		if h.Patron != id {
			continue
		}
		if skip--; skip < 0 && len(p.Entries) < w.limit {
			p.Entries = append(p.Entries, cut(tell(x, h), w.fields))
		}
	}
	p.Total = len(p.Entries)
	return sim.JSON(200, p)
}

func getHold(x *sim.Exchange) sim.Answer {
	h, ok := holds(x).Get(x.Value("hold"))
	if !ok {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	return sim.JSON(200, tell(x, h))
}

// cancelHold lets the next one in the queue move up.
func cancelHold(x *sim.Exchange) sim.Answer {
	all := holds(x)
	h, ok := all.Get(x.Value("hold"))
	if !ok {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	first := before(x, h) == 0
	all.Delete(h.ID)
	x.Effect("hold cancel", h.ID, 0)
	if first {
		for id, o := range all.All() {
			if o.Type == h.Type && o.Record == h.Record {
				serve(x, id)
				break
			}
		}
	}
	return done()
}
