package shopify_test

import (
	"sync"
	"testing"

	"github.com/heedproject/heed/sim"
)

func TestManyAtOnceShareThePointsExactly(t *testing.T) {
	c := open(t, sim.World{})
	var mu sync.Mutex
	worked := 0
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			for range 10 {
				_, a := ask(c, `mutation { productCreate(product: {title: "x"}) { product { id } } }`, nil)
				mu.Lock()
				if a.Data.ProductCreate.Product != nil {
					worked++
				} else if len(a.Errors) != 1 || a.Errors[0].Extensions.Code != "THROTTLED" {
					t.Errorf("got %+v", a)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// 1,000 points at 10 each, on a clock that stands still.
	if got := c.Case.Effects().Kinds["product"].Count; worked != 100 || got != 100 {
		t.Errorf("got %d answers and %d products, want 100", worked, got)
	}
}
