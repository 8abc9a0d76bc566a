package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// callFilter selects calls. What is left out selects all.
type callFilter struct {
	State         []string `placeholder:"STATE" help:"In these states: queued, running, done, dead, quarantined, unknown, cancelled; broken stands for dead, quarantined and unknown."`
	Endpoint      string   `placeholder:"NAME" help:"Of this endpoint."`
	Key           string   `placeholder:"KEY" help:"Of this quota key, as heed calls list --json names it (gate)."`
	Tenant        string   `placeholder:"NAME" help:"Of this tenant."`
	CorrelationID string   `name:"correlation-id" placeholder:"ID" help:"With this Heed-Correlation-Id."`
	Reason        string   `placeholder:"WORD" help:"That ended, or wait, for this reason, such as expired or attempts-exhausted."`
	Class         string   `placeholder:"WORD" help:"Whose last attempt was of this class, such as throttled or permanent."`
	Since         string   `placeholder:"TIME" help:"Taken in since then: 2h, 7d, 2026-07-15 or 2026-07-15T02:14:00Z."`
	Before        string   `placeholder:"TIME" help:"Taken in before then, written as for --since."`
}

// chosenCalls is a filter as the admin port reads it.
type chosenCalls struct {
	States        []string  `json:"states,omitempty"`
	Endpoint      string    `json:"endpoint,omitempty"`
	Gate          string    `json:"gate,omitempty"`
	Tenant        string    `json:"tenant,omitempty"`
	CorrelationID string    `json:"correlation_id,omitempty"`
	Reason        string    `json:"reason,omitempty"`
	Class         string    `json:"class,omitempty"`
	CreatedFrom   time.Time `json:"created_from,omitzero"`
	CreatedBefore time.Time `json:"created_before,omitzero"`
	IDs           []string  `json:"ids,omitempty"`
}

// asksFor tells whether a state is asked for by its own name: broken stands for
// several.
func (f *callFilter) asksFor(s queue.State) bool {
	return slices.ContainsFunc(f.State, func(word string) bool { return stateWord(word) == s.String() })
}

// stateWord is the name of a state as heed writes it.
func stateWord(word string) string {
	switch word = strings.ToLower(word); word {
	case "waiting":
		return queue.Queued.String()
	case "canceled":
		return queue.Cancelled.String()
	}
	return word
}

// any tells whether something is asked for.
func (f *callFilter) any() bool {
	return len(f.State) > 0 || f.Endpoint+f.Key+f.Tenant+f.CorrelationID+f.Reason+f.Class+f.Since+f.Before != ""
}

// chosen reads the flags.
func (f *callFilter) chosen(now time.Time) (c chosenCalls, err error) {
	c = chosenCalls{Endpoint: f.Endpoint, Gate: f.Key, Tenant: f.Tenant, CorrelationID: f.CorrelationID, Reason: f.Reason, Class: f.Class}
	for _, word := range f.State {
		if word = stateWord(word); word == "broken" {
			for _, s := range queue.States {
				if s.Broken() {
					c.States = append(c.States, s.String())
				}
			}
			continue
		}
		var s queue.State
		if s.UnmarshalText([]byte(word)) != nil {
			return c, usage(fmt.Errorf("--state: no state of a call is called %q: use %s, or broken for those that need a person", word, stateWords()))
		}
		c.States = append(c.States, word)
	}
	if c.CreatedFrom, err = instant("--since", f.Since, now); err != nil {
		return c, err
	}
	c.CreatedBefore, err = instant("--before", f.Before, now)
	return c, err
}

// stateWords lists the states.
func stateWords() string {
	words := make([]string, len(queue.States))
	for i, s := range queue.States {
		words[i] = s.String()
	}
	return strings.Join(words, ", ")
}

// instant reads a moment of the past: how long ago, a day, or a time.
func instant(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage(fmt.Errorf("%s %q is no time; write 2h, 7d, 2026-07-15 or 2026-07-15T02:14:00Z", flag, text))
}

