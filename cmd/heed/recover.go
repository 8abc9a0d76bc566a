package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
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

With --wait it exits with 75 if that takes longer than --timeout.

Examples:

    heed recover sierra
    heed recover sierra --wait --timeout 15m
    heed recover --status`
}

// recovering is an endpoint as the admin port shows it.
type recovering struct {
	Name string `json:"name"`
	Hold *struct {
		Mode string `json:"mode"`
	} `json:"hold"`
	Recovery *struct {
		Phase       string    `json:"phase"`
		Since       time.Time `json:"since"`
		Base        float64   `json:"backoff_base_seconds"`
		Concurrency int       `json:"concurrency"`
		Window      float64   `json:"window_seconds"`
		Attempts    int       `json:"attempts"`
		Throttled   float64   `json:"throttled_share"`
		Most        float64   `json:"throttled_share_wanted"`
		Remaining   *float64  `json:"remaining_share"`
		Least       float64   `json:"remaining_share_wanted"`
		Problem     string    `json:"problem"`
	} `json:"recovery"`
}

// phaseNormal is that of an endpoint which is not being recovered.
const phaseNormal = "normal"

func (r *recovering) phase() string {
	if r.Recovery == nil {
		return phaseNormal
	}
	return r.Recovery.Phase
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
	row[7] = p.Problem
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
		if phase := r.phase(); phase != last {
			sh.say("heed: %s is %s", c.Endpoint, phase)
			last = phase
		}
		if last == phaseNormal {
			return nil
		}
		select {
		case <-tick.C:
		case <-over:
			return &exitError{exitTryLater, fmt.Errorf("%s is still %s after %s; heed recover %[1]s --status shows what it waits for", c.Endpoint, last, c.Timeout)}
		case <-sh.ctx.Done():
			return &exitError{exitCanceled, errors.New("interrupted; the recovery goes on")}
		}
	}
}
