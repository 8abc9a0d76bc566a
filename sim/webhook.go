package sim

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxWebhooks = 256     // registered in one case
	maxPending  = 1 << 13 // messages on their way in one case
)

// Webhook is a URL that wants to be told of events.
type Webhook struct {
	// ID is given when it is registered.
	ID string
	// URL is where messages are sent, really and by POST.
	URL string
	// Secret signs them. Default: one that is made from the seed.
	Secret string
	// Pack is whose events are sent. Default: those of every pack.
	Pack string
	// Events are names such as charge.succeeded, or patterns such as charge.*.
	// Default: all.
	Events []string
	// Delay replaces the delay of the pack.
	Delay time.Duration
}

// Event is something that happened to a resource.
type Event struct {
	// Type is its name in the words of the provider.
	Type string
	// ID is that of the message; every attempt and every copy has the same.
	// Default: one of Exchange.ID.
	ID string
	// Body is the whole message.
	Body []byte
}

// Webhooks is how a provider tells of events. The zero value does as Standard
// Webhooks 1.0 recommends.
type Webhooks struct {
	// Sign returns the header fields of one attempt. Default: SignStandard.
	Sign func(Message) [][2]string
	// Delay is how long after the event the first attempt is made. Default 1 s.
	Delay time.Duration
	// Retries are the waits before the second attempt, the third and so on.
	// Default: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h. Empty but
	// not nil: there is one attempt.
	Retries []time.Duration
	// Timeout is how long a receiver may take, on the wall. Default 10 s.
	Timeout time.Duration
	// Media is the media type. Default application/json.
	Media string
	// Events are the names of all that the operations emit, so that nobody waits
	// for what never comes. nil: they are not known.
	Events []string
}

var standardRetries = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

func (h Webhooks) withDefaults() Webhooks {
	if h.Sign == nil {
		h.Sign = SignStandard
	}
	if h.Retries == nil {
		h.Retries = standardRetries
	}
	h.Delay = cmp.Or(h.Delay, time.Second)
	h.Timeout = cmp.Or(h.Timeout, 10*time.Second)
	h.Media = cmp.Or(h.Media, "application/json")
	return h
}

// check says what is wrong with h. One that an operation of a pack made may ask
// for events that never come, as with the provider.
func (h *Webhook) check(a *realm, made bool) (bad []Problem) {
	if u, err := url.Parse(h.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		bad = append(bad, Problem{Path: "url", Message: "a webhook needs a URL", Remedy: "give one such as http://127.0.0.1:9000/hook"})
	}
	if h.Delay < 0 || h.Delay > maxAdvance {
		bad = append(bad, Problem{Path: "delay", Message: fmt.Sprintf("a webhook cannot be delayed by %v", h.Delay), Remedy: fmt.Sprintf("give 0s to %v", maxAdvance)})
	}
	if h.Pack != "" && !slices.ContainsFunc(a.packs, func(p *pack) bool { return p.Name == h.Pack }) {
		return append(bad, Problem{Path: "pack", Message: fmt.Sprintf("there is no pack %q whose events a webhook could tell", h.Pack),
			Remedy: "name one that is served", Served: true})
	}
	known, all := a.events(h.Pack)
	for i, e := range h.Events {
		if all && !made && !matchesAny(e, known) {
			bad = append(bad, Problem{Path: fmt.Sprintf("events[%d]", i), Message: fmt.Sprintf("no pack tells of an event %q", e),
				Remedy: eventRemedy(e, known), Served: true})
		}
	}
	return bad
}

// wants tells whether an event of the pack is told to h.
func (h *Webhook) wants(p *pack, event string) bool {
	return (h.Pack == "" || h.Pack == p.Name) &&
		(len(h.Events) == 0 || slices.ContainsFunc(h.Events, func(e string) bool { return eventMatches(e, event) }))
}

