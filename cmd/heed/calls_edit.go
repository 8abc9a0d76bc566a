package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/heedproject/heed/internal/queue"
)

type callsEditCmd struct {
	deskFlags
	ID             string   `arg:"" help:"The call."`
	Path           *string  `placeholder:"PATH" help:"Path and query below the URL of the endpoint."`
	Header         []string `short:"H" sep:"none" placeholder:"'NAME: VALUE'" help:"Set a header; 'NAME:' removes it. Repeatable."`
	Body           *string  `placeholder:"FILE" help:"The body; - reads stdin."`
	IdempotencyKey *string  `placeholder:"KEY" help:"The idempotency key; an empty one removes it."`
	KeepKey        bool     `help:"Keep the idempotency key although the body is another: the provider never saw it."`
	Callback       *string  `placeholder:"URL" help:"Where the end is told; an empty one removes it."`
	Replay         bool     `help:"Then send it again, if it is broken or cancelled; what waits is sent anyway."`
	DryRun         bool     `help:"Only say what would be changed."`
}

// Help is what heed calls edit --help says beside the flags.
func (callsEditCmd) Help() string {
	return `A running or done call cannot be edited. What it said before is kept as a revision (heed calls show ID --reveal WHY). Changing one header needs a look at the others, which the audit log is told of.

Examples:

    heed calls edit 06f3… --body corrected.json --idempotency-key NEW --replay
    heed calls edit 06f3… -H 'Content-Type: application/json' -H 'X-Old:'
    heed calls edit 06f3… --path '/v1/charges?expand=customer' --dry-run`
}

// callChange is what of a call is edited; nil stays as it is.
type callChange struct {
	Path     *string      `json:"path,omitempty"`
	Header   *http.Header `json:"headers,omitempty"`
	Body     *[]byte      `json:"body,omitempty"`
	Key      *string      `json:"idempotency_key,omitempty"`
	Callback *string      `json:"callback,omitempty"`
}

// check tells what is wrong with the flags.
func (c *callsEditCmd) check() error {
	if c.Path == nil && c.Body == nil && c.IdempotencyKey == nil && c.Callback == nil && len(c.Header) == 0 {
		return usage(errors.New("nothing to change: give --path, -H, --body, --idempotency-key or --callback"))
	}
	if c.Path != nil && !strings.HasPrefix(*c.Path, "/") {
		return usage(fmt.Errorf("--path %.40q does not begin with /: give the path below the URL of the endpoint", *c.Path))
	}
	for _, h := range c.Header {
		if name, _, ok := strings.Cut(h, ":"); !ok || strings.TrimSpace(name) == "" {
			return usage(fmt.Errorf("-H %.40q: write 'Name: value', or 'Name:' to remove it", h))
		}
	}
	return nil
}

// Run edits the call.
func (c *callsEditCmd) Run(sh *shell) error {
	if err := c.check(); err != nil {
		return err
	}
	change := callChange{Path: c.Path, Key: c.IdempotencyKey, Callback: c.Callback}
	if c.Body != nil {
		body, err := sh.readAll(*c.Body)
		if err != nil {
			return usage(fmt.Errorf("--body: %w", err))
		}
		change.Body = &body
	}
	d, err := c.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	again := map[string]bool{}
	if c.Replay {
		var call shownCall
		if err := d.order(sh.ctx, http.MethodGet, callAt(c.ID), nil, &call); err != nil {
			return err
		}
		if err := c.replayable(sh, &call); err != nil {
			return err
		}
		again["even_unknown"] = call.doubtful()
	}
	if c.DryRun {
		return c.preview(sh, d, &change)
	}
	if len(c.Header) > 0 {
		if change.Header, err = c.headers(sh, d); err != nil {
			return err
		}
	}
	var call shownCall
	if err := d.order(sh.ctx, http.MethodPatch, callAt(c.ID), change, &call); err != nil {
		return err
	}
	sh.say("heed: %s is at revision %d", call.ID, call.Revision)
	if c.keeps(&call) && !c.KeepKey {
		sh.say("heed: its idempotency key is the one it had: %s, if it has seen it; --idempotency-key NEW gives it another", keptKey)
	}
	switch {
	case !c.Replay && call.state() == queue.Queued:
		sh.say("heed: it is %s, and is sent as it says now", call.State)
		return nil
	case !c.Replay:
		sh.say("heed: send it with heed calls replay %s", call.ID)
		return nil
	}
	if err := d.order(sh.ctx, http.MethodPost, callAt(c.ID)+"/replay", again, nil); err != nil {
		sh.say("heed: it was edited, and not sent again")
		return err
	}
	sh.say("heed: %s is sent again", call.ID)
	return nil
}

