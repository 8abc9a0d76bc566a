package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/provider/sheet"
)

// adminNames are the paths by which the simulator is asked and told. With
// /t/CASE before them, or the header Sim-Case, they mean that case.
var adminNames = []string{
	"GET /_sim/journal", "GET /_sim/effects", "GET /_sim/steps", "POST /_sim/steps", "POST /_sim/reset",
	"GET /_sim/clock", "POST /_sim/clock", "GET /_sim/webhooks", "POST /_sim/webhooks", "DELETE /_sim/webhooks/{id}",
	"POST /_sim/scenario", "GET /_sim/cases", "DELETE /t/{case}",
}

// admin answers what is asked of the simulator itself. Nothing there is
// throttled or journaled.
func (a *API) admin(w http.ResponseWriter, r *http.Request, id, path string) {
	asked := r.Method + " " + path
	do, known := admins[asked]
	hook, isHook := strings.CutPrefix(asked, "DELETE /_sim/webhooks/")
	switch {
	case asked == "DELETE ":
		send(w, gone(a.Remove(id), "case"))
		return
	case asked == "GET /_sim/cases":
		kept, forgotten := a.Cases()
		send(w, show(struct {
			Cases     int `json:"cases"`
			Forgotten int `json:"forgotten"`
		}{kept, forgotten}))
		return
	case isHook:
		send(w, gone(a.Case(id).RemoveWebhook(hook), "webhook"))
		return
	case !known && asked != scenarioPage:
		send(w, Plain(nil, Refusal{Kind: Unknown, Detail: "the simulator has no such page"}))
		return
	}
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxScript))
	}
	switch {
	case err != nil:
		send(w, problem(http.StatusBadRequest, fmt.Sprintf("the body could not be read, or is longer than %d bytes", maxScript)))
	case asked == scenarioPage:
		send(w, a.takeScenario(id, body))
	default:
		send(w, do(a.Case(id), r.URL.Query(), body))
	}
}

const scenarioPage = "POST /_sim/scenario"

var admins = map[string]func(c *Case, query url.Values, body []byte) Answer{
	"GET /_sim/journal":   showJournal,
	"GET /_sim/effects":   func(c *Case, _ url.Values, _ []byte) Answer { return show(c.Effects()) },
	"GET /_sim/steps":     func(c *Case, _ url.Values, _ []byte) Answer { return showSteps(c) },
	"POST /_sim/steps":    takeSteps,
	"GET /_sim/clock":     func(c *Case, _ url.Values, _ []byte) Answer { return showClock(c.Now()) },
	"POST /_sim/clock":    moveClock,
	"GET /_sim/webhooks":  showWebhooks,
	"POST /_sim/webhooks": takeWebhook,
	"POST /_sim/reset": func(c *Case, _ url.Values, _ []byte) Answer {
		c.Reset()
		return Answer{Status: http.StatusNoContent}
	},
}

func gone(was bool, what string) Answer {
	if !was {
		return problem(http.StatusNotFound, "there is no such "+what)
	}
	return Answer{Status: http.StatusNoContent}
}

// show is JSON for people.
func show(v any) Answer {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return problem(http.StatusInternalServerError, "the answer cannot be written: "+err.Error())
	}
	return Answer{Status: 200, Body: append(body, '\n')}
}

// showJournal tells all, or what ?operation=, ?caller=, ?path=, ?status= and
// ?after= (a seq) leave of it.
func showJournal(c *Case, query url.Values, _ []byte) Answer {
	after, status := 0, -1
	for name := range query {
		var err error
		switch text := query.Get(name); name {
		case "after":
			after, err = strconv.Atoi(text)
		case "status":
			status, err = strconv.Atoi(text)
		case "operation", "caller", "path":
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return problem(http.StatusBadRequest, fmt.Sprintf(
				"%q asks for nothing here; use operation=, caller=, path=, or a number after status= or after=", name))
		}
	}
	is := func(name, have string) bool { return !query.Has(name) || query.Get(name) == have }
	j := c.Journal()
	kept := j.Entries[:0]
	for _, e := range j.Entries {
		if e.Seq > after && (status < 0 || e.Status == status) &&
			is("operation", e.Operation) && is("caller", e.Caller) && is("path", e.Path) {
			kept = append(kept, e)
		}
	}
	j.Entries = kept
	return show(j)
}

func showSteps(c *Case) Answer { return Text(200, "text/plain; charset=utf-8", c.Steps().String()) }

func showClock(now time.Time) Answer {
	return show(struct {
		Now time.Time `json:"now"`
	}{now})
}

