package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// manyFlags say which calls are meant: those that are named, or a filter.
type manyFlags struct {
	callFilter
	deskFlags
	IDs    []string `arg:"" optional:"" name:"id" help:"The calls; without any, those that the filters select."`
	All    bool     `help:"All that this can be done with; instead of a filter."`
	DryRun bool     `help:"Only say which calls that would be."`
	JSON   bool     `help:"Print one JSON document per call."`
}

// deed is what is done with many calls.
type deed struct {
	verb   string // done: "replayed"
	would  string // in a dry run: "would be replayed"
	states []queue.State
	// spares tells whether a call is left alone that the filter selects, though it
	// was not named. Nil: none is.
	spares func(c *callRow) bool
	// doubt says of calls that their outcome is not known: to go on may do them
	// twice.
	doubt bool
	// do does it with some calls, and returns with how many it was done. Without
	// an error the others were no longer what they had been.
	do func(ctx context.Context, d *desk, calls []due) (did int, err error)
	// batch is with how many at once.
	batch int
	every time.Duration // between two of them
}

// due is a call, and when it is its turn.
type due struct {
	callRow
	At time.Time
}

// doneLine is one call of the JSON output.
type doneLine struct {
	ID     string    `json:"id"`
	State  string    `json:"state"` // before
	At     time.Time `json:"at,omitzero"`
	DryRun bool      `json:"dry_run,omitempty"`
}

// run does it.
func (m *manyFlags) run(sh *shell, what deed) error {
	now := time.Now()
	chosen, err := m.chosen(now)
	switch {
	case err != nil:
		return err
	case len(m.IDs) > 0 && (m.any() || m.All):
		return usage(errors.New("name calls or give filters, not both"))
	case len(m.IDs) == 0 && !m.any() && !m.All:
		return usage(errors.New("which calls? Name them, give filters such as --endpoint or --state, or --all"))
	}
	if chosen.IDs = m.IDs; len(chosen.States) == 0 && len(m.IDs) == 0 {
		for _, s := range what.states {
			chosen.States = append(chosen.States, s.String())
		}
	}
	d, err := m.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	var calls []due
	spared, doubtful := 0, 0
	for c, err := range d.each(sh.ctx, chosen) {
		if err != nil {
			return err
		}
		named := len(m.IDs) > 0
		switch fits := slices.Contains(what.states, c.state()); {
		case !fits && named:
			return &exitError{exitPermanent, fmt.Errorf("%s is %s: only calls that are %s can be %s; nothing was done", c.ID, c.State, words(what.states), what.verb)}
		case !fits:
			continue
		case !named && what.spares != nil && what.spares(&c):
			spared += one(c.doubtful())
			continue
		}
		doubtful += one(c.doubtful())
		calls = append(calls, due{c, now.Add(time.Duration(len(calls)) * what.every)})
	}
	if what.doubt {
		sh.sayDoubt(spared, doubtful, what)
	}
	if m.DryRun {
		if what.doubt {
			d.sayHeld(sh, calls)
		}
		return m.preview(sh, what, calls, now)
	}
	return m.carryOut(sh, d, what, calls)
}

// sayDoubt tells of writes of which nobody knows whether they were carried out.
func (sh *shell) sayDoubt(spared, meant int, what deed) {
	if spared > 0 {
		sh.say("heed: %d unknown write(s) are left out: they may have been carried out, and would be twice if they were. "+
			"Look at the provider first; then name them, or write --state unknown", spared)
	}
	if meant > 0 {
		sh.say("heed: %d of those that are %s are unknown writes: each that was carried out is done twice", meant, what.verb)
	}
}

// sayHeld tells which endpoints of calls are held back, so that what is sent
// again waits there.
func (d *desk) sayHeld(sh *shell, calls []due) {
	all, err := d.held(sh.ctx)
	if err != nil {
		return // a dry run is no worse without it
	}
	for _, c := range calls {
		if h, is := all[c.Endpoint]; is {
			sh.say("heed: %s is %s: heed resume %[1]s", c.Endpoint, h.String())
			delete(all, c.Endpoint)
		}
	}
}

