package kalshi

import "github.com/heedproject/heed/sim"

// cancelled is the answer for one order that was taken back.
type cancelled struct {
	Order   order `json:"order"`
	Reduced int   `json:"reduced_by"`
}

func cancelOrder(x *sim.Exchange) sim.Answer {
	o, ok := own(x, x.Value("id"))
	switch {
	case !ok:
		return x.Refuse(missing("order"))
	case o.Status != resting:
		return x.Refuse(sim.Refusal{Kind: sim.Conflict, Detail: "the order is " + o.Status + " and can no longer be cancelled"})
	}
	return sim.JSON(200, withdraw(x, o))
}

func withdraw(x *sim.Exchange, o order) cancelled {
	reduced := o.Remaining
	o.Status, o.Remaining = canceled, 0
	orders(x).Put(o.ID, o)
	pay(x, -o.cost())
	x.Effect("cancel", o.ID, 0)
	return cancelled{o, reduced}
}

func amendOrder(x *sim.Exchange) sim.Answer {
	o, ok := own(x, x.Value("id"))
	var w wish
	switch {
	case !ok:
		return x.Refuse(missing("order"))
	case o.Status != resting:
		return x.Refuse(sim.Refusal{Kind: sim.Conflict, Detail: "the order is " + o.Status + " and can no longer be amended"})
	case x.Decode(&w) != nil || w.Count < 0 || w.YesPrice < 0 || w.YesPrice > 99:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "send count, and yes_price from 1 to 99"})
	}
	before := o.cost()
	if w.Count > 0 {
		o.Count, o.Remaining = w.Count, w.Count
	}
	if w.YesPrice > 0 {
		o.YesPrice, o.NoPrice = w.YesPrice, 100-w.YesPrice
	}
	if o.cost()-before > balance(x) {
		return failed(400, "insufficient_balance", "the balance does not cover the order")
	}
	pay(x, o.cost()-before)
	orders(x).Put(o.ID, o)
	x.Effect("amend", o.ID, 0)
	return sim.JSON(200, one{o})
}

// outcome is what became of one order of a batch.
type outcome struct {
	ID       string `json:"order_id,omitempty"`
	ClientID string `json:"client_order_id,omitempty"`
	Order    *order `json:"order"`
	Reduced  int    `json:"reduced_by,omitempty"`
	Error    *fault `json:"error"`
}

type outcomes struct {
	Orders []outcome `json:"orders"`
}

func createOrders(x *sim.Exchange) sim.Answer {
	var b batch
	if x.Decode(&b) != nil || len(b.Orders) < 1 || len(b.Orders) > maxBatch {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "send orders, from 1 to 20 of them"})
	}
	var all outcomes
	for _, w := range b.Orders {
		o, _, bad := place(x, w)
		one := outcome{ClientID: w.ClientID, Error: bad}
		if bad == nil {
			one.Order = &o
		}
		all.Orders = append(all.Orders, one)
	}
	return sim.JSON(201, all)
}

func cancelOrders(x *sim.Exchange) sim.Answer {
	var b batch
	if x.Decode(&b) != nil || len(b.IDs) < 1 || len(b.IDs) > maxBatch {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "send ids, from 1 to 20 of them"})
	}
	var all outcomes
	for _, id := range b.IDs {
		o, ok := own(x, id)
		if !ok || o.Status != resting {
			all.Orders = append(all.Orders, outcome{ID: id, Error: &fault{Code: "not_found", Message: "there is no such resting order"}})
			continue
		}
		c := withdraw(x, o)
		all.Orders = append(all.Orders, outcome{ID: id, Order: &c.Order, Reduced: c.Reduced})
	}
	return sim.JSON(200, all)
}
