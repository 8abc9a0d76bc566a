package stripe

import (
	"slices"
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
)

type intent struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Amount           int64             `json:"amount"`
	AmountCapturable int64             `json:"amount_capturable"`
	AmountReceived   int64             `json:"amount_received"`
	CanceledAt       *int64            `json:"canceled_at"`
	CaptureMethod    string            `json:"capture_method"`
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

	held time.Time // until when another request holds it
}

// The states of an intent that matter here.
const (
	needsMethod  = "requires_payment_method"
	needsConfirm = "requires_confirmation"
	needsPayer   = "requires_action"
	needsCapture = "requires_capture"
	processing   = "processing"
	succeeded    = "succeeded"
	canceled     = "canceled"
)

const (
	bankTime = 2 * time.Second    // how long a payment from a bank account stays in processing
	heldTime = 2 * time.Second    // how long pm_card_held is held
	authTime = 7 * 24 * time.Hour // how long an authorization waits for its capture
)

func intents(x *sim.Exchange) *sim.Table[intent] { return sim.Rows[intent](x, "payment_intents") }

func createIntent(x *sim.Exchange) sim.Answer {
	amount, currency, bad := money(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	form := x.Form()
	p := intent{
		ID: x.ID("pi_"), Object: "payment_intent", Amount: amount, Created: x.Now().Unix(), Currency: currency,
		Customer: optional(form.Get("customer")), Metadata: metadata(form, nil), CaptureMethod: "automatic",
		PaymentMethod: optional(form.Get("payment_method")), Status: needsMethod,
	}
	if form.Get("capture_method") == "manual" {
		p.CaptureMethod = "manual"
	}
	confirm := form.Get("confirm") == "true"
	if confirm && p.PaymentMethod == nil {
		return x.Refuse(withoutMethod)
	}
	p.ClientSecret = p.ID + "_secret_" + x.ID("")
	if p.PaymentMethod != nil {
		p.Status = needsConfirm
	}
	x.Effect("payment_intent", "", amount)
	intents(x).Put(p.ID, p)
	emit(x, "payment_intent.created", p)
	if confirm {
		return pay(x, p)
	}
	return done(x, p)
}

// change gives do the intent that the path names, if its state is one of
// those, and nobody else holds it.
func change(x *sim.Exchange, verb string, do func(intent) sim.Answer, states ...string) sim.Answer {
	p, ok := intents(x).Get(x.Value("id"))
	switch {
	case !ok:
		return x.Refuse(missing("payment_intent", x.Value("id")))
	case x.Now().Before(p.held):
		return x.Refuse(sim.Refusal{Kind: sim.Conflict, Detail: "This object cannot be accessed right now because another API request is accessing it."})
	}
	if slices.Contains(states, p.Status) {
		return do(p)
	}
	return failed(x, 400, fault{Type: "invalid_request_error", Code: "payment_intent_unexpected_state",
		Message: "You cannot " + verb + " this PaymentIntent because it has a status of " + p.Status + "."})
}

func updateIntent(x *sim.Exchange) sim.Answer {
	return change(x, "update", func(p intent) sim.Answer {
		form := x.Form()
		if text := form.Get("amount"); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 1 || n > maxAmount {
				return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "amount", Detail: "Invalid integer: " + text})
			}
			p.Amount = n
		}
		if m := form.Get("payment_method"); m != "" {
			p.PaymentMethod, p.Status = &m, needsConfirm
		}
		p.Metadata = metadata(form, p.Metadata)
		intents(x).Put(p.ID, p)
		x.Effect("payment_intent update", p.ID, 0)
		return done(x, p)
	}, needsMethod, needsConfirm, needsPayer)
}

func confirmIntent(x *sim.Exchange) sim.Answer {
	return change(x, "confirm", func(p intent) sim.Answer {
		if m := x.Form().Get("payment_method"); m != "" {
			p.PaymentMethod = &m
		}
		return pay(x, p)
	}, needsMethod, needsConfirm, needsPayer)
}

