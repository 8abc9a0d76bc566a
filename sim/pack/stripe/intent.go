package stripe

import (
	"time"

	"github.com/heedproject/heed/sim"
)

type intent struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Amount           int64             `json:"amount"`
	AmountReceived   int64             `json:"amount_received"`
	CanceledAt       *int64            `json:"canceled_at"`
	ClientSecret     string            `json:"client_secret"`
	Created          int64             `json:"created"`
	Currency         string            `json:"currency"`
	Customer         *string           `json:"customer"`
	LastPaymentError *fault            `json:"last_payment_error"`
	LatestCharge     *string           `json:"latest_charge"`
	Livemode         bool              `json:"livemode"`
	Metadata         map[string]string `json:"metadata"`
	PaymentMethod    *string           `json:"payment_method"`
	Status           string            `json:"status"`
}

// The states of an intent that matter here.
const (
	needsMethod  = "requires_payment_method"
	needsConfirm = "requires_confirmation"
	processing   = "processing"
	succeeded    = "succeeded"
	canceled     = "canceled"
)

// bankTime is how long a payment from a bank account stays in processing.
const bankTime = 2 * time.Second

func createIntent(x *sim.Exchange) sim.Answer {
	amount, currency, bad := money(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	form := x.Form()
	p := intent{
		ID: x.ID("pi_"), Object: "payment_intent", Amount: amount, Created: x.Now().Unix(), Currency: currency,
		Customer: optional(form.Get("customer")), Metadata: metadata(form, nil),
		PaymentMethod: optional(form.Get("payment_method")), Status: needsMethod,
	}
	p.ClientSecret = p.ID + "_secret_" + x.ID("")
	if p.PaymentMethod != nil {
		p.Status = needsConfirm
	}
	x.Effect("payment_intent", "", amount)
	if form.Get("confirm") == "true" {
		return pay(x, p)
	}
	sim.Rows[intent](x, "payment_intents").Put(p.ID, p)
	return done(x, p)
}

func confirmIntent(x *sim.Exchange) sim.Answer {
	p, ok := sim.Rows[intent](x, "payment_intents").Get(x.Value("id"))
	if !ok {
		return x.Refuse(missing("payment_intent", x.Value("id")))
	}
	if m := x.Form().Get("payment_method"); m != "" {
		p.PaymentMethod = &m
	}
	if p.Status != needsMethod && p.Status != needsConfirm {
		return unexpected(x, p, "confirm")
	}
	return pay(x, p)
}

// pay confirms p: at once, later, or not at all, as its method says.
func pay(x *sim.Exchange, p intent) sim.Answer {
	intents := sim.Rows[intent](x, "payment_intents")
	if p.PaymentMethod == nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "payment_method",
			Detail: "You cannot confirm this PaymentIntent because it's missing a payment method."})
	}
	c := charge{
		ID: x.ID("ch_"), Object: "charge", Amount: p.Amount, Created: x.Now().Unix(), Currency: p.Currency,
		Customer: p.Customer, PaymentIntent: &p.ID, Metadata: map[string]string{},
	}
	switch *p.PaymentMethod {
	case "pm_card_chargeDeclined":
		p.Status = needsMethod
		p.LastPaymentError = &fault{Type: "card_error", Code: "card_declined", DeclineCode: "generic_decline", Message: "Your card was declined."}
		intents.Put(p.ID, p)
		return declined(x, c.ID)
	case "pm_usBankAccount_processing":
		p.Status, p.LatestCharge = processing, &c.ID
		intents.Put(p.ID, p)
		x.After(bankTime, func(time.Time) {
			if p, ok := intents.Get(p.ID); ok && p.Status == processing {
				intents.Put(p.ID, received(x, p, c))
			}
		})
		return done(x, p)
	}
	p = received(x, p, c)
	intents.Put(p.ID, p)
	return done(x, p)
}

func received(x *sim.Exchange, p intent, c charge) intent {
	c = settle(x, c, true)
	p.Status, p.AmountReceived, p.LatestCharge, p.LastPaymentError = succeeded, p.Amount, &c.ID, nil
	return p
}

func cancelIntent(x *sim.Exchange) sim.Answer {
	intents := sim.Rows[intent](x, "payment_intents")
	p, ok := intents.Get(x.Value("id"))
	switch {
	case !ok:
		return x.Refuse(missing("payment_intent", x.Value("id")))
	case p.Status == succeeded || p.Status == canceled || p.Status == processing:
		return unexpected(x, p, "cancel")
	}
	at := x.Now().Unix()
	p.Status, p.CanceledAt = canceled, &at
	intents.Put(p.ID, p)
	x.Effect("cancel", p.ID, 0)
	return done(x, p)
}

func unexpected(x *sim.Exchange, p intent, verb string) sim.Answer {
	return failed(x, 400, fault{Type: "invalid_request_error", Code: "payment_intent_unexpected_state",
		Message: "You cannot " + verb + " this PaymentIntent because it has a status of " + p.Status + "."})
}
