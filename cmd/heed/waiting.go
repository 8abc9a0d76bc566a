package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/heedproject/heed"
)

type waitingCmd struct {
	deskFlags
	JSON bool `help:"Print the answer of the admin API as it is."`
}

// Help is what heed waiting --help says beside the flags.
func (waitingCmd) Help() string {
	return `One line per waiting call: which endpoint, which call (a queued one by the id that heed calls show takes), what for (retry_after, quota, backoff, pace, concurrency, breaker, token), since when and until when as far as that is known. Before them the endpoints that an operator holds back, and how many calls wait in the queue, which heed calls list shows one by one.

Examples:

    heed waiting
    heed waiting --admin 127.0.0.1:9001 --json`
}

// Run asks the gateway and prints what it says.
func (c *waitingCmd) Run(sh *shell) error {
	d, err := c.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	var text json.RawMessage
	if err := d.order(sh.ctx, http.MethodGet, "/_heed/waiting", nil, &text); err != nil {
		return err
	}
	if c.JSON {
		_, err := fmt.Fprintf(sh.out, "%s\n", text)
		return err
	}
	var list struct {
		Waiting []heed.Waiter  `json:"waiting"`
		Held    []heldEndpoint `json:"held"`
		Queued  []queuedGate   `json:"queued"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	now := time.Now()
	lines := heldLines(list.Held)
	for i := range list.Queued {
		lines += list.Queued[i].line(now)
	}
	if lines == "" && len(list.Waiting) == 0 {
		lines = "nothing waits\n"
	}
	if _, err := io.WriteString(sh.out, lines); err != nil {
		return err
	}
	return table(sh.out, list.Waiting, now)
}

// queuedGate is a quota key for which calls wait in the queue.
type queuedGate struct {
	Endpoint string    `json:"endpoint"`
	Closed   time.Time `json:"closed_until"`
	Source   string    `json:"source"`
	Queued   int       `json:"queued"`
	Due      time.Time `json:"due"`
}

// line tells of it, and until when they wait.
func (g *queuedGate) line(now time.Time) string {
	until := ""
	switch {
	case g.Closed.After(now):
		until = ", for " + g.Source + ", another " + span(g.Closed.Sub(now))
	case g.Due.After(now):
		until = ", the first for another " + span(g.Due.Sub(now))
	}
	return fmt.Sprintf("%s has %d call(s) waiting in the queue%s: heed calls list --endpoint %[1]s --state waiting\n", g.Endpoint, g.Queued, until)
}

// table prints the waiting calls for people.
func table(out io.Writer, list []heed.Waiter, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ENDPOINT\tCALL\tATTEMPT\tFOR\tSINCE\tUNTIL\tAHEAD\tTENANT")
	for _, c := range list {
		until := "unknown"
		if !c.Until.IsZero() {
			until = "in " + round(max(c.Until.Sub(now), 0)).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s ago\t%s\t%d\t%s\n", c.Endpoint, cmp.Or(c.QueueID, c.CallID), c.Attempt, c.For,
			round(max(now.Sub(c.Since), 0)), until, c.Ahead, c.Tenant)
	}
	return w.Flush()
}
