package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Message is one attempt to tell of an event.
type Message struct {
	ID      string
	Event   string
	Body    []byte
	Secret  string
	Time    time.Time // of the attempt, on the clock of the case
	Attempt int       // from 1
}

// Delivery is one attempt, as the journal tells it.
type Delivery struct {
	Seq     int           `json:"seq"` // from 1, in the order in which attempts ended
	Time    time.Time     `json:"time"`
	Pack    string        `json:"pack"`
	Webhook string        `json:"webhook"` // its id
	URL     string        `json:"url"`     // without its query
	Event   string        `json:"event"`
	ID      string        `json:"id"` // of the message
	Attempt int           `json:"attempt"`
	Step    string        `json:"step,omitempty"` // of the script
	Status  int           `json:"status"`         // of the receiver; 0: it gave no answer
	Outcome string        `json:"outcome"`        // delivered, failed, gave_up or lost
	Error   string        `json:"error,omitempty"`
	Took    time.Duration `json:"took_ns"` // on the wall
}

// delivery is a message on its way to one receiver.
type delivery struct {
	of      *Case
	to      *receiver
	pack    *pack
	era     int
	message Message
	step    string
	wait    time.Duration // before the first attempt

	lost   bool
	copies int
	apart  time.Duration // between copies
	behind time.Duration // how long it may be held for another one to go first
	aged   time.Duration // how much too old its signature is
	gone   bool          // it was sent
}

// plan sends d when its time has come. The case is locked.
func (d *delivery) plan() {
	c := d.of
	switch {
	case d.lost:
		c.journal.deliver(d.told(Delivery{Time: c.clock.now(), Outcome: "lost"}))
		return
	case c.pending >= maxPending:
		c.journal.deliver(d.told(Delivery{Time: c.clock.now(), Outcome: "lost", Error: "too many messages are on their way"}))
		return
	}
	if d.behind > 0 {
		d.to.held = append(d.to.held, d)
	}
	for i := range d.copies + 1 {
		one := d
		if i > 0 {
			same := *d
			one = &same
		}
		one.later(d.wait + d.behind + time.Duration(i)*d.apart)
	}
}

// later makes the next attempt after the wait. The case is locked.
func (d *delivery) later(wait time.Duration) {
	d.of.pending++
	d.of.clock.after(wait, d.start)
}

// start makes the attempt: at once where the clock stands still, so that who
// moves it finds everything done; else beside all other timers, which a slow
// receiver must not hold up.
func (d *delivery) start() {
	c := d.of
	c.mu.Lock()
	if c.era != d.era || c.ended {
		c.mu.Unlock()
		return // reset counts anew
	}
	c.pending--
	if d.gone {
		c.mu.Unlock()
		return
	}
	d.gone = true
	if c.life == nil {
		c.life, c.cancel = context.WithCancel(context.Background())
	}
	ctx := c.life
	c.sending.Add(1)
	c.mu.Unlock()
	d.message.Time = c.clock.now()
	if c.clock.stands() {
		defer c.sending.Done()
		d.attempt(ctx)
		return
	}
	go func() {
		defer c.sending.Done()
		d.attempt(ctx)
	}()
}

// attempt sends the message and settles what follows from the answer.
func (d *delivery) attempt(ctx context.Context) {
	c := d.of
	begun := time.Now()
	status, err := d.send(ctx)
	told := Delivery{Time: d.message.Time, Status: status, Took: time.Since(begun), Outcome: "delivered"}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.era != d.era || c.ended {
		return
	}
	if err != nil {
		told.Outcome, told.Error = "failed", err.Error()
		n := d.message.Attempt - 1
		if status == http.StatusGone || n >= len(d.pack.hooks.Retries) {
			told.Outcome = "gave_up"
		} else {
			next := *d
			next.message.Attempt++
			next.gone, next.step = false, ""
			next.later(d.pack.hooks.Retries[n])
		}
	}
	c.journal.deliver(d.told(told))
	d.letFollow()
}

// letFollow sends what was held back until another message had gone.
func (d *delivery) letFollow() {
	if d.message.Attempt > 1 {
		return
	}
	var kept []*delivery
	for _, h := range d.to.held {
		switch {
		case h.message.ID == d.message.ID:
			if !h.gone {
				kept = append(kept, h)
			}
		case !h.gone:
			h.later(0)
		}
	}
	d.to.held = kept
}

// send makes one request and tells why the message counts as not delivered.
func (d *delivery) send(ctx context.Context) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.pack.hooks.Timeout, errors.New("the receiver took too long"))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.to.URL, bytes.NewReader(d.message.Body))
	if err != nil {
		return 0, errors.New("the URL cannot be used")
	}
	signed := *d
	signed.message.Time = d.message.Time.Add(-d.aged)
	r.Header = signed.header()
	resp, err := d.of.realm.courier.RoundTrip(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return 0, cause
		}
		return 0, errors.New("the receiver could not be reached")
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// Its body is the connection itself, which no deadline ends.
		return resp.StatusCode, errors.New("the receiver switched to another protocol")
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) // only the status counts
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode, fmt.Errorf("the receiver answered %d", resp.StatusCode)
	}
	return resp.StatusCode, nil
}

// told completes what the journal tells of d.
func (d *delivery) told(t Delivery) Delivery {
	t.Pack, t.Webhook, t.Event, t.ID = d.pack.Name, d.to.ID, d.message.Event, d.message.ID
	t.Attempt, t.Step = d.message.Attempt, d.step
	if u, err := url.Parse(d.to.URL); err == nil {
		t.URL = u.Scheme + "://" + u.Host + clip(u.EscapedPath())
	}
	return t
}
