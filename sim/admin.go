package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// adminNames are the paths by which the simulator is asked and told. With
// /t/CASE before them, or the header Sim-Case, they mean that case.
var adminNames = []string{
	"GET /_sim/journal", "GET /_sim/effects", "GET /_sim/steps", "POST /_sim/steps", "POST /_sim/reset",
	"GET /_sim/clock", "POST /_sim/clock", "GET /_sim/cases", "DELETE /t/{case}",
}

// admin answers what is asked of the simulator itself. Nothing there is
// throttled or journaled, and asking makes no case.
func (a *API) admin(w http.ResponseWriter, r *http.Request, id, path string) {
	asked := r.Method + " " + path
	switch asked {
	case "DELETE ":
		a.remove(w, id)
		return
	case "GET /_sim/cases":
		kept, forgotten := a.Cases()
		send(w, show(struct {
			Cases     int `json:"cases"`
			Forgotten int `json:"forgotten"`
		}{kept, forgotten}))
		return
	}
	do, ok := admins[asked]
	if !ok {
		send(w, Plain(nil, Refusal{Kind: Unknown, Detail: "the simulator has no such page"}))
		return
	}
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxScript))
	}
	if err != nil {
		send(w, problem(http.StatusBadRequest, "the body could not be read, or is too long"))
		return
	}
	send(w, do(a.Case(id), body))
}

var admins = map[string]func(c *Case, body []byte) Answer{
	"GET /_sim/journal": func(c *Case, _ []byte) Answer { return show(c.Journal()) },
	"GET /_sim/effects": func(c *Case, _ []byte) Answer { return show(c.Effects()) },
	"GET /_sim/steps":   func(c *Case, _ []byte) Answer { return showSteps(c) },
	"POST /_sim/steps":  takeSteps,
	"POST /_sim/reset": func(c *Case, _ []byte) Answer {
		c.Reset()
		return Answer{Status: http.StatusNoContent}
	},
	"GET /_sim/clock":  func(c *Case, _ []byte) Answer { return showClock(c.Now()) },
	"POST /_sim/clock": moveClock,
}

func (a *API) remove(w http.ResponseWriter, id string) {
	if !a.Remove(id) {
		send(w, problem(http.StatusNotFound, "there is no such case"))
		return
	}
	send(w, Answer{Status: http.StatusNoContent})
}

// show is JSON for people.
func show(v any) Answer {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return problem(http.StatusInternalServerError, "the answer cannot be written: "+err.Error())
	}
	return Answer{Status: 200, Body: append(body, '\n')}
}

func showSteps(c *Case) Answer { return Text(200, "text/plain; charset=utf-8", c.Steps().String()) }

func showClock(now time.Time) Answer {
	return show(struct {
		Now time.Time `json:"now"`
	}{now})
}

// moveClock takes {"advance": "90s"}.
func moveClock(c *Case, body []byte) Answer {
	var asked struct{ Advance string }
	err := json.Unmarshal(body, &asked)
	d, bad := time.ParseDuration(asked.Advance)
	if err != nil || bad != nil || d < 0 || d > maxAdvance {
		return problem(http.StatusBadRequest, fmt.Sprintf(`send {"advance": "90s"}, a duration from 0s to %v`, maxAdvance))
	}
	return showClock(c.Advance(d))
}

// maxAdvance is ten years.
const maxAdvance = 10 * 365 * 24 * time.Hour

// takeSteps replaces the script by the body of the request.
func takeSteps(c *Case, body []byte) Answer {
	err := c.SetSteps(string(body))
	if bad, ok := errors.AsType[*StepsError](err); ok {
		return JSON(http.StatusBadRequest, struct {
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
			Remedy string `json:"remedy"`
		}{"Bad Request", 400, bad.Message, bad.Line, bad.Column, bad.Remedy}).With("Content-Type", "application/problem+json")
	}
	return showSteps(c)
}

// send writes an answer that belongs to no exchange.
func send(w http.ResponseWriter, an Answer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	for _, f := range an.Fields {
		h.Set(f[0], f[1])
	}
	if an.Status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(an.Body)))
	}
	w.WriteHeader(an.Status)
	_, _ = w.Write(an.Body) // a caller that left is no error of ours
}
