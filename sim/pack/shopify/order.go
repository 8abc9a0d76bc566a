package shopify

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
)

type order struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Email       string  `json:"email"`
	Currency    string  `json:"currency"`
	Total       string  `json:"total_price"`
	Financial   string  `json:"financial_status"`
	Fulfillment *string `json:"fulfillment_status"`
	Created     string  `json:"created_at"`
	Cancelled   *string `json:"cancelled_at"`
	Closed      *string `json:"closed_at"`
	Lines       []line  `json:"line_items"`
}

type line struct {
	ID       int    `json:"id"`
	Variant  int    `json:"variant_id,omitempty"`
	Title    string `json:"title"`
	Quantity int    `json:"quantity"`
	Price    string `json:"price"`
}

type oneOrder struct {
	Order order `json:"order"`
}

func orders(x *sim.Exchange) *sim.Table[order] {
	products(x) // so that ids go on from theirs
	return sim.Rows[order](x, "orders")
}

func createOrder(x *sim.Exchange) sim.Answer {
	var in oneOrder
	if x.Decode(&in) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "order", Detail: "Required parameter missing or invalid"})
	}
	all := orders(x)
	o := in.Order
	if len(o.Lines) == 0 {
		return invalid(x, "line_items", "must have at least one line item")
	}
	cents, why := fill(x, o.Lines)
	if why != "" {
		return invalid(x, "line_items", why)
	}
	o.ID, o.Name = serial(x), "#"+strconv.Itoa(1001+all.Len())
	o.Total, o.Created = fmt.Sprintf("%d.%02d", cents/100, cents%100), x.Now().UTC().Format(time.RFC3339)
	if o.Currency == "" {
		o.Currency = "EUR"
	}
	if o.Financial == "" {
		o.Financial = "pending"
	}
	o.Cancelled, o.Closed = nil, nil
	all.Put(strconv.Itoa(o.ID), o)
	x.Effect("order", o.Email+" "+o.Total, cents)
	emit(x, "orders/create", o)
	return sim.JSON(http.StatusCreated, oneOrder{o})
}

// fill completes lines from the variants that they name, and adds them up.
func fill(x *sim.Exchange, lines []line) (cents int64, why string) {
	byID := map[int]variant{}
	titles := map[int]string{}
	for _, p := range products(x).All() {
		for _, v := range p.Variants {
			byID[v.ID], titles[v.ID] = v, p.Title
		}
	}
	for i := range lines {
		l := &lines[i]
		if v, ok := byID[l.Variant]; ok {
			l.Title, l.Price = titles[l.Variant], v.Price
		} else if l.Variant != 0 {
			return 0, "variant " + strconv.Itoa(l.Variant) + " does not exist"
		}
		if l.Title == "" || l.Quantity < 1 || l.Quantity > 1_000_000 || !price().MatchString(l.Price) {
			return 0, "need a variant_id, or a title and a price, and a quantity"
		}
		l.ID = serial(x)
		one, _ := strconv.ParseFloat(l.Price, 64) // the pattern has seen it
		cents += int64(math.Round(one*100)) * int64(l.Quantity)
	}
	return cents, ""
}

func getOrder(x *sim.Exchange) sim.Answer {
	o, ok := orders(x).Get(x.Value("id"))
	if !ok {
		return missing(x)
	}
	return sim.JSON(200, oneOrder{o})
}

func cancelOrder(x *sim.Exchange) sim.Answer {
	o, ok := orders(x).Get(x.Value("id"))
	switch {
	case !ok:
		return missing(x)
	case o.Cancelled != nil:
		return invalid(x, "base", "This order has already been cancelled")
	case o.Closed != nil:
		return invalid(x, "base", "Cannot cancel a closed order")
	}
	at := x.Now().UTC().Format(time.RFC3339)
	o.Cancelled = &at
	if o.Financial = "voided"; o.Fulfillment != nil {
		o.Financial = "refunded"
	}
	orders(x).Put(x.Value("id"), o)
	x.Effect("order cancel", x.Value("id"), 0)
	emit(x, "orders/cancelled", o)
	return sim.JSON(200, oneOrder{o})
}

func closeOrder(x *sim.Exchange) sim.Answer {
	o, ok := orders(x).Get(x.Value("id"))
	if !ok {
		return missing(x)
	}
	at := x.Now().UTC().Format(time.RFC3339)
	o.Closed = &at
	orders(x).Put(x.Value("id"), o)
	x.Effect("order close", x.Value("id"), 0)
	return sim.JSON(200, oneOrder{o})
}

// status is the state of o in the words of the filter of the same name.
func (o order) status() string {
	switch {
	case o.Cancelled != nil:
		return "cancelled"
	case o.Closed != nil:
		return "closed"
	}
	return "open"
}

// listOrders gives open ones, unless status= says others.
func listOrders(x *sim.Exchange) sim.Answer {
	some, links, bad := page(x, orders(x), func(q url.Values, o order) bool {
		status := q.Get("status")
		return status == "any" || status == o.status() || status == "" && o.status() == "open"
	})
	if bad != nil {
		return x.Refuse(*bad)
	}
	an := sim.JSON(200, struct {
		Orders []order `json:"orders"`
	}{some})
	if links != "" {
		an.Set("Link", links)
	}
	return an
}
