package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// A watchman is queued with each call that has a callback, in the same step. It
// sees to it that the end is told which nobody sends: one that the store makes
// by itself, or one whose callback could not be queued when it came. Whoever
// tells an end dismisses the watchman. So one that is still there means an end
// that is untold, and one that finds no call means an end that is lost, which
// is told to a person instead.

// watchEndpoint is the name under which watchmen are queued. No endpoint of a
// heed.yaml can have it.
const watchEndpoint = "_watch"

// Watchman tells whether a call is one of the queue's own that nobody needs to
// see: lists and counts leave it out. One that has found something wrong shows.
func Watchman(endpoint string, s queue.State) bool {
	return endpoint == watchEndpoint && !s.Broken()
}

// late ends the id of a watchman. No envelope can name a call so, see plainID:
// else the watchman of one call could be another call.
const late = "~late"

const (
	// watchAfter is how long after its expiry a call is looked at; by then the
	// store has ended it.
	watchAfter = 5 * time.Second
	// watchEvery is how often a call is looked at that never expires, and how
	// long a watchman waits who cannot do his work.
	watchEvery = time.Hour
)

// wakes is when a watchman looks at a call that expires then.
func wakes(expires, now time.Time) time.Time {
	switch at := expires.Add(watchAfter); {
	case expires.IsZero():
		return now.Add(watchEvery)
	case at.After(now):
		return at
	}
	return now.Add(time.Second)
}

// watchman makes the watchman of a call.
func watchman(c *queue.Call, now time.Time) queue.Call {
	return queue.Call{
		Facts: queue.Facts{
			ID: c.ID + late, Endpoint: watchEndpoint, Gate: MainGate, Method: http.MethodGet, Template: "/", Tenant: c.Tenant,
			Priority: c.Priority, CorrelationID: c.CorrelationID, TraceParent: c.TraceParent, Repeatable: true,
			NotBefore: wakes(c.Expires, now),
		},
		Request: queue.Request{Path: c.Callback, Header: http.Header{parent: {c.ID}}},
	}
}

// enqueue stores a call, and its watchman in the same step.
func (t *table) enqueue(ctx context.Context, c queue.Call) (queue.Receipt, error) {
	l, now := t.Later, time.Now()
	batch := []queue.Call{c}
	if c.Callback != "" {
		if c.ID == "" {
			batch[0].ID = queue.NewID(now)
		}
		batch = append(batch, watchman(&batch[0], now))
	}
	ctx = context.WithoutCancel(ctx)
	var receipts []queue.Receipt
	err := l.Reserve.Closed(now)
	if err == nil {
		receipts, err = l.Store.Enqueue(ctx, now, batch)
		l.Reserve.Trim(ctx, now, l.Store)
	}
	if l.taken(receipts, err); err != nil {
		return queue.Receipt{}, err
	}
	if len(receipts) == 2 {
		t.posted(ctx, batch[1].ID, receipts[0], receipts[1])
	}
	return receipts[0], nil
}

// posted makes sure that there is a watchman where there is a call, and none
// where there is none.
func (t *table) posted(ctx context.Context, id string, call, watch queue.Receipt) {
	switch {
	case call.Admission != queue.New && watch.Admission == queue.New:
		_ = t.Later.Store.Cancel(ctx, time.Now(), id) // if it stays, it finds no call, and says so
	case call.Admission == queue.New && watch.Admission == queue.Full:
		t.untold(errors.New("the queue was full, so that nobody watches over call " + call.ID + ": an end without an attempt would not be told"))
	}
}

// watchAgain sets a watchman over a call that is sent anew.
func (t *table) watchAgain(ctx context.Context, id string) {
	l, now := t.Later, time.Now()
	c, err := l.Store.Reveal(ctx, id)
	if err != nil || c.Callback == "" {
		return // what cannot be read is not sent either
	}
	err = l.Store.Replay(ctx, now, queue.Replay{ID: id + late, At: wakes(c.Expires, now)})
	if errors.Is(err, queue.ErrNotFound) {
		_, err = l.Store.Enqueue(ctx, now, []queue.Call{watchman(&c, now)})
	}
	if err != nil && !errors.Is(err, queue.ErrState) { // it stands there
		t.untold(err)
	}
}

// watchOver is what a watchman does when he wakes.
func (t *table) watchOver(ctx context.Context, c *queue.Call) queue.Outcome {
	now := time.Now()
	f, err := t.Later.Store.Get(ctx, parentOf(c))
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return t.lost(ctx, c)
	case err != nil || !f.State.Ended():
		return queue.Outcome{State: queue.Queued, Until: wakes(f.Expires, now), Source: string(policy.WaitBackoff)}
	}
	if _, err := t.Later.Callbacks.allowed(c.Path); err != nil {
		o := (&ended{reason: heed.NotAllowed, why: err.Error()}).outcome(now, c)
		t.finish(ctx, c, &o)
		return o
	}
	if err := t.tellEnd(ctx, &f, c.Path); err != nil {
		t.untold(err)
		return queue.Outcome{State: queue.Queued, Until: now.Add(watchEvery / 60), Source: string(policy.WaitBackoff)}
	}
	return queue.Outcome{State: queue.Cancelled, Reason: queue.ReasonCancelled} // dismissed
}

