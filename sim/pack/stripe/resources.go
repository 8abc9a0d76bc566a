package stripe

import (
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

// missing refuses an id that leads nowhere.
func missing(what, id string) sim.Refusal {
	return sim.Refusal{Kind: sim.NotFound, Field: "id", Detail: "No such " + what + ": '" + id + "'"}
}

// retrieve gives the resource of the table with the id in the path.
func retrieve[T any](table, what string) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer {
		v, ok := sim.Rows[T](x, table).Get(x.Value("id"))
		if !ok {
			return x.Refuse(missing(what, x.Value("id")))
		}
		return done(x, v)
	}
}

// page is a list as Stripe gives it.
type page[T any] struct {
	Object  string `json:"object"`
	Data    []T    `json:"data"`
	HasMore bool   `json:"has_more"`
	URL     string `json:"url"`
}

const (
	maxPage   = 100
	maxAmount = 99_999_999
)

// tags are what a list can be narrowed by, by the name of the parameter.
type tags map[string]*string

// listOf gives the newest first, limit= at a time, after starting_after= or
// before ending_before=.
func listOf[T any](table string, tagsOf func(T) tags) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer {
		limit := 10
		if text := x.Query("limit"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > maxPage {
				return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "limit", Detail: "Invalid integer: limit is from 1 to 100"})
			}
			limit = n
		}
		rows := sim.Rows[T](x, table)
		after, before := x.Query("starting_after"), x.Query("ending_before")
		for _, id := range []string{after, before} {
			if _, ok := rows.Get(id); id != "" && !ok {
				return x.Refuse(missing(strings.TrimSuffix(table, "s"), id))
			}
		}
		p := page[T]{Object: "list", Data: []T{}, URL: "/v1/" + table}
		for id, v := range rows.Newest() {
			switch {
			case after != "":
				if id == after {
					after = ""
				}
			case id == before:
				return done(x, p.last(limit))
			case tagsOf(v).fit(x):
				p.Data = append(p.Data, v)
			}
			if before == "" && len(p.Data) > limit {
				break
			}
		}
		return done(x, p.first(limit))
	}
}

// fit tells whether t has what the query asks for.
func (t tags) fit(x *sim.Exchange) bool {
	for name, have := range t {
		if want := x.Query(name); want != "" && (have == nil || *have != want) {
			return false
		}
	}
	return true
}

func (p page[T]) first(n int) page[T] {
	if p.HasMore = len(p.Data) > n; p.HasMore {
		p.Data = p.Data[:n]
	}
	return p
}

func (p page[T]) last(n int) page[T] {
	if p.HasMore = len(p.Data) > n; p.HasMore {
		p.Data = p.Data[len(p.Data)-n:]
	}
	return p
}

// money reads amount and currency; the refusal is nil if they are good.
func money(x *sim.Exchange) (amount int64, currency string, bad *sim.Refusal) {
	form := x.Form()
	currency = strings.ToLower(form.Get("currency"))
	amount, err := strconv.ParseInt(form.Get("amount"), 10, 64)
	switch {
	case form.Get("amount") == "":
		bad = &sim.Refusal{Kind: sim.BadRequest, Field: "amount", Detail: "Missing required param: amount."}
	case err != nil || amount < 1 || amount > maxAmount:
		bad = &sim.Refusal{Kind: sim.BadRequest, Field: "amount", Detail: "Invalid integer: amount is from 1 to 99999999"}
	case currency == "":
		bad = &sim.Refusal{Kind: sim.BadRequest, Field: "currency", Detail: "Missing required param: currency."}
	case len(currency) != 3:
		bad = &sim.Refusal{Kind: sim.BadRequest, Field: "currency", Detail: "Invalid currency: " + currency}
	}
	return amount, currency, bad
}

// metadata collects metadata[name]=value over what was there.
func metadata(form url.Values, before map[string]string) map[string]string {
	m := map[string]string{}
	maps.Copy(m, before)
	for name, v := range form {
		if key, ok := strings.CutPrefix(name, "metadata["); ok && strings.HasSuffix(key, "]") {
			m[strings.TrimSuffix(key, "]")] = v[0]
		}
	}
	return m
}

// declined is the answer for a card that is not taken.
func declined(x *sim.Exchange, charge string) sim.Answer {
	return failed(x, 402, fault{Type: "card_error", Code: "card_declined", DeclineCode: "generic_decline",
		Message: "Your card was declined.", Charge: charge})
}
