package shopify_test

import (
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/shopify"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestRESTAnswersLikeItsGoldenExchanges(t *testing.T) {
	for name, get := range map[string]func(c *packtest.Client) packtest.Answer{
		"a full bucket": func(c *packtest.Client) packtest.Answer {
			c.Statuses(40, base+"orders.json")
			return c.Get(base + "orders.json")
		},
		"orders, with a bucket that fills": func(c *packtest.Client) packtest.Answer { return c.Get(base + "orders.json") },
		"a product that is refused": func(c *packtest.Client) packtest.Answer {
			return c.Send("POST", base+"products.json", `{"product":{}}`)
		},
		"a token that is not accepted": func(c *packtest.Client) packtest.Answer {
			return c.Get(base+"orders.json", "X-Shopify-Access-Token: no")
		},
	} {
		want := packtest.Golden(t, shopify.Pack(), name)
		if short := packtest.Alike(get(open(t, sim.World{})), want); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}

// The other pack of the same shop has those of the other API.
func TestGraphQLAnswersLikeItsGoldenExchanges(t *testing.T) {
	query := func(text string) func(c *packtest.Client) packtest.Answer {
		return func(c *packtest.Client) packtest.Answer {
			a, _ := ask(c, text, nil)
			return a
		}
	}
	for name, get := range map[string]func(c *packtest.Client) packtest.Answer{
		"a bucket without enough points": func(c *packtest.Client) (a packtest.Answer) {
			for range 5 { // 902 points each, of which 722 are used
				a, _ = ask(c, `{ products(first: 60) { nodes { variants(first: 12) { nodes { id } } } } }`, nil)
			}
			return a
		},
		"a query that is too large":  query(`{ products(first: 250) { nodes { variants(first: 10) { nodes { id } } } } }`),
		"a business error":           query(`mutation { productCreate(product: {}) { product { id } userErrors { field message } } }`),
		"a mutation that worked":     query(`mutation { productCreate(product: {title: "x"}) { product { id } userErrors { field message } } }`),
		"a document that is refused": query(`{ shop { nme } }`),
	} {
		want := packtest.Golden(t, shopify.GraphQL(), name)
		if short := packtest.Alike(get(open(t, sim.World{})), want, "code"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}
