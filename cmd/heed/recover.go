package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type recoverCmd struct {
	deskFlags
	Endpoint string        `arg:"" optional:"" help:"The endpoint; may be left out with --status."`
	Status   bool          `help:"Only show where it is."`
	Wait     bool          `help:"Stay until it is back to normal, and tell each step."`
	Timeout  time.Duration `placeholder:"DURATION" help:"With --wait: give up waiting after so long. The recovery goes on."`
	JSON     bool          `help:"Print the answer of the admin API as it is."`
}

// Help is what heed recover --help says beside the flags.
func (recoverCmd) Help() string {
	return `For an endpoint that has been throttled or blocked: sending stops until the calls in flight have ended, learned limits are forgotten, a new credential is fetched, and sending starts again with twice the base of the backoff and a quarter of the concurrency. It returns to normal by itself once the endpoint has been well for a window: less than 1 % of answers 429, and more than 30 % of the quota left where the provider tells. Queued calls wait meanwhile; none is lost.

An endpoint that is not called cannot show that it is well: it stays slow until calls come.

A recovery that is under way is not begun again: that is said, and --wait waits for it. With --wait it exits with 75 if that takes longer than --timeout, or if the endpoint is paused.

Examples:

    heed recover sierra
    heed recover sierra --wait --timeout 15m
    heed recover --status`
}

// recovering is an endpoint as the admin port shows it.
type recovering struct {
	Name     string        `json:"name"`
	Hold     *heldEndpoint `json:"hold"`
	Recovery *struct {
		Phase       string    `json:"phase"`
		Since       time.Time `json:"since"`
		Base        float64   `json:"backoff_base_seconds"`
		Concurrency int       `json:"concurrency"`
		Window      float64   `json:"window_seconds"`
		Attempts    int       `json:"attempts"`
		Enough      int       `json:"attempts_wanted"`
		Throttled   float64   `json:"throttled_share"`
		Most        float64   `json:"throttled_share_wanted"`
		Remaining   *float64  `json:"remaining_share"`
		Least       float64   `json:"remaining_share_wanted"`
		Problem     string    `json:"problem"`
	} `json:"recovery"`
}

// Phases of an endpoint: it is not being recovered, or it has just begun.
const (
	phaseNormal   = "normal"
	phaseDraining = "draining"
)

func (r *recovering) phase() string {
	if r.Recovery == nil {
		return phaseNormal
	}
	return r.Recovery.Phase
}

// paused tells that nothing is sent until an operator, or the end of the pause,
// lets it go: no call can show that the endpoint is well.
func (r *recovering) paused() bool { return r.Hold != nil && r.Hold.Mode == "paused" }

func pausedText(name string) string {
	return name + " is paused, resume it first: heed resume " + name
}

// lacks tells what the endpoint waits for before it is back to normal: a word
// for the kind of it, and all of it.
func (r *recovering) lacks(now time.Time) (kind, text string) {
	if r.phase() == phaseNormal {
		return "", ""
	}
	p := r.Recovery
	window := time.Duration(p.Window * float64(time.Second))
	switch {
	case r.paused():
		return "pause", "it is paused, so that no call can show whether it is well: heed resume " + r.Name
	case r.phase() == phaseDraining:
		return "flight", "the calls in flight have to end first"
	case p.Attempts < p.Enough:
		return "calls", fmt.Sprintf("only calls show whether it is well: %d of %d attempts in %s", p.Attempts, p.Enough, span(window))
	case p.Throttled >= p.Most:
		return "throttled", fmt.Sprintf("%s of its answers are 429, not less than %s", percent(p.Throttled), percent(p.Most))
	case p.Remaining != nil && *p.Remaining <= p.Least:
		return "quota", fmt.Sprintf("%s of the quota are left, not more than %s", percent(*p.Remaining), percent(p.Least))
	case now.Sub(p.Since) < window:
		return "window", fmt.Sprintf("it has to be well for %s", span(window))
	}
	return "end", "it has been well, and is about to end"
}

