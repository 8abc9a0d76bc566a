package shopify

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
)

// secret is that of the app, with which all of its webhooks are signed.
const secret = "shpss_of_the_simulator"

// topics are what a webhook can be told of.
var topics = []string{"products/create", "products/update", "products/delete", "orders/create", "orders/cancelled", "bulk_operations/finish"}

type hook struct {
	ID      int    `json:"id"`
	Topic   string `json:"topic"`
	Address string `json:"address"`
	Format  string `json:"format"`
	Created string `json:"created_at"`

	receiver string
}

type oneHook struct {
	Hook hook `json:"webhook"`
}

func hooks(x *sim.Exchange) *sim.Table[hook] {
	products(x) // so that ids go on from theirs
	return sim.Rows[hook](x, "webhooks")
}

func createHook(x *sim.Exchange) sim.Answer {
	var in oneHook
	all := hooks(x)
	if x.Decode(&in) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "webhook", Detail: "Required parameter missing or invalid"})
	}
	h := in.Hook
	if !slices.Contains(topics, h.Topic) {
		return invalid(x, "topic", "Invalid topic specified: "+h.Topic)
	}
	for _, other := range all.All() {
		if other.Topic == h.Topic && other.Address == h.Address {
			return invalid(x, "address", "for this topic has already been taken")
		}
	}
	receiver, _, err := x.Subscribe(sim.Webhook{URL: h.Address, Secret: secret, Events: []string{h.Topic}})
	if err != nil {
		return invalid(x, "address", "is invalid")
	}
	h.ID, h.Format, h.Created, h.receiver = serial(x), "json", x.Now().UTC().Format(time.RFC3339), receiver
	all.Put(strconv.Itoa(h.ID), h)
	x.Effect("webhook", h.Topic+" "+h.Address, 0)
	return sim.JSON(http.StatusCreated, oneHook{h})
}

func listHooks(x *sim.Exchange) sim.Answer {
	all := []hook{}
	for _, h := range hooks(x).All() {
		all = append(all, h)
	}
	return sim.JSON(200, struct {
		Hooks []hook `json:"webhooks"`
	}{all})
}

func deleteHook(x *sim.Exchange) sim.Answer {
	h, ok := hooks(x).Get(x.Value("id"))
	if !ok {
		return missing(x)
	}
	hooks(x).Delete(x.Value("id"))
	x.Unsubscribe(h.receiver)
	x.Effect("webhook delete", x.Value("id"), 0)
	return sim.JSON(200, struct{}{})
}

// emit tells webhooks of the topic.
func emit(x *sim.Exchange, topic string, v any) {
	if body, err := json.Marshal(v); err == nil { // it can be written
		x.Emit(sim.Event{Type: topic, Body: body})
	}
}