// doubtful tells that nobody knows whether the call was carried out, and that
// to send it again may do it twice.
func (c *callRow) doubtful() bool {
	return (&queue.Facts{State: c.state(), Repeatable: c.Repeatable}).Doubtful()
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// words lists states.
func words(states []queue.State) string {
	all := make([]string, len(states))
	for i, s := range states {
		all[i] = s.String()
	}
	return strings.Join(all, ", ")
}

// previewed is how many calls a dry run shows to people.
const previewed = 20

// preview tells what would be done.
func (m *manyFlags) preview(sh *shell, what deed, calls []due, now time.Time) error {
	if m.JSON {
		return m.lines(sh, what, calls)
	}
	rows := make([]callRow, min(len(calls), previewed))
	for i := range rows {
		rows[i] = calls[i].callRow
	}
	if len(rows) > 0 {
		if err := sh.callTable(rows, nil, now); err != nil {
			return err
		}
		if more := len(calls) - len(rows); more > 0 {
			fmt.Fprintf(sh.out, "… and %d more\n", more)
		}
	}
	end := ""
	if n := len(calls); what.every > 0 && n > 1 {
		end = ", the last in " + span(calls[n-1].At.Sub(now))
	}
	_, err := fmt.Fprintf(sh.out, "%d call(s) %s%s\n", len(calls), what.would, end)
	return err
}

// lines writes JSON.
func (m *manyFlags) lines(sh *shell, what deed, calls []due) error {
	enc := json.NewEncoder(sh.out)
	for i := range calls {
		line := doneLine{ID: calls[i].ID, State: calls[i].State, DryRun: m.DryRun}
		if what.every > 0 {
			line.At = calls[i].At.UTC()
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// carryOut does it, some requests at a time.
func (m *manyFlags) carryOut(sh *shell, d *desk, what deed, calls []due) error {
	ctx, stop := context.WithCancel(sh.ctx) // for what has not begun: what has is counted
	defer stop()
	var mu sync.Mutex // guards what follows, and the output
	var firstErr error
	done, skipped, p := 0, 0, sh.progress(what.verb, len(calls))
	batches := make(chan []due)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for batch := range batches {
				n, err := what.do(sh.ctx, d, batch)
				mu.Lock()
				done += n
				if err == nil && m.JSON {
					err = m.lines(sh, what, batch)
				}
				if err != nil && firstErr == nil {
					firstErr = err
					stop()
				}
				if err == nil {
					skipped += len(batch) - n
					p.at(done + skipped)
				}
				mu.Unlock()
			}
		})
	}
	feed(ctx, batches, slices.Chunk(calls, what.batch))
	workers.Wait()
	if firstErr == nil && sh.ctx.Err() != nil {
		firstErr = &exitError{exitCanceled, errors.New("interrupted")}
	}
	left := ""
	if firstErr != nil {
		left = fmt.Sprintf(" of %d; the others are as they were, and the same command goes on with them", len(calls))
	}
	sh.say("heed: %s %d call(s)%s", what.verb, done, left)
	if skipped > 0 {
		sh.say("heed: %d had changed in the meantime and were left alone", skipped)
	}
	return firstErr
}

// feed hands batches out until ctx ends.
func feed(ctx context.Context, to chan<- []due, batches iter.Seq[[]due]) {
	defer close(to)
	for batch := range batches {
		select {
		case to <- batch:
		case <-ctx.Done():
			return
		}
	}
}

// onePerRequest does something with each call on its own.
func onePerRequest(do func(ctx context.Context, d *desk, c *due) error) func(context.Context, *desk, []due) (int, error) {
	return func(ctx context.Context, d *desk, calls []due) (did int, err error) {
		for i := range calls {
			switch err := do(ctx, d, &calls[i]); {
			case err == nil:
				did++
			case !gone(err):
				return did, err
			}
		}
		return did, nil
	}
}

type callsReplayCmd struct {
	manyFlags
	Rate    string        `placeholder:"N/TIME" help:"At most so many first attempts in a time, such as 10/s or 100/min. The instants are stored, so that a restart keeps the pace."`
	Expires time.Duration `placeholder:"DURATION" help:"How long they are worth sending; without it for ever."`
}

// Help is what heed calls replay --help says beside the flags.
func (callsReplayCmd) Help() string {
	return `A replayed call starts anew: with its first attempt, and with the idempotency key that it had. It takes the dead and quarantined ones, and of the unknown those that can be repeated without harm; other unknown writes may have taken effect, are left out of --state broken too, and must be named or asked for with --state unknown. Cancelled ones must be named or asked for as well.

Examples:

    heed calls replay 06f3… 06f4…
    heed calls replay --endpoint stripe --reason expired --dry-run
    heed calls replay --state broken --since 1d --rate 5/s --expires 6h`
}

// Run replays the calls.
func (c *callsReplayCmd) Run(sh *shell) error {
	every, err := interval(c.Rate)
	if err != nil {
		return usage(err)
	}
	if c.Expires < 0 {
		return usage(fmt.Errorf("--expires %s lies in the past", c.Expires))
	}
	states := []queue.State{queue.Dead, queue.Quarantined, queue.Unknown, queue.Cancelled}
	return c.run(sh, deed{
		verb: "replayed", would: "would be replayed", states: states, every: every, batch: 1, doubt: true,
		spares: func(call *callRow) bool {
			return (call.state() == queue.Cancelled || call.doubtful()) && !c.asksFor(call.state())
		},
		do: onePerRequest(func(ctx context.Context, d *desk, call *due) error {
			again := map[string]any{"at": moment(call.At)}
			if c.Expires > 0 {
				again["expires"] = moment(call.At.Add(c.Expires))
			}
			if call.doubtful() { // it was asked for: spares
				again["even_unknown"] = true
			}
			return d.order(ctx, http.MethodPost, callAt(call.ID)+"/replay", again, nil)
		}),
	})
}

// interval is the time between two calls at a rate such as 10/s.
func interval(rate string) (time.Duration, error) {
	if rate == "" {
		return 0, nil
	}
	n, unit, _ := strings.Cut(rate, "/")
	per, err := strconv.ParseFloat(n, 64)
	whole, known := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[unit]
	if err != nil || !known || !(per > 0) || per > 1e6 {
		return 0, fmt.Errorf("--rate %q: write calls per time, such as 10/s, 100/min or 500/h", rate)
	}
	return time.Duration(float64(whole) / per), nil
}

type callsCancelCmd struct{ manyFlags }

// Help is what heed calls cancel --help says beside the flags.
func (callsCancelCmd) Help() string {
	return `What runs goes on to its end. The idempotency key of a cancelled call is free again; heed calls replay brings the call back.

Examples:

    heed calls cancel 06f3…
    heed calls cancel --endpoint sierra --tenant import-7 --dry-run`
}

// Run cancels the calls.
func (c *callsCancelCmd) Run(sh *shell) error {
	return c.run(sh, deed{
		verb: "cancelled", would: "would be cancelled", states: []queue.State{queue.Queued}, batch: 1,
		do: onePerRequest(func(ctx context.Context, d *desk, call *due) error {
			return d.order(ctx, http.MethodPost, callAt(call.ID)+"/cancel", nil, nil)
		}),
	})
}

type callsPurgeCmd struct{ manyFlags }

// Help is what heed calls purge --help says beside the flags.
func (callsPurgeCmd) Help() string {
	return `What is purged is gone, also from the log of the database. Idempotency keys stay taken for their window, so that a late repeat is still not sent twice. Export first what may be wanted again.

Examples:

    heed calls purge 06f3…
    heed calls purge --state done --before 1h
    heed calls purge --all --dry-run`
}

// Run erases the calls.
func (c *callsPurgeCmd) Run(sh *shell) error {
	return c.run(sh, deed{
		verb: "purged", would: "would be erased", batch: 200,
		states: []queue.State{queue.Done, queue.Dead, queue.Quarantined, queue.Unknown, queue.Cancelled},
		do: func(ctx context.Context, d *desk, calls []due) (int, error) {
			err := purge(ctx, d, calls)
			if err == nil {
				return len(calls), nil
			}
			if !gone(err) {
				return 0, err
			}
			// One of them was erased by somebody else: find out which.
			return onePerRequest(func(ctx context.Context, d *desk, c *due) error { return purge(ctx, d, []due{*c}) })(ctx, d, calls)
		},
	})
}

func purge(ctx context.Context, d *desk, calls []due) error {
	c := chosenCalls{}
	for i := range calls {
		c.IDs = append(c.IDs, calls[i].ID)
	}
	return d.order(ctx, http.MethodPost, "/_heed/calls/purge", map[string]any{"filter": c, "why": "heed calls purge"}, nil)
}