// replayable makes sure that the call can be sent again, and would be as it is
// edited, before it is changed.
func (c *callsEditCmd) replayable(sh *shell, call *shownCall) error {
	if s := call.state(); s != queue.Cancelled && !s.Broken() {
		return &exitError{exitPermanent, fmt.Errorf("%s is %s: only calls that are broken or cancelled are sent again; nothing was changed. "+
			"What waits is sent as it is edited: leave --replay out", call.ID, call.State)}
	}
	if c.keeps(call) && len(call.Trail) > 0 && !c.KeepKey {
		return usage(fmt.Errorf("%s was sent with the idempotency key that it has: %s. Give it another with --idempotency-key NEW, "+
			"or say --keep-key if the provider never saw it; nothing was changed", call.ID, keptKey))
	}
	if call.doubtful() {
		sh.say("heed: %s is an unknown write: if it was carried out before, it is done twice", call.ID)
	}
	return nil
}

// keptKey is what comes of another body under a key that the provider has seen.
const keptKey = "with another body a provider refuses it, or answers as it did and does nothing"

// keeps tells that the call gets another body and keeps its key.
func (c *callsEditCmd) keeps(call *shownCall) bool {
	return c.Body != nil && c.IdempotencyKey == nil && call.Request != nil && call.Request.Key != ""
}

// readAll reads a file, or stdin for a -.
func (sh *shell) readAll(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(sh.in)
	}
	return os.ReadFile(name)
}

// headers are those of the call, as they will be.
func (c *callsEditCmd) headers(sh *shell, d *desk) (*http.Header, error) {
	var is struct {
		Envelope *queue.Envelope `json:"envelope"`
	}
	why := map[string]string{"why": "heed calls edit -H"}
	if err := d.order(sh.ctx, http.MethodPost, callAt(c.ID)+"/reveal", why, &is); err != nil {
		return nil, err
	}
	if is.Envelope == nil {
		return nil, &exitError{exitPermanent, fmt.Errorf("what %s said is erased; it cannot be edited", c.ID)}
	}
	h := http.Header{}
	for name, values := range is.Envelope.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	for _, line := range c.Header {
		name, value, _ := strings.Cut(line, ":")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); value == "" {
			h.Del(name)
		} else {
			h.Set(name, value)
		}
	}
	return &h, nil
}

// preview tells what would be changed. Values are not repeated: they may be
// secret, and whoever gave them knows them.
func (c *callsEditCmd) preview(sh *shell, d *desk, change *callChange) error {
	var call shownCall
	if err := d.order(sh.ctx, http.MethodGet, callAt(c.ID), nil, &call); err != nil {
		return err
	}
	if s := call.state(); s == queue.Running || s == queue.Done {
		return &exitError{exitPermanent, fmt.Errorf("%s is %s and cannot be edited", call.ID, call.State)}
	}
	var parts []string
	if change.Path != nil {
		parts = append(parts, "the path")
	}
	for _, line := range c.Header {
		name, _, _ := strings.Cut(line, ":")
		parts = append(parts, "the header "+http.CanonicalHeaderKey(strings.TrimSpace(name)))
	}
	if change.Body != nil {
		before := 0
		if call.Request != nil {
			before = call.Request.Size
		}
		parts = append(parts, fmt.Sprintf("the body (from %d to %d bytes)", before, len(*change.Body)))
	}
	if change.Key != nil {
		parts = append(parts, "the idempotency key")
	}
	if change.Callback != nil {
		parts = append(parts, "the callback")
	}
	_, err := fmt.Fprintf(sh.out, "%s (%s, revision %d) would be changed in %s\n", call.ID, call.why(), call.Revision, strings.Join(parts, ", "))
	return err
}