var withoutMethod = sim.Refusal{Kind: sim.BadRequest, Field: "payment_method",
	Detail: "You cannot confirm this PaymentIntent because it's missing a payment method."}

// pay confirms p: at once, later, or not at all, as its method says.
func pay(x *sim.Exchange, p intent) sim.Answer {
	all := intents(x)
	if p.PaymentMethod == nil {
		return x.Refuse(withoutMethod)
	}
	c := charge{
		ID: x.ID("ch_"), Object: "charge", Amount: p.Amount, Created: x.Now().Unix(), Currency: p.Currency,
		Customer: p.Customer, PaymentIntent: &p.ID, Metadata: map[string]string{},
	}
	switch *p.PaymentMethod {
	case "pm_card_chargeDeclined":
		p.Status = needsMethod
		p.LastPaymentError = &fault{Type: "card_error", Code: "card_declined", DeclineCode: "generic_decline", Message: "Your card was declined."}
		all.Put(p.ID, p)
		emit(x, "payment_intent.payment_failed", p)
		return declined(x, c.ID)
	case "pm_card_authenticationRequired":
		p.Status = needsPayer
		emit(x, "payment_intent.requires_action", p)
	case "pm_usBankAccount_processing":
		p.Status, p.LatestCharge = processing, &c.ID
		emit(x, "payment_intent.processing", p)
		x.After(bankTime, func(time.Time) {
			if p, ok := all.Get(p.ID); ok && p.Status == processing {
				all.Put(p.ID, received(x, p, c))
			}
		})
	case "pm_card_held":
		p.held, p.Status = x.Now().Add(heldTime), needsConfirm
		method := "pm_card_visa"
		p.PaymentMethod = &method
	default:
		p = received(x, p, c)
	}
	all.Put(p.ID, p)
	return done(x, p)
}

// received books the money of p, or reserves it where a capture is to follow.
func received(x *sim.Exchange, p intent, c charge) intent {
	c = settle(x, c, p.CaptureMethod == "automatic")
	p.LatestCharge, p.LastPaymentError = &c.ID, nil
	if !c.Captured {
		p.Status, p.AmountCapturable = needsCapture, p.Amount
		emit(x, "payment_intent.amount_capturable_updated", p)
		x.After(authTime, func(now time.Time) {
			if p, ok := intents(x).Get(p.ID); ok && p.Status == needsCapture {
				void(x, p, now)
			}
		})
		return p
	}
	p.Status, p.AmountReceived = succeeded, p.Amount
	emit(x, "payment_intent.succeeded", p)
	return p
}

func captureIntent(x *sim.Exchange) sim.Answer {
	return change(x, "capture", func(p intent) sim.Answer {
		amount := p.AmountCapturable
		if text := x.Form().Get("amount_to_capture"); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 1 || n > amount {
				return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "amount_to_capture", Detail: "Invalid integer: " + text})
			}
			amount = n
		}
		charges := sim.Rows[charge](x, "charges")
		if c, ok := charges.Get(*p.LatestCharge); ok {
			c.Captured, c.AmountCaptured = true, amount
			charges.Put(c.ID, c)
			x.Effect("capture", c.ID, amount)
			emit(x, "charge.captured", c)
		}
		p.Status, p.AmountReceived, p.AmountCapturable = succeeded, amount, 0
		intents(x).Put(p.ID, p)
		emit(x, "payment_intent.succeeded", p)
		return done(x, p)
	}, needsCapture)
}

func cancelIntent(x *sim.Exchange) sim.Answer {
	return change(x, "cancel", func(p intent) sim.Answer {
		p = void(x, p, x.Now())
		x.Effect("cancel", p.ID, 0)
		return done(x, p)
	}, needsMethod, needsConfirm, needsPayer, needsCapture)
}

func void(x *sim.Exchange, p intent, now time.Time) intent {
	at := now.Unix()
	p.Status, p.CanceledAt, p.AmountCapturable = canceled, &at, 0
	intents(x).Put(p.ID, p)
	emit(x, "payment_intent.canceled", p)
	return p
}
