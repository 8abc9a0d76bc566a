package shopify

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed/sim"
)

type product struct {
	ID       int       `json:"id"`
	Title    string    `json:"title"`
	Vendor   string    `json:"vendor"`
	Type     string    `json:"product_type"`
	Status   string    `json:"status"`
	Tags     string    `json:"tags"`
	Created  string    `json:"created_at"`
	Updated  string    `json:"updated_at"`
	Variants []variant `json:"variants"`
}

// variant is what one can buy of a product. Money is a text.
type variant struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Price string `json:"price"`
	SKU   string `json:"sku"`
}

// atFirst is how many products there are when nobody made one.
const atFirst = 60

// serial gives the next number of all ids of the shop.
func serial(x *sim.Exchange) int {
	all := sim.Rows[int](x, "serial")
	n, ok := all.Get("")
	if !ok {
		n = 1000
	}
	all.Put("", n+1)
	return n + 1
}

func products(x *sim.Exchange) *sim.Table[product] {
	all := sim.Rows[product](x, "products")
	if sim.Rows[int](x, "serial").Len() == 0 {
		for n := range atFirst {
			addProduct(x, all, product{Title: fmt.Sprintf("Lamp %d", n+1), Vendor: "Heed", Type: "lamp",
				Variants: []variant{{Price: fmt.Sprintf("%d.50", n+10)}}})
		}
	}
	return all
}

func addProduct(x *sim.Exchange, all *sim.Table[product], p product) product {
	p.ID = serial(x)
	if p.Status == "" {
		p.Status = "active"
	}
	p.Created = x.Now().UTC().Format(time.RFC3339)
	p.Updated = p.Created
	if len(p.Variants) == 0 {
		p.Variants = []variant{{Price: "0.00"}}
	}
	for i := range p.Variants {
		v := &p.Variants[i]
		v.ID = serial(x)
		if v.Title == "" {
			v.Title = "Default Title"
		}
	}
	all.Put(strconv.Itoa(p.ID), p)
	return p
}

type oneProduct struct {
	Product product `json:"product"`
}

// price is compiled when first used, as every start of heed would pay for it.
var price = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d{1,8}(\.\d{1,2})?$`)
})

// fault is the field of p that is not valid, and why.
func (p product) fault() (field, why string) {
	if strings.TrimSpace(p.Title) == "" {
		return "title", "can't be blank"
	}
	for _, v := range p.Variants {
		if v.Price != "" && !price().MatchString(v.Price) {
			return "price", "is not a number"
		}
	}
	return "", ""
}

// invalid is 422 for one field.
func invalid(x *sim.Exchange, field, why string) sim.Answer {
	return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Status: http.StatusUnprocessableEntity, Field: field, Detail: why})
}

func createProduct(x *sim.Exchange) sim.Answer {
	var in oneProduct
	all := products(x)
	if x.Decode(&in) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "product", Detail: "Required parameter missing or invalid"})
	}
	if field, why := in.Product.fault(); field != "" {
		return invalid(x, field, why)
	}
	return sim.JSON(http.StatusCreated, oneProduct{newProduct(x, all, in.Product)})
}

// newProduct makes one that a caller wished for. The ledger knows it by title:
// there is no key that would keep a caller from making it twice.
func newProduct(x *sim.Exchange, all *sim.Table[product], p product) product {
	p = addProduct(x, all, p)
	x.Effect("product", p.Title, 0)
	emit(x, "products/create", p)
	return p
}

func missing(x *sim.Exchange) sim.Answer { return x.Refuse(sim.Refusal{Kind: sim.NotFound}) }

func getProduct(x *sim.Exchange) sim.Answer {
	p, ok := products(x).Get(x.Value("id"))
	if !ok {
		return missing(x)
	}
	return sim.JSON(200, oneProduct{p})
}

func updateProduct(x *sim.Exchange) sim.Answer {
	all := products(x)
	p, ok := all.Get(x.Value("id"))
	if !ok {
		return missing(x)
	}
	in := oneProduct{p} // what the body leaves out stays as it is
	in.Product.Variants = append([]variant(nil), p.Variants...)
	if x.Decode(&in) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "product", Detail: "Required parameter missing or invalid"})
	}
	if field, why := in.Product.fault(); field != "" {
		return invalid(x, field, why)
	}
	in.Product.ID, in.Product.Updated = p.ID, x.Now().UTC().Format(time.RFC3339)
	all.Put(x.Value("id"), in.Product)
	x.Effect("product update", "", 0)
	emit(x, "products/update", in.Product)
	return sim.JSON(200, in)
}

func deleteProduct(x *sim.Exchange) sim.Answer {
	if !drop(x, x.Value("id")) {
		return missing(x)
	}
	return sim.JSON(200, struct{}{})
}

// drop takes a product away and tells whether it was there.
func drop(x *sim.Exchange, id string) bool {
	if !products(x).Delete(id) {
		return false
	}
	n, _ := strconv.Atoi(id) // ids are numbers
	x.Effect("product delete", id, 0)
	emit(x, "products/delete", map[string]int{"id": n})
	return true
}

func countProducts(x *sim.Exchange) sim.Answer {
	return sim.JSON(200, struct {
		Count int `json:"count"`
	}{products(x).Len()})
}

func listProducts(x *sim.Exchange) sim.Answer {
	some, links, bad := page(x, products(x), func(q url.Values, p product) bool {
		vendor, status := q.Get("vendor"), q.Get("status")
		return (vendor == "" || vendor == p.Vendor) && (status == "" || status == p.Status)
	})
	if bad != nil {
		return x.Refuse(*bad)
	}
	an := sim.JSON(200, struct {
		Products []product `json:"products"`
	}{some})
	if links != "" {
		an.Set("Link", links)
	}
	return an
}
