package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

type callsCmd struct {
	List   callsListCmd   `cmd:"" help:"List queued calls and what became of them."`
	Show   callsShowCmd   `cmd:"" help:"Show one call: its attempts, why it ended, what to do."`
	Edit   callsEditCmd   `cmd:"" help:"Change what a call says. The original is kept."`
	Replay callsReplayCmd `cmd:"" help:"Send broken or cancelled calls again, at a rate if wanted."`
	Cancel callsCancelCmd `cmd:"" help:"End calls that wait."`
	Purge  callsPurgeCmd  `cmd:"" help:"Erase calls that have ended."`
	Export callsExportCmd `cmd:"" help:"Write calls out as envelopes, one JSON document a line."`
	Import callsImportCmd `cmd:"" help:"Take envelopes in."`
}

// Help is what heed calls --help says beside the commands.
func (callsCmd) Help() string {
	return `Calls of the durable queue of a running gateway. Those that need a person are dead (given up), quarantined (answered, but not with what was asked for) or unknown (a write whose outcome nobody knows); heed calls show says what to do with one. In the place of an id its beginning will do (4 characters or more), where no other id begins so.

Examples:

    heed calls list --state broken --since 1d
    heed calls show 06f3…
    heed calls replay --endpoint sierra --state dead --rate 5/s --dry-run`
}

type callsListCmd struct {
	callFilter
	deskFlags
	Limit int    `default:"100" placeholder:"N" help:"Show at most so many; 0 shows all (${default})."`
	After string `placeholder:"CURSOR" help:"Go on where another list has ended."`
	JSON  bool   `help:"Print one JSON document a line."`
}

// Help is what heed calls list --help says beside the flags.
func (callsListCmd) Help() string {
	return `The oldest first. Paths are shown as templates, without what identifies somebody.

Examples:

    heed calls list --state broken
    heed calls list --endpoint sierra --reason expired --since 2h
    heed calls list --state queued --limit 0 --json | wc -l`
}

// Run prints the list.
func (c *callsListCmd) Run(sh *shell) error {
	chosen, err := c.chosen(time.Now())
	if err != nil {
		return err
	}
	if c.Limit < 0 {
		return usage(fmt.Errorf("--limit %d: write how many calls, or 0 for all", c.Limit))
	}
	d, err := c.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	q := chosen.query()
	if c.After != "" {
		q.Set("after", c.After)
	}
	held := map[string]heldEndpoint{}
	if !c.JSON {
		if held, err = d.held(sh.ctx); err != nil {
			return err
		}
	}
	for shown := 0; ; {
		size := pageSize
		if c.Limit > 0 {
			size = min(size, c.Limit-shown)
		}
		p, err := d.page(sh.ctx, q, size)
		if err != nil {
			return err
		}
		if err := c.print(sh, p.Calls, held, shown == 0); err != nil {
			return err
		}
		shown += len(p.Calls)
		if p.Next == "" {
			return nil
		}
		if c.Limit > 0 && shown >= c.Limit {
			sh.say("heed: there are more; go on with --after %s, or --limit 0 for all", p.Next)
			return nil
		}
		q.Set("after", p.Next)
	}
}

// print writes one page.
func (c *callsListCmd) print(sh *shell, page []json.RawMessage, held map[string]heldEndpoint, first bool) error {
	if c.JSON {
		for _, text := range page {
			if _, err := fmt.Fprintf(sh.out, "%s\n", text); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([]callRow, len(page))
	for i, text := range page {
		if err := json.Unmarshal(text, &rows[i]); err != nil {
			return err
		}
	}
	if len(rows) == 0 && first {
		_, err := fmt.Fprintln(sh.out, "no calls")
		return err
	}
	return sh.callTable(rows, held, time.Now())
}

// callTable prints calls for people. held are the endpoints that are held back.
func (sh *shell) callTable(rows []callRow, held map[string]heldEndpoint, now time.Time) error {
	t := grid{{"ID", "STATE", "ENDPOINT", "CALL", "AGE", "NEXT", "TRIES", "LAST", "REASON"}}
	for i := range rows {
		c := &rows[i]
		next := c.next(now)
		if h, is := held[c.Endpoint]; is && !c.NextAt.IsZero() {
			next = h.Mode
		}
		t = append(t, []string{c.ID, c.State, c.Endpoint, c.Method + " " + c.Path, ago(c.Created, now), next,
			strconv.Itoa(c.Attempts), c.last(), c.Reason})
	}
	// In a pipe a call is one line, so that grep finds it whole.
	return t.write(sh.out, columns{Width: cmp.Or(sh.screen(), boundless), Wrap: []int{3}})
}

// next is when something happens to the call.
func (c *callRow) next(now time.Time) string {
	switch at := c.NextAt; {
	case at.After(now):
		return "in " + span(at.Sub(now))
	case !at.IsZero():
		return "due"
	}
	return "-"
}

// last is what the last attempt came to.
func (c *callRow) last() string {
	words := []string{}
	if c.Status != 0 {
		words = append(words, strconv.Itoa(c.Status))
	}
	if c.Class != "" {
		words = append(words, c.Class)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

// ago tells how long ago t was.
func ago(t, now time.Time) string { return span(max(now.Sub(t), 0)) }

// span tells a duration in its two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.Round(time.Second).String()
}
