package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
)

// calls serves what lies below /_heed/calls on the data port. A client sees
// its own calls only.
func (x *exchange) calls(path string) *refusal {
	if x.table.Later == nil {
		return no(noQueue, "")
	}
	id, what, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	method := x.r.Method
	switch read := method == http.MethodGet || method == http.MethodHead; {
	case id == "" && what == "" && method == http.MethodPost:
		return x.envelope()
	case id == "":
		return x.onlyTakes("POST", "POST takes an envelope here, one JSON object that hands a call over: {\"heed\": 1, \"endpoint\": …, \"method\": …, "+
			"\"path\": …, \"body\": base64}. A call is asked for with GET at "+callsPath+"/{id}, and operators list calls on "+adminPort)
	case what != "" && what != "response":
		return no(noCall, "")
	case read && what == "":
		return x.status(id)
	case read:
		return x.response(id)
	case method == http.MethodDelete && what == "":
		return x.cancel(id)
	}
	if what != "" {
		return x.onlyTakes("GET, HEAD", "An answer is asked for with GET")
	}
	return x.onlyTakes("GET, HEAD, DELETE", "A call is asked for with GET and cancelled with DELETE; what else is done with calls, operators do on "+adminPort)
}

// onlyTakes refuses a method where others are taken.
func (x *exchange) onlyTakes(methods, detail string) *refusal {
	x.w.Header()["Allow"] = []string{methods}
	r := no(badMethod, "")
	r.Detail = detail + "."
	return r
}

// find reads a call that the client may see, and waits for its end as long as
// the caller likes.
func (x *exchange) find(id string) (queue.Facts, *refusal) {
	l := x.table.Later
	f, err := l.Store.Get(x.r.Context(), id)
	if err != nil {
		return f, storeRefusal(err)
	}
	if !owns(x.who, f.Tenant) {
		return f, no(noCall, "")
	}
	wait, ok := x.patience()
	if !ok {
		return f, no(badField, "The parameter wait must be a duration such as 30s")
	}
	if wait == 0 || f.State.Ended() {
		return f, nil
	}
	if f, err = l.await(x.r.Context(), id, wait); err != nil {
		return f, storeRefusal(err)
	}
	if gone(x.r.Context()) {
		panic(http.ErrAbortHandler)
	}
	return f, nil
}

// maxPatience is how long one request waits for the end of a call.
const maxPatience = time.Minute

// patience is how long the caller waits for the end of a call: ?wait=30s, or
// Prefer: wait=30.
func (x *exchange) patience() (time.Duration, bool) {
	if v := x.r.URL.Query()["wait"]; len(v) > 0 {
		d, ok := readBudget(v[0])
		if v[0] == "0" || v[0] == "0s" {
			d, ok = 0, true
		}
		return min(d, maxPatience), ok && len(v) == 1
	}
	if lines := x.r.Header["Prefer"]; lines != nil {
		d, _ := preferWait(lines)
		return min(d, maxPatience), true
	}
	return 0, true
}

// standing is a call as its caller is told of it.
type standing struct {
	ID            string         `json:"id"`
	State         string         `json:"state"`
	Endpoint      string         `json:"endpoint"`
	Method        string         `json:"method"`
	Path          string         `json:"path"` // a template
	CorrelationID string         `json:"correlation_id,omitempty"`
	Priority      int            `json:"priority"`
	Created       time.Time      `json:"created"`
	NotBefore     time.Time      `json:"not_before,omitzero"`
	NextAt        time.Time      `json:"next_at,omitzero"`
	Expires       time.Time      `json:"expires,omitzero"`
	Ended         time.Time      `json:"ended,omitzero"`
	KeptUntil     time.Time      `json:"kept_until,omitzero"`
	Reason        string         `json:"reason,omitempty"`
	Class         string         `json:"class,omitempty"`
	LastStatus    int            `json:"last_status,omitempty"`
	Attempts      int            `json:"attempts_made"`
	Waits         int            `json:"waits"`
	Waited        float64        `json:"waited_seconds"`
	WaitSource    string         `json:"wait_source,omitempty"`
	Trail         []shownAttempt `json:"attempts"`
	Response      string         `json:"response,omitempty"` // where the answer is
}

