package stripe

import (
	"strconv"

	"github.com/heedproject/heed/sim"
)

type refund struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        string            `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent *string           `json:"payment_intent"`
	Reason        *string           `json:"reason"`
	Status        string            `json:"status"`
}

func createRefund(x *sim.Exchange) sim.Answer {
	form := x.Form()
	id := form.Get("charge")
	if p, ok := sim.Rows[intent](x, "payment_intents").Get(form.Get("payment_intent")); ok && p.LatestCharge != nil {
		id = *p.LatestCharge
	}
	charges := sim.Rows[charge](x, "charges")
	c, ok := charges.Get(id)
	if !ok {
		return x.Refuse(missing("charge", id))
	}
	left := c.AmountCaptured - c.AmountRefunded
	amount := left
	if text := form.Get("amount"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "amount", Detail: "Invalid integer: " + text})
		}
		amount = n
	}
	switch {
	case left == 0:
		return failed(x, 400, fault{Type: "invalid_request_error", Code: "charge_already_refunded",
			Message: "Charge " + c.ID + " has already been refunded."})
	case amount > left:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "amount",
			Detail: "Refund amount is greater than unrefunded amount on charge."})
	}
	c.AmountRefunded += amount
	c.Refunded = c.AmountRefunded == c.AmountCaptured
	charges.Put(c.ID, c)
	r := refund{
		ID: x.ID("re_"), Object: "refund", Amount: amount, Charge: c.ID, Created: x.Now().Unix(), Currency: c.Currency,
		Metadata: metadata(form, nil), PaymentIntent: c.PaymentIntent, Reason: optional(form.Get("reason")), Status: "succeeded",
	}
	sim.Rows[refund](x, "refunds").Put(r.ID, r)
	x.Effect("refund", c.ID, amount)
	emit(x, "charge.refunded", c)
	return done(x, r)
}
