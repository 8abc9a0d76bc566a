package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
)

// chosen is the filter of an order.
type chosen struct {
	States        []string  `json:"states"`
	Endpoint      string    `json:"endpoint"`
	Gate          string    `json:"gate"`
	Tenant        string    `json:"tenant"`
	CorrelationID string    `json:"correlation_id"`
	Reason        string    `json:"reason"`
	Class         string    `json:"class"`
	CreatedFrom   time.Time `json:"created_from"`
	CreatedBefore time.Time `json:"created_before"`
	KeptBefore    time.Time `json:"kept_before"`
	IDs           []string  `json:"ids"`
}

func (c *chosen) filter() (queue.Filter, error) {
	states, err := statesOf(c.States)
	return queue.Filter{
		States: states, Endpoint: c.Endpoint, Gate: c.Gate, Tenant: c.Tenant, CorrelationID: c.CorrelationID, Reason: c.Reason,
		Class: c.Class, CreatedFrom: c.CreatedFrom, CreatedBefore: c.CreatedBefore, KeptBefore: c.KeptBefore, Limit: maxPage,
	}, err
}

// order is what an operator wants done with many calls.
type order struct {
	Filter  chosen    `json:"filter"`
	Rate    string    `json:"rate"` // such as 10/s; empty: at once
	Expires time.Time `json:"expires"`
	DryRun  bool      `json:"dry_run"`
	Why     string    `json:"why"`
	// EvenUnknown takes the writes too that may have been carried out, where they
	// are sent again: by a replay here, and by whoever imports an export.
	EvenUnknown bool `json:"even_unknown"`
}

// done is what came of it. Calls lists the first of them.
type done struct {
	DryRun bool `json:"dry_run,omitempty"`
	Count  int  `json:"count"`
	// LeftUnknown counts the writes that were left out: they may have been carried
	// out, and even_unknown takes them too.
	LeftUnknown int        `json:"left_unknown,omitempty"`
	Calls       []doneCall `json:"calls"`
}

type doneCall struct {
	ID    string    `json:"id"`
	State string    `json:"state"`
	At    time.Time `json:"at,omitzero"`
}

// maxTold is how many calls an answer names.
const maxTold = 1000

func (d *done) add(f *queue.Facts, at time.Time) {
	d.Count++
	if len(d.Calls) < maxTold {
		d.Calls = append(d.Calls, doneCall{f.ID, f.State.String(), utc(at)})
	}
}

// some counts n of calls, and names them if that is all of them.
func (d *done) some(calls []queue.Facts, n int) {
	if n < len(calls) {
		d.Count += n
		return
	}
	for i := range calls {
		d.add(&calls[i], time.Time{})
	}
}

// each calls do for the calls that the order selects among those in states.
func (d *desk) each(c *chosen, states []queue.State, do func(*queue.Facts) error) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	if len(f.States) == 0 {
		f.States = states
	}
	for _, id := range c.IDs {
		facts, err := d.Store.Get(d.r.Context(), id)
		if err == nil {
			err = do(&facts)
		}
		if err != nil {
			return err
		}
	}
	if len(c.IDs) > 0 {
		return nil
	}
	for {
		page, err := d.Store.List(d.r.Context(), f)
		if err != nil {
			return err
		}
		for i := range page.Calls {
			if c := &page.Calls[i]; Watchman(c.Endpoint, c.State) {
				continue
			} else if err := do(c); err != nil {
				return err
			}
		}
		if f.After = page.Next; f.After == "" {
			return nil
		}
	}
}

// again is when one call is sent again.
type again struct {
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
	// EvenUnknown sends it though it may have been carried out.
	EvenUnknown bool `json:"even_unknown"`
}

func (d *desk) replayOne() error {
	var a again
	if err := d.read(&a); err != nil {
		return err
	}
	id, now := d.r.PathValue("id"), time.Now()
	if err := d.Store.Replay(d.r.Context(), now, queue.Replay{ID: id, At: a.At, Expires: a.Expires, EvenUnknown: a.EvenUnknown}); err != nil {
		return err
	}
	d.t.watchAgain(d.r.Context(), id)
	d.Wake()
	d.tellAudit("replay", slog.String("call_id", id))
	return d.show()
}

