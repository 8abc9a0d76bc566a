package stripe

import (
	"strconv"

	"github.com/heedproject/heed/sim"
)

type charge struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Amount         int64             `json:"amount"`
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"`
	Captured       bool              `json:"captured"`
	Created        int64             `json:"created"`
	Currency       string            `json:"currency"`
	Customer       *string           `json:"customer"`
	Description    *string           `json:"description"`
	FailureCode    *string           `json:"failure_code"`
	FailureMessage *string           `json:"failure_message"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	Paid           bool              `json:"paid"`
	PaymentIntent  *string           `json:"payment_intent"`
	Refunded       bool              `json:"refunded"`
	Status         string            `json:"status"`
}

func createCharge(x *sim.Exchange) sim.Answer {
	amount, currency, bad := money(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	form := x.Form()
	source, payer := form.Get("source"), form.Get("customer")
	if source == "" && payer == "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "source", Detail: "Must provide source or customer."})
	}
	if _, ok := sim.Rows[customer](x, "customers").Get(payer); payer != "" && !ok {
		return x.Refuse(missing("customer", payer))
	}
	c := charge{
		ID: x.ID("ch_"), Object: "charge", Amount: amount, Created: x.Now().Unix(), Currency: currency,
		Customer: optional(payer), Description: optional(form.Get("description")), Metadata: metadata(form, nil),
	}
	if source == "tok_chargeDeclined" {
		c.Status, c.FailureCode, c.FailureMessage = "failed", optional("card_declined"), optional("Your card was declined.")
		sim.Rows[charge](x, "charges").Put(c.ID, c)
		emit(x, "charge.failed", c)
		return declined(x, c.ID)
	}
	return done(x, settle(x, c, form.Get("capture") != "false"))
}

// settle makes a charge that succeeds, and enters it into the ledger.
func settle(x *sim.Exchange, c charge, capture bool) charge {
	c.Paid, c.Status, c.Captured = true, "succeeded", capture
	if capture {
		c.AmountCaptured = c.Amount
	}
	sim.Rows[charge](x, "charges").Put(c.ID, c)
	x.Effect("charge", "", c.Amount)
	emit(x, "charge.succeeded", c)
	return c
}

func captureCharge(x *sim.Exchange) sim.Answer {
	charges := sim.Rows[charge](x, "charges")
	c, ok := charges.Get(x.Value("id"))
	switch {
	case !ok:
		return x.Refuse(missing("charge", x.Value("id")))
	case c.Captured:
		return failed(x, 400, fault{Type: "invalid_request_error", Code: "charge_already_captured",
			Message: "Charge " + c.ID + " has already been captured."})
	}
	c.AmountCaptured = c.Amount
	if n, err := strconv.ParseInt(x.Form().Get("amount"), 10, 64); err == nil && n > 0 && n < c.Amount {
		c.AmountCaptured = n
	}
	c.Captured = true
	charges.Put(c.ID, c)
	x.Effect("capture", c.ID, c.AmountCaptured)
	emit(x, "charge.captured", c)
	return done(x, c)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