// query is the filter in a URL.
func (c *chosenCalls) query() url.Values {
	q := url.Values{}
	for name, v := range map[string]string{
		"state": strings.Join(c.States, ","), "endpoint": c.Endpoint, "gate": c.Gate, "tenant": c.Tenant,
		"correlation_id": c.CorrelationID, "reason": c.Reason, "class": c.Class,
		"from": moment(c.CreatedFrom), "before": moment(c.CreatedBefore),
	} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return q
}

// moment writes a time as the admin port reads it; none is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// callRow is a call as the admin port lists it.
type callRow struct {
	ID            string      `json:"id"`
	State         string      `json:"state"`
	Endpoint      string      `json:"endpoint"`
	Method        string      `json:"method"`
	Path          string      `json:"path"` // a template
	Gate          string      `json:"gate"`
	Tenant        string      `json:"tenant"`
	CorrelationID string      `json:"correlation_id"`
	Priority      int         `json:"priority"`
	Created       time.Time   `json:"created"`
	NextAt        time.Time   `json:"next_at"`
	Expires       time.Time   `json:"expires"`
	Ended         time.Time   `json:"ended"`
	KeptUntil     time.Time   `json:"kept_until"`
	Reason        string      `json:"reason"`
	Class         string      `json:"class"`
	Status        int         `json:"last_status"`
	Attempts      int         `json:"attempts_made"`
	Waits         int         `json:"waits"`
	Waited        float64     `json:"waited_seconds"`
	WaitSource    string      `json:"wait_source"`
	Revision      int         `json:"revision"`
	Size          int         `json:"size"`
	Repeatable    bool        `json:"repeatable"`
	Note          *queue.Note `json:"note"`
}

// state is the state of the row.
func (c *callRow) state() (s queue.State) {
	if c.State != "waiting" {
		_ = s.UnmarshalText([]byte(c.State)) // a word that a newer gateway made stays Queued
	}
	return s
}

// listedCalls is one page.
type listedCalls struct {
	Calls []json.RawMessage `json:"calls"`
	Next  string            `json:"next"`
}

// pageSize is how many calls are asked for at once, when all are wanted.
const pageSize = 1000

// page asks for one page.
func (d *desk) page(ctx context.Context, q url.Values, limit int) (p listedCalls, err error) {
	q.Set("limit", strconv.Itoa(limit))
	err = d.order(ctx, http.MethodGet, "/_heed/calls?"+q.Encode(), nil, &p)
	return p, err
}

// each goes through all calls that are chosen, or those that are named.
func (d *desk) each(ctx context.Context, c chosenCalls) iter.Seq2[callRow, error] {
	return func(yield func(callRow, error) bool) {
		for _, id := range c.IDs {
			var row callRow
			err := d.order(ctx, http.MethodGet, callAt(id), nil, &row)
			if !yield(row, err) || err != nil {
				return
			}
		}
		if len(c.IDs) > 0 {
			return
		}
		q := c.query()
		for {
			p, err := d.page(ctx, q, pageSize)
			if err != nil {
				yield(callRow{}, err)
				return
			}
			for _, text := range p.Calls {
				var row callRow
				if err := json.Unmarshal(text, &row); !yield(row, err) || err != nil {
					return
				}
			}
			if p.Next == "" {
				return
			}
			q.Set("after", p.Next)
		}
	}
}

// callAt is where the admin port has a call.
func callAt(id string) string { return callsPath + url.PathEscape(id) }

const callsPath = "/_heed/calls/"

// calledAt is the id of the call that a path of the admin port names; empty:
// it names none.
func calledAt(path string) string {
	rest, ok := strings.CutPrefix(path, callsPath)
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	if id, err := url.PathUnescape(id); err == nil {
		return id
	}
	return ""
}

// idLen is how long the ids are that the queue makes.
const idLen = 26

// heedMade tells whether id looks like one that the queue makes. Whoever
// imports calls may have ids of another kind.
func heedMade(id string) bool {
	return len(id) == idLen && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}