// moveClock takes {"advance": "90s"}.
func moveClock(c *Case, _ url.Values, body []byte) Answer {
	var d time.Duration
	bad := readBody(body, sheet.Block{
		Fields: []sheet.Field{{Name: "advance", Doc: "how far the clock goes on, such as 90s", Value: sheet.Duration(&d), Required: true}},
		Check: func(m sheet.Read) {
			switch {
			case d > maxAdvance:
				m.Bad("advance", fmt.Sprintf("give a duration from 0s to %v", maxAdvance), "%v is too far", d)
			case c.Now().Add(d).After(latest):
				m.Bad("advance", "advance it by less", "a clock shows nothing after %v", latest.Year())
			}
		},
	})
	if bad != nil {
		return refuseBody(`{"advance": "90s"}`, bad)
	}
	return showClock(c.Advance(d))
}

// maxAdvance is ten years.
const maxAdvance = 10 * 365 * 24 * time.Hour

// shownWebhook is a Webhook in JSON.
type shownWebhook struct {
	ID     string   `json:"id,omitempty"`
	URL    string   `json:"url"`
	Secret string   `json:"secret,omitempty"`
	Pack   string   `json:"pack,omitempty"`
	Events []string `json:"events,omitempty"`
	Delay  string   `json:"delay,omitempty"`
}

func showWebhooks(c *Case, _ url.Values, _ []byte) Answer {
	all := []shownWebhook{}
	for _, r := range c.Webhooks() {
		one := shownWebhook{ID: r.ID, URL: r.URL, Pack: r.Pack, Events: r.Events}
		if r.Delay > 0 {
			one.Delay = r.Delay.String()
		}
		all = append(all, one)
	}
	return show(struct {
		Webhooks []shownWebhook `json:"webhooks"`
	}{all})
}

// takeWebhook registers a URL; the answer tells the secret, once.
func takeWebhook(c *Case, _ url.Values, body []byte) Answer {
	var h Webhook
	var id, secret string
	bad := readBody(body, sheet.Block{
		Fields: []sheet.Field{
			{Name: "url", Doc: "where messages are sent", Value: sheet.Text(&h.URL), Required: true},
			{Name: "secret", Doc: "what signs them", Value: sheet.Text(&h.Secret)},
			{Name: "pack", Doc: "whose events are sent", Value: sheet.Text(&h.Pack)},
			{Name: "events", Doc: "which are", Value: sheet.Texts(&h.Events)},
			{Name: "delay", Doc: "how long after the event", Value: sheet.Duration(&h.Delay)},
		},
		Check: func(m sheet.Read) {
			var wrong []Problem
			if len(m.Problems) > 0 {
				wrong = h.check(c.realm, false)
			} else {
				var err error
				id, secret, err = c.AddWebhook(h)
				if e, ok := errors.AsType[*Error](err); ok {
					wrong = e.Problems
				}
			}
			for _, p := range wrong {
				m.Problem(NodeAt(m.Node, p.Path), p.Path, p.Remedy, "%s", p.Message)
			}
		},
	})
	if bad != nil {
		return refuseBody(`{"url": "http://127.0.0.1:9000/hook"}, and if you like "events": ["charge.*"], "secret", "pack" and "delay": "5s"`, bad)
	}
	told := shownWebhook{ID: id, URL: h.URL, Secret: secret, Pack: h.Pack, Events: h.Events}
	if h.Delay > 0 {
		told.Delay = h.Delay.String()
	}
	an := show(told)
	an.Status = http.StatusCreated
	return an
}

// NodeAt finds the place of a Problem in the document that it is about, or the
// nearest place around it: the value at its path, of a case its name.
func NodeAt(n *sheet.Node, path string) *sheet.Node {
	for path != "" {
		var next, key *sheet.Node
		rest := ""
		if number, after, ok := strings.Cut(strings.TrimPrefix(path, "["), "]"); ok && path[0] == '[' {
			if i, err := strconv.Atoi(number); err == nil && i < len(n.Items) {
				next, rest = n.Items[i], strings.TrimPrefix(after, ".")
			}
		}
		for _, m := range n.Members {
			after, ok := strings.CutPrefix(path, m.Key.Text)
			if !ok || after != "" && after[0] != '.' && after[0] != '[' || key != nil && len(m.Key.Text) < len(key.Text) {
				continue
			}
			next, key, rest = m.Value, m.Key, strings.TrimPrefix(after, ".")
		}
		if next == nil {
			return n
		}
		if rest == "" && key != nil && next.Kind == sheet.Mapping {
			return key
		}
		n, path = next, rest
	}
	return n
}

// takeScenario begins the case anew in the world of the body.
func (a *API) takeScenario(id string, body []byte) Answer {
	c, err := a.readScenario(id, body)
	if err != nil {
		return refuse(err)
	}
	names := make([]string, len(c.realm.packs))
	for i, p := range c.realm.packs {
		names[i] = p.Name
	}
	return show(struct {
		Case  string    `json:"case"`
		Packs []string  `json:"packs"`
		Steps string    `json:"steps"`
		Now   time.Time `json:"now"`
	}{id, names, c.Steps().String(), c.Now()})
}

// takeSteps replaces the script by the body of the request.
func takeSteps(c *Case, _ url.Values, body []byte) Answer {
	if err := c.SetSteps(string(body)); err != nil {
		return refuse(err)
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
