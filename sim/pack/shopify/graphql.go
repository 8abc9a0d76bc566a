package shopify

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/graph"
)

// ailing is one of the errors of an answer.
type ailing struct {
	Message    string         `json:"message"`
	Path       []string       `json:"path,omitempty"`
	Locations  []graph.Place  `json:"locations,omitempty"`
	Extensions map[string]any `json:"extensions,omitempty"`
}

// status is what is left of the points.
type status struct {
	Most    float64 `json:"maximumAvailable"`
	Left    float64 `json:"currentlyAvailable"`
	Restore float64 `json:"restoreRate"`
}

// cost is what a query asked for, and what it used.
type cost struct {
	Requested int    `json:"requestedQueryCost"`
	Actual    *int   `json:"actualQueryCost"`
	Status    status `json:"throttleStatus"`
}

// told is an answer without costs.
func told(data map[string]any, faults ...ailing) sim.Answer { return answered(data, faults, nil) }

func answered(data map[string]any, faults []ailing, c *cost) sim.Answer {
	out := map[string]any{}
	if data != nil {
		out["data"] = data
	}
	if len(faults) > 0 {
		out["errors"] = faults
	}
	if c != nil {
		out["extensions"] = map[string]any{"cost": c}
	}
	return sim.JSON(200, out)
}

func documentOf(x *sim.Exchange) (graph.Document, error) {
	var asked struct {
		Query     string         `json:"query"`
		Name      string         `json:"operationName"`
		Variables map[string]any `json:"variables"`
	}
	if x.Decode(&asked) != nil || asked.Query == "" {
		return graph.Document{}, errors.New("the body has no query")
	}
	return graph.Parse(asked.Query, asked.Name, asked.Variables)
}

// maxCost is of a single query.
const maxCost = 1000

// priceOf is what fields cost at most: 1 for an object, 2 for a connection
// and so much for each of its objects, 10 for a mutation.
func priceOf(d graph.Document) int {
	if d.Kind == "mutation" {
		return 10 * len(d.Fields)
	}
	return priceOfAll(d.Fields)
}

func priceOfAll(fields []graph.Field) int {
	sum := 0
	for _, f := range fields {
		n := max(f.Int("first", 0), f.Int("last", 0))
		switch {
		case len(f.Fields) == 0 || f.Name == "pageInfo":
		case n > 0:
			sum += 2 + min(n, 100_000)*(1+priceOfAll(inside(f.Fields)))
		default:
			sum += 1 + priceOfAll(f.Fields)
		}
		sum = min(sum, 100_000_000)
	}
	return sum
}

// inside are the fields of the objects of a connection.
func inside(fields []graph.Field) []graph.Field {
	var all []graph.Field
	for _, f := range fields {
		switch f.Name {
		case "nodes":
			all = append(all, f.Fields...)
		case "edges":
			for _, e := range f.Fields {
				if e.Name == "node" {
					all = append(all, e.Fields...)
				}
			}
		}
	}
	return all
}

// requested is what a query must find in the bucket. What is refused anyway
// costs nothing.
func requested(x *sim.Exchange) float64 {
	d, err := documentOf(x)
	if n := priceOf(d); err == nil && n <= maxCost {
		return float64(n)
	}
	return 0
}

// throttled is 200 with what is left, which follows from the wait.
func throttled(x *sim.Exchange, r sim.Refusal) sim.Answer {
	c := cost{Requested: int(requested(x)), Status: status{Most: 1000, Restore: 50}}
	if r.Limit != nil {
		c.Status.Most, c.Status.Restore = r.Limit.Capacity, r.Limit.Refill
	} else { // a step asks for this wait
		c.Requested = max(c.Requested, int(math.Ceil(r.Wait.Seconds()*c.Status.Restore)))
	}
	c.Status.Left = max(math.Floor(float64(c.Requested)-r.Wait.Seconds()*c.Status.Restore), 0)
	return answered(nil, []ailing{{Message: "Throttled", Extensions: map[string]any{
		"code": "THROTTLED", "documentation": "https://shopify.dev/api/usage/rate-limits"}}}, &c)
}

func query(x *sim.Exchange) sim.Answer {
	d, err := documentOf(x)
	if err != nil {
		return told(nil, ailing{Message: err.Error()})
	}
	price := priceOf(d)
	if price > maxCost {
		return told(nil, ailing{
			Message:    "Query cost is " + strconv.Itoa(price) + ", which exceeds the single query max cost limit (1000).",
			Extensions: map[string]any{"code": "MAX_COST_EXCEEDED", "cost": price, "maxCost": maxCost},
		})
	}
	s := shop{x: x}
	root, kind := s.queries(), "QueryRoot"
	if d.Kind == "mutation" {
		root, kind = s.mutations(), "Mutation"
	}
	data, err := graph.Pick(kind, root, d.Fields)
	used := price
	if m, ok := errors.AsType[*graph.Missing](err); ok {
		data, used = nil, 0
		s.faults = []ailing{{Message: m.Error(), Path: m.Path, Locations: []graph.Place{m.At},
			Extensions: map[string]any{"code": "undefinedField", "typeName": m.Type, "fieldName": m.Field}}}
	} else if d.Kind != "mutation" {
		used = min(usedBy(d.Fields, data), price)
	}
	c := cost{Requested: price, Actual: &used}
	x.Spend(points, float64(used-price)) // what it does not use is given back at once
	if t, ok := x.Left(points); ok {
		c.Status = status{t.Capacity, math.Floor(t.Remaining), t.Limit.Refill}
	}
	return answered(data, s.faults, &c)
}