// shownAttempt is an attempt as it is told.
type shownAttempt struct {
	N          int       `json:"n"`
	At         time.Time `json:"at"`
	Status     int       `json:"status,omitempty"`
	Class      string    `json:"class,omitempty"`
	Rule       string    `json:"rule,omitempty"` // what showed that, where it is not ok
	Waited     float64   `json:"waited_seconds,omitempty"`
	WaitSource string    `json:"wait_source,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

func standingOf(f *queue.Facts, now time.Time) standing {
	s := standing{
		ID: f.ID, State: stateWord(f, now), Endpoint: f.Endpoint, Method: f.Method, Path: f.Template,
		CorrelationID: f.CorrelationID, Priority: f.Priority, Created: f.Created.UTC(), NotBefore: utc(f.NotBefore),
		Expires: utc(f.Expires), Ended: utc(f.Ended), KeptUntil: utc(f.KeptUntil), Reason: f.Reason, Class: f.Class,
		LastStatus: f.Status, Attempts: f.Ladder.Attempts, Waits: f.Ladder.Waits, Waited: f.Ladder.Waited.Seconds(),
		WaitSource: f.Ladder.WaitSource, Trail: make([]shownAttempt, len(f.Trail)),
	}
	for i, a := range f.Trail {
		s.Trail[i] = shownAttempt{a.N, a.At.UTC(), a.Status, a.Class, a.Rule, a.Waited.Seconds(), a.WaitSource, a.Reason}
	}
	if f.State == queue.Queued {
		s.NextAt = utc(f.NextAt)
	}
	if f.State.Ended() && f.State != queue.Cancelled {
		s.Response = callsPath + "/" + f.ID + "/response"
	}
	return s
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// status tells how a call stands.
func (x *exchange) status(id string) *refusal {
	f, no := x.find(id)
	if no != nil {
		return no
	}
	h, now := x.w.Header(), time.Now()
	h["Content-Type"] = []string{"application/json"}
	h["Cache-Control"] = []string{"no-store"}
	h["Heed-Origin"] = []string{"gateway"}
	if !f.State.Ended() {
		h["Retry-After"] = []string{strconv.FormatInt(askAgain(&f, now), 10)}
	}
	x.wrote = true
	whole(x.w, http.StatusOK, inJSON(standingOf(&f, now)))
	return nil
}

// response gives the answer again while it is kept.
func (x *exchange) response(id string) *refusal {
	f, no := x.find(id)
	if no != nil {
		return no
	}
	if !f.State.Ended() {
		r := x.about(callOpen, &f)
		return &r
	}
	return x.replay(&f)
}

// replay answers with what the call was answered, or says why there is nothing.
func (x *exchange) replay(f *queue.Facts) *refusal {
	h := x.w.Header()
	h["Content-Location"] = []string{callsPath + "/" + f.ID + "/response"}
	h["Heed-Call-Id"] = []string{f.ID}
	h["Heed-Attempts"] = []string{strconv.Itoa(f.Ladder.Attempts)}
	h["Heed-Waited"] = []string{strconv.FormatFloat(f.Ladder.Waited.Seconds(), 'f', 3, 64)}
	if f.State == queue.Done || f.State == queue.Dead {
		answer, err := x.table.Later.Store.Answer(x.r.Context(), f.ID)
		if err == nil && answer.Header[tooLarge] == nil {
			x.repeat(&answer)
			return nil
		}
		if err != nil && !errors.Is(err, queue.ErrErased) && !errors.Is(err, queue.ErrNotFound) {
			r := x.about(unread, f)
			return &r
		}
	}
	return x.unanswered(f)
}

// repeat writes a kept answer.
func (x *exchange) repeat(a *queue.Result) {
	h := x.w.Header()
	for k, v := range a.Header {
		if theirs(k) {
			h[k] = v
		}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(a.Body))}
	x.wrote = true
	x.w.WriteHeader(a.Status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(a.Body) // a caller who left can ask again
	}
}

// unanswered is the problem that a waiting caller would have got.
func (x *exchange) unanswered(f *queue.Facts) *refusal {
	k, detail := notKept, ""
	switch {
	case f.State == queue.Done:
	case f.State == queue.Cancelled:
		k = endKind(heed.Canceled)
		k.status = http.StatusGone
	case f.Reason == queue.ReasonExpired:
		k, detail = endKind(heed.DeadlineExceeded), "The call was not sent before it expired"
	case f.State == queue.Unknown:
		k = endKind(heed.NotRepeatable)
	default:
		k = endKind(heed.Reason(f.Reason))
	}
	r := refuse(k, detail)
	r.Endpoint, r.CallID, r.LastStatus, r.Class = f.Endpoint, f.ID, f.Status, f.Class
	r.Attempts = &f.Ladder.Attempts
	return &r
}

// cancel ends a call that is not running.
func (x *exchange) cancel(id string) *refusal {
	f, no := x.find(id)
	if no != nil {
		return no
	}
	l := x.table.Later
	err := x.table.cancel(x.r.Context(), id)
	if errors.Is(err, queue.ErrState) {
		k := callRuns
		if now, err := l.Store.Get(x.r.Context(), id); err == nil && now.State.Ended() {
			f, k = now, callEnded
		}
		if f.State == queue.Cancelled {
			return x.status(id) // cancelling twice is cancelling
		}
		r := x.about(k, &f)
		return &r
	}
	if err != nil {
		return storeRefusal(err)
	}
	return x.status(id)
}
