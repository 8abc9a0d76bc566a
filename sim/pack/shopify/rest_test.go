package shopify_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/shopify"
)

// open is a shop whose client has a token and asks for paths below the version.
func open(t *testing.T, w sim.World) *packtest.Client {
	t.Helper()
	c := packtest.Serve(t, shopify.Pack(), w)
	c.Header.Set("X-Shopify-Access-Token", "shpat_1")
	return c
}

const base = "/admin/api/2026-10/"

type product struct {
	ID       int
	Title    string
	Vendor   string
	Variants []struct {
		ID    int
		Price string
	}
}

func create(c *packtest.Client, title string) product {
	c.T.Helper()
	return packtest.Read[struct{ Product product }](c.Send("POST", base+"products.json", `{"product":{"title":"`+title+`","variants":[{"price":"2.50"}]}}`)).Product
}

func get(c *packtest.Client, id int) product {
	c.T.Helper()
	return packtest.Read[struct{ Product product }](c.Get(base + "products/" + strconv.Itoa(id) + ".json")).Product
}

func TestAProductIsFoundAndChangedInPart(t *testing.T) {
	c := open(t, sim.World{})
	p := create(c, "Gauge")
	c.Send("PUT", base+"products/"+strconv.Itoa(p.ID)+".json", `{"product":{"vendor":"New"}}`)
	p.Vendor = "New"
	if diff := cmp.Diff(get(c, p.ID), p); diff != "" || p.Title != "Gauge" || p.Variants[0].Price != "2.50" {
		t.Errorf("%s\n%+v", diff, p)
	}
}

func TestADeletedProductIsGoneAndNotCounted(t *testing.T) {
	c := open(t, sim.World{})
	count := func() int { return packtest.Read[struct{ Count int }](c.Get(base + "products/count.json")).Count }
	p := create(c, "Gauge")
	got := []int{count(), c.Send("DELETE", base+"products/"+strconv.Itoa(p.ID)+".json", "").Status,
		c.Get(base + "products/" + strconv.Itoa(p.ID) + ".json").Status, count()}
	if diff := cmp.Diff(got, []int{61, 200, 404, 60}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotValidIsToldByField(t *testing.T) {
	c := open(t, sim.World{})
	for _, tt := range []struct{ path, body, want string }{
		{"products.json", `{"product":{"title":" "}}`, `422 {"errors":{"title":["can't be blank"]}}`},
		{"products.json", `{"product":{"title":"x","variants":[{"price":"dear"}]}}`, `422 {"errors":{"price":["is not a number"]}}`},
		{"orders.json", `{"order":{}}`, `422 {"errors":{"line_items":["must have at least one line item"]}}`},
		{"products.json", `nothing`, `400 {"errors":{"product":["Required parameter missing or invalid"]}}`},
	} {
		a := c.Send("POST", base+tt.path, tt.body)
		if got := strconv.Itoa(a.Status) + " " + strings.TrimSpace(a.Body); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.body, got, tt.want)
		}
	}
}

// rel is where Link leads, relative to the server; "" if there is none.
func rel(c *packtest.Client, a packtest.Answer, name string) string {
	for one := range strings.SplitSeq(a.Header.Get("Link"), ", ") {
		if u, ok := strings.CutSuffix(one, `>; rel="`+name+`"`); ok {
			return strings.TrimPrefix(u, "<"+c.URL)
		}
	}
	return ""
}

func TestAListIsWalkedByPageInfoForthAndBack(t *testing.T) {
	c := open(t, sim.World{})
	var sizes []int
	var a packtest.Answer
	for path := base + "products.json?limit=25&vendor=Heed"; path != ""; path = rel(c, a, "next") {
		a = c.Get(path)
		sizes = append(sizes, len(packtest.Read[struct{ Products []product }](a).Products))
	}
	a = c.Get(rel(c, a, "previous"))
	sizes = append(sizes, len(packtest.Read[struct{ Products []product }](a).Products))
	if diff := cmp.Diff(sizes, []int{25, 25, 10, 25}); diff != "" {
		t.Error(diff)
	}
}