// usedBy is what the data cost that was really given.
func usedBy(fields []graph.Field, data map[string]any) int {
	sum := 0
	for _, f := range fields {
		one, ok := data[f.Alias].(map[string]any)
		if !ok || f.Name == "pageInfo" {
			continue
		}
		if n := max(f.Int("first", 0), f.Int("last", 0)); n > 0 {
			sum += 2 + length(f.Fields, one)*(1+priceOfAll(inside(f.Fields)))
			continue
		}
		sum += 1 + usedBy(f.Fields, one)
	}
	return sum
}

// length is how many objects a connection gave.
func length(fields []graph.Field, data map[string]any) int {
	n := 0
	for _, f := range fields {
		if list, ok := data[f.Alias].([]any); ok {
			n = max(n, len(list))
		}
	}
	return n
}

// shop is what one document is asked of.
type shop struct {
	x      *sim.Exchange
	faults []ailing
}

// queries are what can be read. Customers may not be.
func (s *shop) queries() graph.Object {
	return graph.Object{
		"shop":     graph.Object{"name": "Gauges and Lamps", "currencyCode": "EUR", "myshopifyDomain": "heed.myshopify.com"},
		"products": graph.Resolver(s.products),
		"orders":   graph.Resolver(s.orders),
		"product":  graph.Resolver(s.product),
		"order":    graph.Resolver(s.order),
		"bulkOperation": graph.Resolver(func(f graph.Field) any {
			b, _ := sim.Rows[*bulk](s.x, "bulk").Get(f.Text("id"))
			return b.object(s.x)
		}),
		"currentBulkOperation": graph.Resolver(func(graph.Field) any { return newestBulk(s.x).object(s.x) }),
		"customers": graph.Resolver(func(f graph.Field) any {
			s.faults = append(s.faults, ailing{Message: "Access denied for customers field. Required access: `read_customers` access scope.",
				Path: []string{f.Alias}, Extensions: map[string]any{"code": "ACCESS_DENIED"}})
			return nil
		}),
	}
}

func (s *shop) products(f graph.Field) any {
	var all []graph.Object
	var ids []string
	for _, p := range products(s.x).All() {
		all, ids = append(all, p.object()), append(ids, p.gid())
	}
	return graph.Connection(f, all, func(i int) string { return ids[i] })
}

func (s *shop) orders(f graph.Field) any {
	var all []graph.Object
	var ids []string
	for _, o := range orders(s.x).All() {
		all, ids = append(all, o.object()), append(ids, o.gid())
	}
	return graph.Connection(f, all, func(i int) string { return ids[i] })
}

func (s *shop) product(f graph.Field) any {
	p, ok := products(s.x).Get(strings.TrimPrefix(f.Text("id"), productMark))
	if !ok {
		return nil
	}
	return p.object()
}

func (s *shop) order(f graph.Field) any {
	o, ok := orders(s.x).Get(strings.TrimPrefix(f.Text("id"), orderMark))
	if !ok {
		return nil
	}
	return o.object()
}

// How global ids begin.
const (
	productMark = "gid://shopify/Product/"
	variantMark = "gid://shopify/ProductVariant/"
	orderMark   = "gid://shopify/Order/"
	bulkMark    = "gid://shopify/BulkOperation/"
)

func (p product) gid() string { return productMark + strconv.Itoa(p.ID) }

func (p product) object() graph.Object {
	return graph.Object{
		"id": p.gid(), "title": p.Title, "vendor": p.Vendor, "productType": p.Type, "status": strings.ToUpper(p.Status),
		"createdAt": p.Created, "updatedAt": p.Updated,
		"variants": graph.Resolver(func(f graph.Field) any {
			var all []graph.Object
			for _, v := range p.Variants {
				all = append(all, graph.Object{"id": variantMark + strconv.Itoa(v.ID), "title": v.Title, "price": v.Price, "sku": v.SKU})
			}
			return graph.Connection(f, all, func(i int) string { return strconv.Itoa(i) })
		}),
	}
}

func (o order) gid() string { return orderMark + strconv.Itoa(o.ID) }

func (o order) object() graph.Object {
	return graph.Object{"id": o.gid(), "name": o.Name, "email": o.Email, "createdAt": o.Created, "cancelledAt": o.Cancelled,
		"displayFinancialStatus": strings.ToUpper(o.Financial),
		"totalPriceSet":          graph.Object{"shopMoney": graph.Object{"amount": o.Total, "currencyCode": o.Currency}}}
}
