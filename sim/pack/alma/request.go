package alma

import (
	"time"

	"github.com/heedproject/heed/sim"
)

// A request goes this way.
const (
	notStarted = "NOT_STARTED"
	inProcess  = "IN_PROCESS"
	onShelf    = "ON_HOLD_SHELF"

	pickTime  = 2 * time.Second
	shelfTime = 10 * time.Second
)

type request struct {
	XMLName struct{}  `json:"-" xml:"user_request"`
	ID      string    `json:"request_id" xml:"request_id"`
	User    string    `json:"user_primary_id" xml:"user_primary_id"`
	Type    string    `json:"request_type" xml:"request_type"`
	MMS     string    `json:"mms_id" xml:"mms_id"`
	PID     string    `json:"item_id,omitempty" xml:"item_id,omitempty"`
	Pickup  string    `json:"pickup_location_library" xml:"pickup_location_library"`
	Status  string    `json:"request_status" xml:"request_status"`
	Place   int       `json:"place_in_queue" xml:"place_in_queue"`
	At      time.Time `json:"request_time" xml:"request_time"`
}

type requests struct {
	XMLName  struct{}  `json:"-" xml:"user_requests"`
	Requests []request `json:"user_request" xml:"user_request"`
	Total    *int      `json:"total_record_count" xml:"total_record_count,attr"`
}

func requestsOf(x *sim.Exchange) *sim.Table[request] { return sim.Rows[request](x, "requests") }

func createRequest(x *sim.Exchange) sim.Answer {
	who := x.Value("user")
	if _, ok := usersOf(x).Get(who); !ok {
		return noUser(x, who)
	}
	var sent struct {
		Type   string `json:"request_type" xml:"request_type"`
		Pickup string `json:"pickup_location_library" xml:"pickup_location_library"`
	}
	if !take(x, &sent) || sent.Type != "HOLD" || sent.Pickup == "" {
		return wrong(x, "401664", "Mandatory field is missing: send request_type HOLD and pickup_location_library")
	}
	r := request{User: who, Type: sent.Type, Pickup: sent.Pickup, MMS: x.Query("mms_id"), PID: x.Query("item_pid"), Status: notStarted}
	if r.PID != "" {
		i, ok := itemOf(x, "", r.PID)
		if !ok {
			return wrong(x, "401683", "No items found for pid "+r.PID+".")
		}
		r.MMS = i.Bib.MMS
	}
	if _, ok := bibOf(x, r.MMS); !ok {
		return wrong(x, "402203", noBib(r.MMS).Message)
	}
	all := requestsOf(x)
	for _, o := range all.All() {
		if o.MMS != r.MMS || o.PID != r.PID {
			continue
		}
		if r.Place++; o.User == who {
			return wrong(x, "401136", "Failed to save the request: Patron has active request for selected item.")
		}
	}
	r.Place++
	r.ID, r.At = x.ID(""), x.Now().UTC().Truncate(time.Second)
	all.Put(r.ID, r)
	x.Effect("request", who+"/"+r.MMS+"/"+r.PID, 0)
	if r.Place == 1 {
		work(x, r.ID)
	}
	return done(x, r)
}

// work leads a request to the shelf, unless it is cancelled on the way.
func work(x *sim.Exchange, id string) {
	all := requestsOf(x)
	move := func(after time.Duration, status string) {
		x.After(after, func(time.Time) {
			if r, ok := all.Get(id); ok {
				r.Status = status
				all.Put(id, r)
			}
		})
	}
	move(pickTime, inProcess)
	move(shelfTime, onShelf)
}

func listRequests(x *sim.Exchange) sim.Answer {
	who, w, bad := listed(x)
	if bad != nil {
		return *bad
	}
	var list requests
	list.Requests, list.Total = part(w, func(yield func(request) bool) {
		for _, r := range requestsOf(x).All() {
			if r.User == who && !yield(r) {
				return
			}
		}
	})
	return done(x, list)
}

func getRequest(x *sim.Exchange) sim.Answer {
	r, ok := requestsOf(x).Get(x.Value("request"))
	if !ok || r.User != x.Value("user") {
		return wrong(x, "401694", "Request Identifier not found.")
	}
	return done(x, r)
}

// cancelRequest lets those behind it move up.
func cancelRequest(x *sim.Exchange) sim.Answer {
	all := requestsOf(x)
	gone, ok := all.Get(x.Value("request"))
	if !ok || gone.User != x.Value("user") {
		return wrong(x, "401694", "Request Identifier not found.")
	}
	all.Delete(gone.ID)
	x.Effect("request cancel", gone.ID, 0)
	for id, r := range all.All() {
		if r.MMS == gone.MMS && r.PID == gone.PID && r.Place > gone.Place {
			r.Place--
			all.Put(id, r)
			if r.Place == 1 {
				work(x, id)
			}
		}
	}
	return empty()
}