func TestPageInfoKeepsTheFiltersAndTakesNoOthers(t *testing.T) {
	c := open(t, sim.World{})
	c.Send("POST", base+"products.json", `{"product":{"title":"Other","vendor":"Else"}}`)
	next := rel(c, c.Get(base+"products.json?limit=59&vendor=Heed"), "next")
	if n := len(packtest.Read[struct{ Products []product }](c.Get(next)).Products); n != 1 {
		t.Errorf("got %d of the vendor, want the one that is left", n)
	}
	if a := c.Get(next + "&vendor=Else"); a.Status != 400 || !strings.Contains(a.Body, "vendor") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	if a := c.Get(base + "products.json?page_info=made-up"); a.Status != 400 {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestAListWorksUnderTheNameOfThePack(t *testing.T) {
	c := open(t, sim.World{})
	next := rel(c, c.Get("/shopify"+base+"products.json?limit=50"), "next")
	if !strings.HasPrefix(next, "/shopify"+base) {
		t.Fatalf("got %q", next)
	}
	if n := len(packtest.Read[struct{ Products []product }](c.Get(next)).Products); n != 10 {
		t.Errorf("got %d", n)
	}
}

func TestABucketOfFortyLeaksTwoASecond(t *testing.T) {
	c := open(t, sim.World{})
	got := []string{c.Get(base + "shop.json").Header.Get("X-Shopify-Shop-Api-Call-Limit")}
	c.Statuses(39, base+"shop.json")
	full := c.Get(base + "shop.json")
	got = append(got, strconv.Itoa(full.Status), full.Header.Get("Retry-After"), full.Header.Get("X-Shopify-Shop-Api-Call-Limit"))
	c.Advance(2 * time.Second)
	for _, s := range c.Statuses(5, base+"shop.json") {
		got = append(got, strconv.Itoa(s))
	}
	if diff := cmp.Diff(got, []string{"1/40", "429", "2.0", "40/40", "200", "200", "200", "200", "429"}); diff != "" {
		t.Error(diff)
	}
}

func TestAStepMayAskForAWaitOfHalfASecond(t *testing.T) {
	c := open(t, sim.World{Steps: "shop.get: 429(after=500ms)"})
	if a := c.Get(base + "shop.json"); a.Header.Get("Retry-After") != "0.5" {
		t.Errorf("got %q", a.Header.Get("Retry-After"))
	}
}

func TestAnOrderAddsItsLinesUp(t *testing.T) {
	c := open(t, sim.World{})
	p := create(c, "Gauge")
	a := c.Send("POST", base+"orders.json", `{"order":{"email":"a@example.org","line_items":[{"variant_id":`+strconv.Itoa(p.Variants[0].ID)+
		`,"quantity":3},{"title":"Work","price":"0.29","quantity":1}]}}`)
	o := packtest.Read[struct {
		Order struct {
			Total     string `json:"total_price"`
			Financial string `json:"financial_status"`
		}
	}](a).Order
	if a.Status != 201 || o.Total != "7.79" || o.Financial != "pending" {
		t.Errorf("got %d %+v", a.Status, o)
	}
	if got, want := c.Case.Effects().Kinds["order"], (sim.Effect{Count: 1, Amount: 779}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAnOrderIsCancelledOnceAndNotAfterItWasClosed(t *testing.T) {
	c := open(t, sim.World{})
	order := func() string {
		a := c.Send("POST", base+"orders.json", `{"order":{"line_items":[{"title":"x","price":"1","quantity":1}]}}`)
		return base + "orders/" + strconv.Itoa(packtest.Read[struct{ Order struct{ ID int } }](a).Order.ID)
	}
	one, two := order(), order()
	got := []int{c.Send("POST", one+"/cancel.json", "").Status, c.Send("POST", one+"/cancel.json", "").Status,
		c.Send("POST", two+"/close.json", "").Status, c.Send("POST", two+"/cancel.json", "").Status}
	if diff := cmp.Diff(got, []int{200, 422, 200, 422}); diff != "" {
		t.Error(diff)
	}
	var sizes []int
	for _, status := range []string{"", "?status=cancelled", "?status=any"} {
		sizes = append(sizes, len(packtest.Read[struct{ Orders []any }](c.Get(base+"orders.json"+status)).Orders))
	}
	if diff := cmp.Diff(sizes, []int{0, 1, 2}); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutATokenNobodyGetsIn(t *testing.T) {
	c := open(t, sim.World{Steps: "products.count: expire"})
	got := []int{c.Get(base+"shop.json", "X-Shopify-Access-Token: no").Status, c.Get(base + "products/count.json").Status, c.Get(base + "shop.json").Status}
	if diff := cmp.Diff(got, []int{401, 401, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestAProductThatIsMadeTwiceIsARepeatedEffect(t *testing.T) {
	c := open(t, sim.World{Steps: "products.create: commit-then-504"})
	for range 2 {
		c.Send("POST", base+"products.json", `{"product":{"title":"Gauge"}}`)
	}
	if got, want := c.Case.Effects().Kinds["product"], (sim.Effect{Count: 2, Repeated: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
