package shopify

import (
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/graph"
)

// mutations are what can be done.
func (s *shop) mutations() graph.Object {
	return graph.Object{
		"productCreate":         graph.Resolver(s.createProduct),
		"productUpdate":         graph.Resolver(s.updateProduct),
		"productDelete":         graph.Resolver(s.deleteProduct),
		"bulkOperationRunQuery": graph.Resolver(s.runBulk),
		"bulkOperationCancel":   graph.Resolver(s.cancelBulk),
	}
}

// userErrors are those of a mutation that is not valid; none is an empty list.
func userErrors(field, why string) []graph.Object {
	if field == "" {
		return []graph.Object{}
	}
	return []graph.Object{{"field": []string{field}, "message": why, "code": nil}}
}

// input is the argument of a mutation, by its name of today or of before.
func input(f graph.Field) map[string]any {
	if in := f.Object("product"); in != nil {
		return in
	}
	return f.Object("input")
}

// apply sets what in names.
func (p *product) apply(in map[string]any) {
	for name, to := range map[string]*string{"title": &p.Title, "vendor": &p.Vendor, "productType": &p.Type} {
		if v, ok := in[name].(string); ok {
			*to = v
		}
	}
	if v, ok := in["status"].(string); ok {
		p.Status = strings.ToLower(v)
	}
}

func (s *shop) createProduct(f graph.Field) any {
	var p product
	p.apply(input(f))
	all := products(s.x)
	if field, _ := p.fault(); field != "" {
		return graph.Object{"product": nil, "userErrors": userErrors(field, "Title can't be blank")}
	}
	return graph.Object{"product": newProduct(s.x, all, p).object(), "userErrors": userErrors("", "")}
}

func (s *shop) updateProduct(f graph.Field) any {
	in := input(f)
	id, _ := in["id"].(string)
	all := products(s.x)
	p, ok := all.Get(strings.TrimPrefix(id, productMark))
	if !ok {
		return graph.Object{"product": nil, "userErrors": userErrors("id", "Product does not exist")}
	}
	p.apply(in)
	if field, _ := p.fault(); field != "" {
		return graph.Object{"product": nil, "userErrors": userErrors(field, "Title can't be blank")}
	}
	p.Updated = s.x.Now().UTC().Format(time.RFC3339)
	all.Put(strconv.Itoa(p.ID), p)
	s.x.Effect("product update", "", 0)
	emit(s.x, "products/update", p)
	return graph.Object{"product": p.object(), "userErrors": userErrors("", "")}
}

func (s *shop) deleteProduct(f graph.Field) any {
	id, _ := input(f)["id"].(string)
	if !drop(s.x, strings.TrimPrefix(id, productMark)) {
		return graph.Object{"deletedProductId": nil, "userErrors": userErrors("id", "Product does not exist")}
	}
	return graph.Object{"deletedProductId": id, "userErrors": userErrors("", "")}
}

// bulk is a query that is run by itself, without cost.
type bulk struct {
	id      string
	status  string
	query   string
	created string
	ended   string
	objects int
	lines   []byte
}

// The pace of a bulk operation.
const (
	bulkBegin = time.Second
	bulkTime  = 2 * time.Second
)

// newestBulk is nil if there was none.
func newestBulk(x *sim.Exchange) *bulk {
	for _, b := range sim.Rows[*bulk](x, "bulk").Newest() {
		return b
	}
	return nil
}

func (b *bulk) object(x *sim.Exchange) any {
	if b == nil {
		return nil
	}
	o := graph.Object{"id": b.id, "status": b.status, "query": b.query, "createdAt": b.created, "errorCode": nil,
		"completedAt": nil, "objectCount": strconv.Itoa(b.objects), "fileSize": nil, "url": nil}
	if b.ended != "" {
		o["completedAt"] = b.ended
	}
	if b.status == "COMPLETED" && b.objects > 0 {
		o["url"], o["fileSize"] = x.URL("/bulk/"+strings.TrimPrefix(b.id, bulkMark)+".jsonl"), strconv.Itoa(len(b.lines))
	}
	return o
}

func (b *bulk) atWork() bool {
	return b != nil && (b.status == "CREATED" || b.status == "RUNNING" || b.status == "CANCELING")
}