// lost says that the end of a call cannot be told any more.
func (t *table) lost(ctx context.Context, c *queue.Call) queue.Outcome {
	id := parentOf(c)
	o := queue.Outcome{State: queue.Dead, Reason: queue.ReasonErased, Note: &queue.Note{
		What: "the end of call " + id + " was not told", Why: "the call was erased before its callback could be queued",
		First: c.Created, Last: time.Now(), Replay: "heed calls replay " + c.ID,
		Do: "tell whoever waits for call " + id + " that it has ended (the log has how, under its id), then purge this",
	}}
	t.finish(ctx, c, &o)
	return o
}

// tellEnd queues the callback of a call that has ended. to is where it goes if
// the call cannot be read any more.
func (t *table) tellEnd(ctx context.Context, f *queue.Facts, to string) error {
	c := queue.Call{Facts: *f, Request: queue.Request{Callback: to}}
	if said, err := t.Later.Store.Reveal(ctx, f.ID); err == nil {
		c.Callback = said.Callback // it may have been edited
	}
	if c.Callback == "" {
		return nil
	}
	return t.Later.callBack(ctx, &c, f)
}

// cancel ends a call that waits, by whomever, and has its callback told.
func (t *table) cancel(ctx context.Context, id string) error {
	s := t.Later.Store
	ctx = context.WithoutCancel(ctx)
	if err := t.Later.Reserve.Within(ctx, t.Later.Store, func() error { return s.Cancel(ctx, time.Now(), id) }); err != nil {
		return err
	}
	t.Later.Bell.Settled([]queue.Settlement{{ID: id}})
	if f, err := s.Get(ctx, id); err == nil && f.Endpoint != callbackEndpoint && f.Endpoint != watchEndpoint {
		t.untold(t.tellEnd(ctx, &f, ""))
	}
	return nil
}

// Ends are the ends that the store made by itself, as they were last looked at.
type Ends struct {
	known map[string]time.Time // by the ids of calls: one that is replayed ends again
	n     int
	next  time.Time // when the same number is looked at again: another may have been purged
}

// unsent are the ends that the store makes by itself, since nobody could say
// what became of a call, or read it. Those that expired have their watchmen.
var unsent = []struct {
	state  queue.State
	reason string
}{{queue.Unknown, queue.ReasonLeaseLost}, {queue.Dead, queue.ReasonUnreadable}}

// restFactor keeps the share of time small in which all ends are looked at:
// after a look nobody looks for so many times as long.
const restFactor = 50

// TellEnds queues the callbacks of calls that the store has ended by itself since
// they were last looked at.
func (g *Gateway) TellEnds(ctx context.Context, e *Ends) error {
	t := g.use()
	defer t.leave()
	counts, err := t.Later.Store.Counts(ctx)
	if err != nil {
		return err
	}
	n, of := 0, make([]int, len(unsent))
	for i, u := range unsent {
		for _, c := range counts {
			if c.State == u.state && c.Reason == u.reason {
				of[i] += c.N
			}
		}
		n += of[i]
	}
	began := time.Now()
	if n <= e.n && began.Before(e.next) {
		return nil
	}
	seen := Ends{known: map[string]time.Time{}, n: n}
	for i, u := range unsent {
		if of[i] == 0 {
			continue
		}
		f := queue.Filter{States: []queue.State{u.state}, Reason: u.reason, Limit: maxPage}
		if err := t.tellAll(ctx, f, e.known, seen.known); err != nil {
			return err
		}
	}
	seen.next = time.Now().Add(restFactor * time.Since(began))
	*e = seen
	return nil
}

// tellAll tells the ends that f selects, but for those before, and adds all that
// are seen to.
func (t *table) tellAll(ctx context.Context, f queue.Filter, before, seen map[string]time.Time) error {
	for more := true; more; {
		page, err := t.Later.Store.List(ctx, f)
		if err != nil {
			return err
		}
		for i := range page.Calls {
			c := &page.Calls[i]
			if at, is := before[c.ID]; is && at.Equal(c.Ended) || t.tellWatched(ctx, c) {
				seen[c.ID] = c.Ended
			}
		}
		f.After, more = page.Next, page.Next != ""
	}
	return nil
}

// tellWatched tells the end of a call over which a watchman still stands. False:
// the store does not say whether one does.
func (t *table) tellWatched(ctx context.Context, f *queue.Facts) bool {
	w, err := t.Later.Store.Reveal(ctx, f.ID+late)
	if err == nil && w.State == queue.Queued {
		t.untold(t.tellEnd(ctx, f, w.Path))
	}
	return err == nil || errors.Is(err, queue.ErrNotFound) || errors.Is(err, queue.ErrErased) || errors.Is(err, queue.ErrKey)
}
