package github

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/heedproject/heed/sim"
)

// hook is a URL that is told of what happens in repositories. In the simulator
// it is told of all of them.
type hook struct {
	ID     int        `json:"id"`
	Type   string     `json:"type"`
	Active bool       `json:"active"`
	Events []string   `json:"events"`
	Config hookConfig `json:"config"`

	receiver string
}

type hookConfig struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
	Media  string `json:"content_type"`
}

func createHook(x *sim.Exchange) sim.Answer {
	r, ok := repoOf(x)
	h := hook{Type: "Repository", Active: true}
	switch {
	case !ok:
		return missing(x)
	case x.Decode(&h) != nil:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest})
	}
	if len(h.Events) == 0 {
		h.Events = []string{"push"}
	}
	receiver, _, err := x.Subscribe(sim.Webhook{URL: h.Config.URL, Secret: h.Config.Secret, Events: h.Events})
	if err != nil {
		return invalid("Hook", "url", "invalid")
	}
	all := sim.Rows[hook](x, "hooks")
	h.ID, h.receiver, h.Config.Media = all.Len()+1, receiver, "json"
	if h.Config.Secret != "" {
		h.Config.Secret = "********"
	}
	all.Put(strconv.Itoa(h.ID), h)
	x.Effect("hook", r.FullName+" "+h.Config.URL, 0)
	return sim.JSON(http.StatusCreated, h)
}

func listHooks(x *sim.Exchange) sim.Answer {
	if _, ok := repoOf(x); !ok {
		return missing(x)
	}
	var some []hook
	for _, h := range sim.Rows[hook](x, "hooks").All() {
		some = append(some, h)
	}
	return paged(x, some)
}

func deleteHook(x *sim.Exchange) sim.Answer {
	all := sim.Rows[hook](x, "hooks")
	h, ok := all.Get(x.Value("id"))
	if _, here := repoOf(x); !ok || !here {
		return missing(x)
	}
	all.Delete(x.Value("id"))
	x.Unsubscribe(h.receiver)
	x.Effect("hook delete", x.Value("id"), 0)
	return sim.Answer{Status: http.StatusNoContent}
}

// emit tells hooks of what was done to an issue, or to a comment on it.
func emit(x *sim.Exchange, action string, i issue, c *comment) {
	event := "issues"
	if c != nil {
		event = "issue_comment"
	}
	r, _ := sim.Rows[repo](x, "repos").Get(repoKey(i.repo))
	body, err := json.Marshal(struct {
		Action     string   `json:"action"`
		Issue      issue    `json:"issue"`
		Comment    *comment `json:"comment,omitempty"`
		Repository repo     `json:"repository"`
		Sender     person   `json:"sender"`
	}{action, i, c, r, me})
	if err == nil { // it can be written
		x.Emit(sim.Event{Type: event, Body: body})
	}
}
