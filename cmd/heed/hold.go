package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

type pauseCmd struct {
	deskFlags
	Endpoint string        `arg:"" help:"The endpoint."`
	For      time.Duration `placeholder:"DURATION" help:"Go on by itself after so long, such as 30m."`
	Until    string        `placeholder:"TIME" help:"Go on by itself then: 2026-07-15T02:14:00Z."`
}

// Help is what heed pause --help says beside the flags.
func (pauseCmd) Help() string {
	return `Nothing is sent to the endpoint any more; what is under way ends. Calls that are to be answered later are taken in and wait; callers who wait for an answer get 503 endpoint-paused. It holds on all gateways that share the queue, and over a restart. heed resume ends it.

Examples:

    heed pause stripe
    heed pause sierra --for 30m
    heed resume stripe`
}

// Run pauses the endpoint.
func (c *pauseCmd) Run(sh *shell) error {
	what := map[string]string{}
	verb := "pause"
	switch {
	case c.For != 0 && c.Until != "":
		return usage(errors.New("give --for or --until, not both"))
	case c.For < 0:
		return usage(fmt.Errorf("--for %s lies in the past", c.For))
	case c.For > 0:
		verb, what["for"] = "hold", c.For.String()
	case c.Until != "":
		at, err := time.Parse(time.RFC3339, c.Until)
		if err != nil || !at.After(time.Now()) {
			return usage(fmt.Errorf("--until %q is no time to come; write it like 2026-07-15T02:14:00Z", c.Until))
		}
		verb, what["until"] = "hold", c.Until
	}
	return c.hold(sh, c.Endpoint, verb, what)
}

type drainCmd struct {
	deskFlags
	Endpoint string `arg:"" help:"The endpoint."`
}

// Help is what heed drain --help says beside the flags.
func (drainCmd) Help() string {
	return `What is queued is sent, and nothing new is taken in: before an endpoint is moved or taken away. heed resume ends it.

Examples:

    heed drain sierra
    heed calls list --endpoint sierra --state queued`
}

// Run drains the endpoint.
func (c *drainCmd) Run(sh *shell) error { return c.hold(sh, c.Endpoint, "drain", nil) }

type resumeCmd struct {
	deskFlags
	Endpoint string `arg:"" help:"The endpoint."`
}

// Help is what heed resume --help says beside the flags.
func (resumeCmd) Help() string {
	return `Ends what heed pause or heed drain began.

Examples:

    heed resume stripe`
}

// Run resumes the endpoint.
func (c *resumeCmd) Run(sh *shell) error { return c.hold(sh, c.Endpoint, "resume", nil) }

// heldEndpoint is an endpoint that is held back, and how.
type heldEndpoint struct {
	Endpoint string    `json:"endpoint,omitempty"`
	Mode     string    `json:"mode"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
}

func (h *heldEndpoint) String() string {
	text := h.Mode + " since " + h.Since.UTC().Format(time.RFC3339)
	if !h.Until.IsZero() {
		text += ", until " + h.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// hold orders something of an endpoint and says how it stands then.
func (f *deskFlags) hold(sh *shell, name, verb string, what any) error {
	d, err := f.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	var now struct {
		Hold *heldEndpoint `json:"hold"`
	}
	if err := d.order(sh.ctx, http.MethodPost, "/_heed/endpoints/"+url.PathEscape(name)+"/"+verb, what, &now); err != nil {
		return err
	}
	stands := "held back by nobody, and goes on"
	if now.Hold != nil {
		stands = now.Hold.String()
	}
	_, err = fmt.Fprintf(sh.out, "%s is %s\n", name, stands)
	return err
}

// held tells which endpoints are held back, by name.
func (d *desk) held(ctx context.Context) (map[string]heldEndpoint, error) {
	var list struct {
		Held []heldEndpoint `json:"held"`
	}
	err := d.order(ctx, http.MethodGet, "/_heed/waiting", nil, &list)
	all := make(map[string]heldEndpoint, len(list.Held))
	for _, h := range list.Held {
		all[h.Endpoint] = h
	}
	return all, err
}

// heldBack tells of an endpoint that is held back; empty: it is not, or nobody
// says so.
func (d *desk) heldBack(ctx context.Context, name string) string {
	all, err := d.held(ctx)
	h, is := all[name]
	if err != nil || !is {
		return ""
	}
	return h.String() + ": heed resume " + name
}

// heldLines tells of the endpoints whose queued calls wait for an operator.
func heldLines(list []heldEndpoint) string {
	var b strings.Builder
	for _, h := range list {
		fmt.Fprintf(&b, "%s is %s; its queued calls wait: heed resume %[1]s\n", h.Endpoint, h.String())
	}
	return b.String()
}
