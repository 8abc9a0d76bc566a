package stripe

import (
	"encoding/json"

	"github.com/heedproject/heed/sim"
)

// event tells that something happened to a resource, with the resource as it
// was then.
type event struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Created  int64  `json:"created"`
	Type     string `json:"type"`
	Livemode bool   `json:"livemode"`
	Pending  int    `json:"pending_webhooks"`
	Data     struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// events are those of which emit tells.
var events = []string{
	"charge.succeeded", "charge.failed", "charge.captured", "charge.refunded",
	"customer.created", "customer.updated", "customer.deleted",
	"payment_intent.created", "payment_intent.requires_action", "payment_intent.processing", "payment_intent.payment_failed",
	"payment_intent.amount_capturable_updated", "payment_intent.succeeded", "payment_intent.canceled",
}

// emit keeps an event and sends it to the webhooks that want it.
func emit(x *sim.Exchange, kind string, v any) {
	e := event{ID: x.ID("evt_"), Object: "event", Created: x.Now().Unix(), Type: kind}
	e.Pending = sim.Rows[endpoint](x, "webhook_endpoints").Len()
	var err error
	if e.Data.Object, err = json.Marshal(v); err != nil {
		return // a resource of this pack can be written
	}
	sim.Rows[event](x, "events").Put(e.ID, e)
	if body, err := json.Marshal(e); err == nil {
		x.Emit(sim.Event{Type: kind, ID: e.ID, Body: body})
	}
}

// endpoint is a URL that wants to be told of events. Its secret is shown once.
type endpoint struct {
	ID     string   `json:"id"`
	Object string   `json:"object"`
	URL    string   `json:"url"`
	Events []string `json:"enabled_events"`
	Status string   `json:"status"`
	Secret string   `json:"secret,omitempty"`

	hook string
}

func createEndpoint(x *sim.Exchange) sim.Answer {
	form := x.Form()
	e := endpoint{ID: x.ID("we_"), Object: "webhook_endpoint", URL: form.Get("url"), Events: form["enabled_events[]"], Status: "enabled"}
	if e.URL == "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "url", Detail: "Missing required param: url."})
	}
	if len(e.Events) == 0 {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "enabled_events", Detail: "Missing required param: enabled_events."})
	}
	hook, secret, err := x.Subscribe(sim.Webhook{URL: e.URL, Events: e.Events})
	if err != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "url", Detail: "Invalid URL: " + err.Error()})
	}
	e.hook = hook
	sim.Rows[endpoint](x, "webhook_endpoints").Put(e.ID, e)
	x.Effect("webhook_endpoint", "", 0)
	e.Secret = secret
	return done(x, e)
}

func deleteEndpoint(x *sim.Exchange) sim.Answer {
	all := sim.Rows[endpoint](x, "webhook_endpoints")
	e, ok := all.Get(x.Value("id"))
	if !ok {
		return x.Refuse(missing("webhook endpoint", x.Value("id")))
	}
	all.Delete(e.ID)
	x.Unsubscribe(e.hook)
	x.Effect("webhook_endpoint delete", e.ID, 0)
	return done(x, deleted{e.ID, e.Object, true})
}

// deleted is what is told of something that is gone.
type deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}