func (d *desk) replayMany() error {
	var o order
	if err := d.read(&o); err != nil {
		return err
	}
	every, err := interval(o.Rate)
	if err != nil {
		return err
	}
	out, now := done{DryRun: o.DryRun, Calls: []doneCall{}}, time.Now()
	tell := func(f queue.Facts, at time.Time) {
		if out.add(&f, at); !o.DryRun {
			d.t.watchAgain(d.r.Context(), f.ID)
		}
	}
	if len(o.Filter.IDs) > 0 {
		out.LeftUnknown, err = d.replayNamed(&o, every, tell)
		return d.did("replay", &o, &out, err)
	}
	f, err := o.Filter.filter()
	if err != nil {
		return err
	}
	_, out.LeftUnknown, err = queue.ReplayMany(d.r.Context(), d.Store, now, queue.Bulk{
		Filter: f, Every: every, Expires: o.Expires, Dry: o.DryRun, EvenUnknown: o.EvenUnknown, Tell: tell,
	})
	return d.did("replay", &o, &out, err)
}

// replayNamed replays the calls whose ids were given, and returns how many
// unknown writes it left out.
func (d *desk) replayNamed(o *order, every time.Duration, tell func(queue.Facts, time.Time)) (left int, err error) {
	now, at := time.Now(), time.Now()
	err = d.each(&o.Filter, nil, func(f *queue.Facts) error {
		if !f.State.Broken() && f.State != queue.Cancelled {
			return nil
		}
		again := queue.Replay{ID: f.ID, At: at, Expires: o.Expires, EvenUnknown: o.EvenUnknown}
		err := again.Admits(f)
		if err == nil && !o.DryRun {
			err = d.Store.Replay(d.r.Context(), now, again)
		}
		if errors.Is(err, queue.ErrDoubtful) {
			left++
			return nil
		}
		if err != nil {
			return err
		}
		tell(*f, at)
		at = at.Add(every)
		return nil
	})
	return left, err
}

// interval is the time between two calls at a rate such as 10/s.
func interval(rate string) (time.Duration, error) {
	if rate == "" {
		return 0, nil
	}
	n, unit, _ := strings.Cut(rate, "/")
	spans := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	per, err := strconv.ParseFloat(n, 64)
	span, known := spans[unit]
	if err != nil || !known || !(per > 0) || per > 1e6 {
		return 0, wrong("rate is calls per time, such as 10/s or 100/min")
	}
	return time.Duration(float64(span) / per), nil
}

func (d *desk) cancelOne() error {
	id := d.r.PathValue("id")
	if err := d.t.cancel(d.r.Context(), id); err != nil {
		return err
	}
	d.tellAudit("cancel", slog.String("call_id", id))
	return d.show()
}

func (d *desk) cancelMany() error {
	var o order
	if err := d.read(&o); err != nil {
		return err
	}
	out := done{DryRun: o.DryRun, Calls: []doneCall{}}
	err := d.each(&o.Filter, []queue.State{queue.Queued}, func(f *queue.Facts) error {
		if !o.DryRun {
			err := d.t.cancel(d.r.Context(), f.ID)
			if errors.Is(err, queue.ErrState) || errors.Is(err, queue.ErrNotFound) {
				return nil // it runs, or has ended
			}
			if err != nil {
				return err
			}
		}
		out.add(f, time.Time{})
		return nil
	})
	return d.did("cancel", &o, &out, err)
}

func (d *desk) purge() error {
	var o order
	if err := d.read(&o); err != nil {
		return err
	}
	out := done{DryRun: o.DryRun, Calls: []doneCall{}}
	var meant []queue.Facts
	ended := []queue.State{queue.Done, queue.Dead, queue.Quarantined, queue.Unknown, queue.Cancelled}
	err := d.each(&o.Filter, ended, func(f *queue.Facts) error {
		if f.State.Ended() {
			meant = append(meant, queue.Facts{ID: f.ID, State: f.State})
		}
		return nil
	})
	for err == nil && len(meant) > 0 {
		some := meant[:min(len(meant), maxPage)]
		meant = meant[len(some):]
		n := len(some)
		if !o.DryRun {
			n, err = d.erase(some)
		}
		out.some(some, n)
	}
	return d.did("purge", &o, &out, err)
}

