package gateway

import (
	"errors"
	"log/slog"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
)

// span is for how long an operator wants something.
type span struct {
	State string    `json:"state"`
	Until time.Time `json:"until"`
	For   string    `json:"for"`
}

// until is the end of the span.
func (s *span) until() (time.Time, error) {
	now := time.Now()
	if s.For != "" {
		d, ok := readBudget(s.For)
		if !ok || !s.Until.IsZero() {
			return now, wrong(`send a JSON object with either "until", a time to come, or "for", a duration such as "10m"`)
		}
		return now.Add(d), nil
	}
	if !s.Until.After(now) {
		return now, wrong(`send a JSON object with "for", such as {"for": "10m"}, or with "until", a time to come such as {"until": %q}`,
			now.Add(time.Hour).UTC().Format(time.RFC3339))
	}
	return s.Until, nil
}

// gate changes the gate of the whole endpoint in the queue, if there is one.
func (d *desk) gate(name string, change queue.GateChange) error {
	if d.Later == nil {
		return nil
	}
	change.Endpoint = name
	err := d.Store.SetGate(d.r.Context(), time.Now(), change)
	d.Wake()
	return err
}

func (d *desk) pause(name string) error {
	if err := d.read(&struct{}{}); err != nil {
		return err
	}
	yes := true
	if err := d.gate(name, queue.GateChange{Paused: &yes}); err != nil {
		return err
	}
	d.holdTo(name, Hold{Mode: Paused})
	return nil
}

func (d *desk) holdTo(name string, h Hold) {
	h.Since = time.Now().UTC()
	d.g.Hold(name, h)
	until := slog.Attr{} // which is left out
	if !h.Until.IsZero() {
		until = slog.Time("until", h.Until)
	}
	d.tellAudit(string(h.Mode), slog.String("endpoint", name), until)
}

func (d *desk) hold(name string) error {
	var s span
	if err := d.read(&s); err != nil {
		return err
	}
	return d.closeUntil(name, &s, Paused)
}

func (d *desk) closeUntil(name string, s *span, mode Mode) error {
	until, err := s.until()
	if err != nil {
		return err
	}
	h := Hold{Mode: mode, Until: until}
	if err := d.gate(name, h.Closing(name, time.Now())); err != nil {
		return err
	}
	d.holdTo(name, h)
	return nil
}

// breaker forces the breaker open for a while, or closed: then what it knew is
// forgotten.
func (d *desk) breaker(name string) error {
	var s span
	if err := d.read(&s); err != nil {
		return err
	}
	switch s.State {
	case "open":
		return d.closeUntil(name, &s, ForcedOpen)
	case "closed":
		if d.t.Roads == nil {
			return wrong("this process cannot renew the road of an endpoint")
		}
		if err := d.t.Roads.Renew(d.r.Context(), name); err != nil {
			return wrong("%v", err)
		}
		return d.resume(name)
	}
	return wrong(`state is "open" or "closed"`)
}

func (d *desk) drain(name string) error {
	h := Hold{Mode: Draining}
	if err := d.gate(name, h.Closing(name, time.Now())); err != nil {
		return err
	}
	d.holdTo(name, h)
	return nil
}

func (d *desk) resume(name string) error {
	no := false
	change := new(Hold).Closing(name, time.Now())
	change.Paused = &no
	if err := d.gate(name, change); err != nil {
		return err
	}
	d.g.Hold(name, Hold{})
	d.tellAudit("resume", slog.String("endpoint", name))
	return nil
}

func (d *desk) recover(name string) error {
	if d.t.Roads == nil {
		return wrong("this process cannot renew the road of an endpoint")
	}
	switch err := d.t.Roads.Recover(d.r.Context(), name); {
	case errors.Is(err, ErrRecovering):
		return err
	case err != nil:
		return wrong("%v", err)
	}
	d.tellAudit("recover", slog.String("endpoint", name))
	return nil
}

// endpointStanding is how an endpoint stands.
type endpointStanding struct {
	shownEndpoint
	Hold     *Hold            `json:"hold,omitempty"`
	Recovery *Recovery        `json:"recovery,omitempty"`
	Gates    []heed.GateState `json:"gates"`
	Queue    []shownGate      `json:"queue"`
}

func (d *desk) standing(name string) error {
	rt := d.g.current.Load().routes[name] // it may have been renewed
	if rt == nil {
		rt = d.t.routes[name]
	}
	out := endpointStanding{shownEndpoint: rt.shown(), Gates: rt.Transport.Gates(), Queue: []shownGate{}}
	if h, held := d.g.Held(name); held {
		out.Hold = &h
	}
	if d.t.Roads != nil {
		r := d.t.Roads.Recovery(name)
		out.Recovery = &r
	}
	if d.Later != nil {
		gates, err := d.Store.Gates(d.r.Context())
		if err != nil {
			return err
		}
		for _, g := range gates {
			if g.Endpoint == name && !Internal(&g) {
				out.Queue = append(out.Queue, shownGateOf(&g, time.Now()))
			}
		}
	}
	reply(d.w, out)
	return nil
}
