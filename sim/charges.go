package sim

type charge struct {
	ID       string `json:"id"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Status   string `json:"status"`
}

// postCharge makes a charge. The key that keeps it from making two is the
// business of the API: see Operation.Keyed.
func postCharge(x *Exchange) Answer {
	var c charge
	if err := x.Decode(&c); err != nil || c.Amount <= 0 || len(c.Currency) != 3 {
		return x.Refuse(Refusal{Kind: BadRequest, Detail: `send {"amount": 1200, "currency": "eur"}, the amount in cents`})
	}
	c.ID, c.Status = x.ID("ch_"), "succeeded"
	Rows[charge](x, "charges").Put(c.ID, c)
	x.Effect("charge", "", c.Amount)
	x.Emit(event(x, "charge.succeeded", c))
	return JSON(201, c).With("Location", "/v1/charges/"+c.ID)
}

func getCharge(x *Exchange) Answer {
	c, ok := Rows[charge](x, "charges").Get(x.Value("id"))
	if !ok {
		return x.Refuse(Refusal{Kind: NotFound, Detail: "there is no such charge"})
	}
	return JSON(200, c)
}