// erase purges calls and returns how many there were. On a full disk fewer are
// erased at a time: that takes less room.
func (d *desk) erase(calls []queue.Facts) (n int, err error) {
	ids := make([]string, len(calls))
	for i := range calls {
		ids[i] = calls[i].ID
	}
	ctx := context.WithoutCancel(d.r.Context())
	n, err = d.Reserve.Purge(ctx, d.Store, ids)
	if half := len(calls) / 2; half > 0 && errors.Is(err, queue.ErrFull) {
		if n, err = d.erase(calls[:half]); err == nil {
			var more int
			more, err = d.erase(calls[half:])
			n += more
		}
	}
	return n, err
}

// did tells what came of an order: the log keeps what was done of one that
// failed on the way.
func (d *desk) did(action string, o *order, out *done, err error) error {
	if !o.DryRun && (out.Count > 0 || err != nil) {
		d.Wake()
		failed := slog.Attr{} // which is left out
		if err != nil {
			failed = slog.String("error", mask.Error(err))
		}
		d.tellAudit(action, slog.Int("calls", out.Count), slog.String("why", clip(o.Why)), failed)
	}
	if err != nil && out.Count > 0 {
		return &halted{error: err, before: strconv.Itoa(out.Count) + " of the calls were done before that, and the same order can be repeated"}
	}
	if err != nil {
		return err
	}
	reply(d.w, out)
	return nil
}

// halted ends an order of which a part was carried out before.
type halted struct {
	error
	before   string
	imported *imported
}

func (h *halted) Unwrap() error { return h.error }

// tell makes the problem of the error one of the order, of which not nothing was done.
func (h *halted) tell(r *refusal) {
	for _, nothing := range []string{"Nothing was done. ", "Nothing was accepted. "} {
		r.Detail = strings.TrimPrefix(r.Detail, nothing)
	}
	r.Detail = h.before + ". " + r.Detail
	r.Imported = h.imported
}

// export writes envelopes, one a line. A call whose request is erased has none.
// Callbacks are left out: the calls that they tell of lie here. So are writes
// that may have been carried out, unless even_unknown asks for them: whoever
// takes the envelopes in sends them, and an envelope does not tell of it. How
// many those were stands in the trailer Heed-Left-Unknown.
func (d *desk) export() error {
	var o order
	if err := d.read(&o); err != nil {
		return err
	}
	if strings.TrimSpace(o.Why) == "" {
		return wrong("say why: the audit log keeps it")
	}
	enc := json.NewEncoder(d.w)
	n, left := 0, 0
	err := d.each(&o.Filter, []queue.State{queue.Queued, queue.Dead, queue.Quarantined, queue.Unknown}, func(f *queue.Facts) error {
		if f.Endpoint == callbackEndpoint || f.Endpoint == watchEndpoint {
			return nil
		}
		if f.Doubtful() && !o.EvenUnknown {
			left++
			return nil
		}
		c, err := d.Store.Reveal(d.r.Context(), f.ID)
		if errors.Is(err, queue.ErrErased) || errors.Is(err, queue.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		d.begin("application/x-ndjson")
		n++
		return enc.Encode(c.Envelope())
	})
	d.tellAudit("export", slog.Int("calls", n), slog.String("why", clip(o.Why)))
	if err != nil && d.begun {
		panic(http.ErrAbortHandler) // half an export must not look like a whole one
	}
	if err == nil {
		d.begin("application/x-ndjson")
		d.w.Header().Set(leftUnknown, strconv.Itoa(left))
	}
	return err
}

// leftUnknown is the trailer of an export that says how many writes were left
// out: an export is written before it is known.
const leftUnknown = "Heed-Left-Unknown"

func (d *desk) begin(media string) {
	if d.begun {
		return
	}
	d.begun = true
	d.w.Header().Set("Content-Type", media)
	d.w.Header().Set("Cache-Control", "no-store")
	d.w.Header().Set("Trailer", leftUnknown)
	d.w.WriteHeader(http.StatusOK)
}
