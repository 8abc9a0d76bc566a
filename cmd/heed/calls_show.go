package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type callsShowCmd struct {
	deskFlags
	ID     string `arg:"" help:"The call: its id, or as much of its beginning as is unique."`
	JSON   bool   `help:"Print the answer of the admin API as it is."`
	Reveal string `placeholder:"WHY" help:"Print path, headers, bodies and earlier revisions in the clear; the audit log keeps why."`
}

// Help is what heed calls show --help says beside the flags.
func (callsShowCmd) Help() string {
	return `Header values that identify somebody, and bodies, are masked unless --reveal says why they are looked at.

Examples:

    heed calls show 06f3…
    heed calls show 06f3… --reveal "ticket 4711"
    heed calls show 06f3… --reveal "ticket 4711" --json | jq -r .envelope.body | base64 -d`
}

// shownCall is one call as the admin port shows it.
type shownCall struct {
	callRow
	Trail []struct {
		N          int       `json:"n"`
		At         time.Time `json:"at"`
		Status     int       `json:"status"`
		Class      string    `json:"class"`
		Rule       string    `json:"rule"`
		Waited     float64   `json:"waited_seconds"`
		WaitSource string    `json:"wait_source"`
		Reason     string    `json:"reason"`
	} `json:"attempts"`
	Request *shownPart `json:"request"`
	Answer  *shownPart `json:"answer"`
}

// shownPart is what is told of a request or an answer.
type shownPart struct {
	Status   int         `json:"status"`
	Header   http.Header `json:"headers"`
	Size     int         `json:"size"`
	Key      string      `json:"idempotency_key"` // a fingerprint
	Callback string      `json:"callback"`        // its host
}

// Run prints the call.
func (c *callsShowCmd) Run(sh *shell) error {
	d, err := c.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	var text json.RawMessage
	switch {
	case c.Reveal != "":
		err = d.order(sh.ctx, http.MethodPost, callAt(c.ID)+"/reveal", map[string]string{"why": c.Reveal}, &text)
	default:
		err = d.order(sh.ctx, http.MethodGet, callAt(c.ID), nil, &text)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := fmt.Fprintf(sh.out, "%s\n", text)
		return err
	}
	if c.Reveal != "" {
		var call revealedCall
		if err := json.Unmarshal(text, &call); err != nil {
			return err
		}
		return call.print(sh.out)
	}
	var call shownCall
	if err := json.Unmarshal(text, &call); err != nil {
		return err
	}
	if err := call.print(sh, time.Now()); err != nil {
		return err
	}
	if held := d.heldBack(sh.ctx, call.Endpoint); held != "" {
		sh.say("heed: %s is %s", call.Endpoint, held)
	}
	return nil
}

// print writes the call for people: what it is, what became of it, what to do.
func (c *shownCall) print(sh *shell, now time.Time) error {
	rows := [][2]string{
		{"call", c.ID},
		{"state", c.why()},
		{"asks", c.Method + " " + c.Endpoint + " " + c.Path},
		{"quota key", c.Gate},
		{"tenant", c.Tenant},
		{"correlation id", c.CorrelationID},
		{"taken in", c.when(c.Created, now)},
		{"next", c.when(c.NextAt, now)},
		{"expires", c.when(c.Expires, now)},
		{"ended", c.when(c.Ended, now)},
		{"kept until", c.when(c.KeptUntil, now)},
		{"tries", c.tries()},
	}
	if c.Revision > 1 {
		rows = append(rows, [2]string{"revision", strconv.Itoa(c.Revision)})
	}
	rows = append(rows, c.Request.rows("request")...)
	rows = append(rows, c.Answer.rows("answer")...)
	if n := c.Note; n != nil {
		rows = append(rows, [][2]string{{"what", n.What}, {"why", n.Why}, {"what to do", n.Do}, {"again with", n.Replay}}...)
	}
	rows = slices.DeleteFunc(rows, func(r [2]string) bool { return r[1] == "" })
	if err := sh.pairs(rows); err != nil || len(c.Trail) == 0 {
		return err
	}
	t := grid{{"TRY", "AT", "WAITED", "FOR", "STATUS", "CLASS", "SHOWN BY", "REASON"}}
	for _, a := range c.Trail {
		status := "-"
		if a.Status != 0 {
			status = strconv.Itoa(a.Status)
		}
		waited := round(time.Duration(a.Waited * float64(time.Second))).String()
		t = append(t, []string{strconv.Itoa(a.N), a.At.UTC().Format(time.RFC3339), waited, a.WaitSource, status, a.Class, a.Rule, a.Reason})
	}
	fmt.Fprintln(sh.out)
	return t.write(sh.out, columns{Width: sh.width(), Wrap: []int{6, 7}})
}

// why is the state, with the reason if there is one.
func (c *callRow) why() string {
	if c.Reason == "" {
		return c.State
	}
	return c.State + " (" + c.Reason + ")"
}

// tries counts what was tried and waited.
func (c *callRow) tries() string {
	waits := "1 wait"
	if c.Waits != 1 {
		waits = fmt.Sprintf("%d waits", c.Waits)
	}
	text := fmt.Sprintf("%d, and %s of %s in all", c.Attempts, waits, span(time.Duration(c.Waited*float64(time.Second))))
	if c.WaitSource != "" {
		text += ", the last for " + c.WaitSource
	}
	return text
}

// when is t, and how far from now that is; none is empty.
func (c *callRow) when(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(now):
		return t.UTC().Format(time.RFC3339) + " (in " + span(t.Sub(now)) + ")"
	}
	return t.UTC().Format(time.RFC3339) + " (" + span(now.Sub(t)) + " ago)"
}

// rows tells of a request or an answer; nil is one that is erased or never was.
func (p *shownPart) rows(what string) [][2]string {
	if p == nil {
		return nil
	}
	words := []string{}
	if p.Status != 0 {
		words = append(words, strconv.Itoa(p.Status))
	}
	words = append(words, fmt.Sprintf("%d bytes", p.Size))
	if p.Key != "" {
		words = append(words, "idempotency key "+p.Key)
	}
	if p.Callback != "" {
		words = append(words, "told to "+p.Callback)
	}
	rows := [][2]string{{what, strings.Join(words, ", ")}}
	for _, name := range slices.Sorted(maps.Keys(p.Header)) {
		rows = append(rows, [2]string{"", name + ": " + strings.Join(p.Header[name], ", ")})
	}
	return rows
}
