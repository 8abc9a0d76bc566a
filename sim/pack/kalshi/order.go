package kalshi

import (
	"time"

	"github.com/heedproject/heed/sim"
)

// order is a wish to trade. It is executed at once where its price meets the
// market's, and else rests until it is cancelled or expires.
type order struct {
	ID        string `json:"order_id"`
	ClientID  string `json:"client_order_id"`
	Ticker    string `json:"ticker"`
	Side      string `json:"side"`
	Action    string `json:"action"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	YesPrice  int    `json:"yes_price"`
	NoPrice   int    `json:"no_price"`
	Count     int    `json:"initial_count"`
	Filled    int    `json:"fill_count"`
	Remaining int    `json:"remaining_count"`
	Created   string `json:"created_time"`

	owner string
}

// The states of an order.
const (
	resting  = "resting"
	executed = "executed"
	canceled = "canceled"
)

// wish is what a caller sends for an order.
type wish struct {
	Ticker   string `json:"ticker"`
	ClientID string `json:"client_order_id"`
	Side     string `json:"side"`
	Action   string `json:"action"`
	Type     string `json:"type"`
	Count    int    `json:"count"`
	YesPrice int    `json:"yes_price"`
	NoPrice  int    `json:"no_price"`
	Expires  int64  `json:"expiration_ts"` // in seconds
}

// batch is several of them, or the ids of several orders.
type batch struct {
	Orders []wish   `json:"orders"`
	IDs    []string `json:"ids"`
}

const maxBatch = 20

// stake is what everybody owns at first, in cents.
const stake = 100_000

func orders(x *sim.Exchange) *sim.Table[order] { return sim.Rows[order](x, "orders") }

func balance(x *sim.Exchange) int {
	if cents, ok := sim.Rows[int](x, "balances").Get(x.Credential()); ok {
		return cents
	}
	return stake
}

func pay(x *sim.Exchange, cents int) {
	sim.Rows[int](x, "balances").Put(x.Credential(), balance(x)-cents)
}

func getBalance(x *sim.Exchange) sim.Answer {
	return sim.JSON(200, struct {
		Balance int   `json:"balance"`
		Updated int64 `json:"updated_ts"`
	}{balance(x), x.Now().Unix()})
}

func createOrder(x *sim.Exchange) sim.Answer {
	var w wish
	if x.Decode(&w) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "the body is no order in JSON"})
	}
	o, status, bad := place(x, w)
	if bad != nil {
		return failed(status, bad.Code, bad.Message)
	}
	return sim.JSON(201, one{o})
}

type one struct {
	Order order `json:"order"`
}

// place does what w wishes, or says with which status it is refused.
func place(x *sim.Exchange, w wish) (o order, status int, bad *fault) {
	m, ok := marketNamed(x, w.Ticker)
	price := w.YesPrice
	if w.Side == "no" {
		price = w.NoPrice
	}
	taken := sim.Rows[string](x, "client ids")
	_, again := taken.Get(x.Credential() + " " + w.ClientID)
	switch {
	case !ok:
		return o, 404, &fault{Code: "market_not_found", Message: "there is no market with this ticker"}
	case w.Side != "yes" && w.Side != "no" || w.Action != "buy" && w.Action != "sell" || w.Count < 1 || price < 1 || price > 99:
		return o, 400, &fault{Code: "invalid_order", Message: "send ticker, side yes or no, action buy or sell, count, and the price of the side from 1 to 99"}
	case w.ClientID != "" && again:
		return o, 409, &fault{Code: "order_already_exists", Message: "an order with this client_order_id exists"}
	case m.Status != "active":
		return o, 409, &fault{Code: "market_not_active", Message: "the market is closed"}
	case w.Action == "buy" && price*w.Count > balance(x):
		return o, 400, &fault{Code: "insufficient_balance", Message: "the balance does not cover the order"}
	}
	o = order{
		ID: x.ID(""), ClientID: w.ClientID, Ticker: w.Ticker, Side: w.Side, Action: w.Action, Type: "limit",
		Status: resting, YesPrice: price, NoPrice: 100 - price, Count: w.Count, Remaining: w.Count,
		Created: x.Now().UTC().Format(time.RFC3339Nano), owner: x.Credential(),
	}
	if w.Side == "no" {
		o.YesPrice, o.NoPrice = 100-price, price
	}
	if met(m, w, price) {
		o.Status, o.Filled, o.Remaining = executed, o.Count, 0
	}
	if o.ClientID != "" {
		taken.Put(x.Credential()+" "+o.ClientID, o.ID)
	}
	pay(x, o.cost())
	orders(x).Put(o.ID, o)
	x.Effect("order", "", int64(o.cost()))
	expire(x, o, w.Expires)
	return o, 201, nil
}

// met tells whether somebody takes the other side at this price.
func met(m market, w wish, price int) bool {
	bid, ask := m.YesBid, m.YesAsk
	if w.Side == "no" {
		bid, ask = m.NoBid, m.NoAsk
	}
	return w.Action == "buy" && price >= ask || w.Action == "sell" && price <= bid
}

// cost is what o takes from the balance; a sale takes nothing here.
func (o order) cost() int {
	switch {
	case o.Action == "sell":
		return 0
	case o.Side == "no":
		return o.NoPrice * o.Count
	}
	return o.YesPrice * o.Count
}

// expire cancels o when its time is up.
func expire(x *sim.Exchange, o order, at int64) {
	if at == 0 || o.Status != resting {
		return
	}
	all := orders(x)
	x.After(max(time.Unix(at, 0).Sub(x.Now()), 0), func(time.Time) {
		if o, ok := all.Get(o.ID); ok && o.Status == resting {
			o.Status, o.Remaining = canceled, 0
			all.Put(o.ID, o)
			pay(x, -o.cost())
		}
	})
}

func listOrders(x *sim.Exchange) sim.Answer {
	var mine []order
	for _, o := range orders(x).Newest() {
		status, ticker := x.Query("status"), x.Query("ticker")
		if o.owner == x.Credential() && (status == "" || status == o.Status) && (ticker == "" || ticker == o.Ticker) {
			mine = append(mine, o)
		}
	}
	some, cursor, bad := cut(x, mine)
	if bad != nil {
		return x.Refuse(*bad)
	}
	return sim.JSON(200, struct {
		Orders []order `json:"orders"`
		Cursor string  `json:"cursor"`
	}{some, cursor})
}

func own(x *sim.Exchange, id string) (order, bool) {
	o, ok := orders(x).Get(id)
	return o, ok && o.owner == x.Credential()
}

func getOrder(x *sim.Exchange) sim.Answer {
	o, ok := own(x, x.Value("id"))
	if !ok {
		return x.Refuse(missing("order"))
	}
	return sim.JSON(200, one{o})
}