// Run starts a recovery, or shows where it is.
func (c *recoverCmd) Run(sh *shell) error {
	switch {
	case c.Endpoint == "" && !c.Status:
		return usage(errors.New("which endpoint? heed recover --status shows them"))
	case c.Timeout != 0 && !c.Wait:
		return usage(errors.New("--timeout belongs to --wait"))
	case c.Timeout < 0:
		return usage(fmt.Errorf("--timeout %s lies in the past", c.Timeout))
	case c.Wait && c.Endpoint == "":
		return usage(errors.New("--wait needs an endpoint"))
	}
	d, err := c.open(sh)
	if err != nil {
		return err
	}
	defer d.close()
	names := []string{c.Endpoint}
	if c.Endpoint == "" {
		if names, err = d.endpoints(sh); err != nil {
			return err
		}
	}
	t := grid{{"ENDPOINT", "PHASE", "SINCE", "CONCURRENCY", "ATTEMPTS", "429", "QUOTA LEFT", "REMARK"}}
	for _, name := range names {
		text, r, err := c.ask(sh, d, name)
		if e, ok := errors.AsType[*refused](err); ok && !c.Status && e.status == http.StatusConflict {
			text, r, err = c.join(sh, d, name)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			if _, err := fmt.Fprintf(sh.out, "%s\n", text); err != nil {
				return err
			}
			continue
		}
		t = append(t, r.row(time.Now()))
		if r.paused() && !c.Status && !c.Wait {
			sh.say("heed: %s", pausedText(name))
		}
	}
	if !c.JSON {
		if err := t.write(sh.out, columns{Width: sh.width(), Wrap: []int{7}}); err != nil {
			return err
		}
	}
	if c.Wait {
		return c.wait(sh, d)
	}
	return nil
}

// endpoints lists the names.
func (d *desk) endpoints(sh *shell) ([]string, error) {
	var list struct {
		Endpoints []struct {
			Name string `json:"name"`
		} `json:"endpoints"`
	}
	err := d.order(sh.ctx, http.MethodGet, "/_heed/endpoints", nil, &list)
	names := make([]string, len(list.Endpoints))
	for i, e := range list.Endpoints {
		names[i] = e.Name
	}
	return names, err
}

// ask starts the recovery unless only its status is wanted, and says where it is.
func (c *recoverCmd) ask(sh *shell, d *desk, name string) (text json.RawMessage, r recovering, err error) {
	method := http.MethodPost
	if c.Status {
		method = http.MethodGet
	}
	if err = d.order(sh.ctx, method, "/_heed/endpoints/"+url.PathEscape(name)+"/recover", nil, &text); err == nil {
		err = json.Unmarshal(text, &r)
	}
	return text, r, err
}

// join says where the recovery is that was under way already.
func (c *recoverCmd) join(sh *shell, d *desk, name string) (text json.RawMessage, r recovering, err error) {
	text, r, err = (&recoverCmd{Status: true}).ask(sh, d, name)
	if err == nil && r.Recovery != nil {
		stay := "; --wait stays until it is back to normal"
		if c.Wait {
			stay = ""
		}
		sh.say("heed: %s is being recovered already, %s since %s%s", name, r.phase(), r.Recovery.Since.UTC().Format(time.RFC3339), stay)
	}
	return text, r, err
}

// row is the endpoint in the table.
func (r *recovering) row(now time.Time) []string {
	row := []string{r.Name, r.phase(), "-", "-", "-", "-", "-", ""}
	if r.phase() == phaseNormal {
		if r.Hold != nil {
			row[7] = "held: " + r.Hold.Mode
		}
		return row
	}
	p := r.Recovery
	row[2], row[3] = ago(p.Since, now), strconv.Itoa(p.Concurrency)
	row[4], row[5] = fmt.Sprintf("%d in %s", p.Attempts, span(time.Duration(p.Window*float64(time.Second)))), percent(p.Throttled)+" (<"+percent(p.Most)+")"
	if p.Remaining != nil {
		row[6] = percent(*p.Remaining) + " (>" + percent(p.Least) + ")"
	}
	if row[7] = p.Problem; row[7] == "" {
		_, row[7] = r.lacks(now)
	}
	return row
}

func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 3, 64) + " %"
}

// look is how often a recovery is looked at.
const look = time.Second

// wait stays until the endpoint is back to normal.
func (c *recoverCmd) wait(sh *shell, d *desk) error {
	watch := recoverCmd{Status: true}
	tick := time.NewTicker(look)
	defer tick.Stop()
	var over <-chan time.Time
	if c.Timeout > 0 {
		timer := time.NewTimer(c.Timeout)
		defer timer.Stop()
		over = timer.C
	}
	for last := ""; ; {
		_, r, err := watch.ask(sh, d, c.Endpoint)
		if err != nil {
			return err
		}
		if r.paused() {
			return &exitError{exitTryLater, errors.New(pausedText(c.Endpoint))}
		}
		phase := r.phase()
		kind, lacks := r.lacks(time.Now())
		if step := phase + " " + kind; step != last {
			last = step
			sh.say("heed: %s", strings.TrimSuffix(c.Endpoint+" is "+phase+": "+lacks, ": "))
		}
		if phase == phaseNormal {
			return nil
		}
		select {
		case <-tick.C:
		case <-over:
			return &exitError{exitTryLater, fmt.Errorf("%s is still %s after %s: %s; the recovery goes on, and heed recover %[1]s --status shows where it is", c.Endpoint, phase, c.Timeout, lacks)}
		case <-sh.ctx.Done():
			return &exitError{exitCanceled, errors.New("interrupted; the recovery goes on")}
		}
	}
}