// eventMatches tells whether a name, in which * stands for any text, fits.
func eventMatches(pattern, event string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(event, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}

// receiver is a Webhook in a case.
type receiver struct {
	Webhook
	made    bool // by an operation, so that a reset forgets it
	claimed map[int]int
	held    []*delivery // until another one went first
}

// receivers are those of one case, in the order of registration.
type receivers struct {
	list []*receiver
	made int // counts all, for ids
}

// add registers h in c, whose lock is held.
func (c *Case) add(h Webhook, made bool) (*receiver, error) {
	if err := failed(h.check(c.realm, made)); err != nil {
		return nil, err
	}
	if len(c.receivers.list) >= maxWebhooks {
		return nil, failed([]Problem{{Message: fmt.Sprintf("%d webhooks are registered", maxWebhooks), Remedy: "remove one first"}})
	}
	c.receivers.made++
	n := c.receivers.made
	if h.Secret == "" {
		var raw [24]byte
		for i := range 3 {
			at := (sumBegin ^ sum(c.realm.world.Seed)).text("webhook").text(c.id).number(n).number(i)
			binary.BigEndian.PutUint64(raw[8*i:], uint64(at))
		}
		h.Secret = standardMark + base64.StdEncoding.EncodeToString(raw[:])
	}
	h.ID = "wh_" + strconv.Itoa(n)
	r := &receiver{Webhook: h, made: made, claimed: map[int]int{}}
	c.receivers.list = append(c.receivers.list, r)
	return r, nil
}

// drop forgets the receivers that match and tells whether there were any.
func (c *Case) drop(which func(*receiver) bool) bool {
	before := len(c.receivers.list)
	c.receivers.list = slices.DeleteFunc(c.receivers.list, which)
	return len(c.receivers.list) < before
}

// AddWebhook registers a URL for the events of the case and returns its id and
// the secret that signs. It survives a reset.
func (c *Case) AddWebhook(h Webhook) (id, secret string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.add(h, false)
	if err != nil {
		return "", "", err
	}
	return r.ID, r.Secret, nil
}

// RemoveWebhook forgets one and tells whether it was there.
func (c *Case) RemoveWebhook(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drop(func(r *receiver) bool { return r.ID == id })
}

// Webhooks returns what is registered, without the secrets.
func (c *Case) Webhooks() []Webhook {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Webhook
	for _, r := range c.receivers.list {
		h := r.Webhook
		h.Secret = ""
		all = append(all, h)
	}
	return all
}

// Subscribe registers a URL for events of the pack of x, as the operations do
// by which a provider lets its users register one. A reset forgets it.
func (x *Exchange) Subscribe(h Webhook) (id, secret string, err error) {
	h.Pack = x.pack.Name
	r, err := x.own.add(h, true)
	if err != nil {
		return "", "", err
	}
	return r.ID, r.Secret, nil
}

// Unsubscribe takes it back and tells whether it was there.
func (x *Exchange) Unsubscribe(id string) bool {
	return x.own.drop(func(r *receiver) bool { return r.ID == id })
}

// Emit tells of an event to every webhook that wants it, after the delay of
// the provider and on the clock of the case. Operations call it, and what
// After has planned.
func (x *Exchange) Emit(e Event) {
	c := x.own
	if e.ID == "" {
		e.ID = x.ID("evt_")
	}
	for _, r := range c.receivers.list {
		if !r.wants(x.pack, e.Type) {
			continue
		}
		d := &delivery{
			of: c, to: r, pack: x.pack, era: c.era, wait: cmp.Or(r.Delay, x.pack.hooks.Delay),
			message: Message{ID: e.ID, Event: e.Type, Body: e.Body, Secret: r.Secret, Attempt: 1},
		}
		if s, ok := r.claim(c.steps, e.Type); ok && s.fault != nil {
			d.step = s.text
			s.fault.spoil(d, s)
		}
		d.plan()
	}
}

// claim takes the next step of the first line that tells of such an event.
func (r *receiver) claim(steps Steps, event string) (*step, bool) {
	i := slices.IndexFunc(steps.rules, func(l rule) bool { return l.event != "" && eventMatches(l.event, event) })
	if i < 0 {
		return nil, false
	}
	s, ok := steps.rules[i].at(r.claimed[i])
	if ok {
		r.claimed[i]++
	}
	return s, ok
}

// header makes the header of one attempt.
func (d *delivery) header() http.Header {
	h := http.Header{"Content-Type": {d.pack.hooks.Media}, "User-Agent": {"heed-sim/1 (" + d.pack.Name + ")"}}
	for _, f := range d.pack.hooks.Sign(d.message) {
		h.Set(f[0], f[1])
	}
	return h
}

// forgetSteps begins every list anew.
func (s *receivers) forgetSteps() {
	for _, r := range s.list {
		clear(r.claimed)
	}
}
