package sim_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

func Example() {
	api, err := sim.New(sim.World{
		Steps: "POST /v1/charges: 503, commit-then-504, ok",
		Clock: sim.Clock{Stepped: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	pay := func() int { // in place of the client under test
		r := httptest.NewRequest("POST", "/t/mycase/v1/charges", strings.NewReader(`{"amount":350,"currency":"eur"}`))
		r.Header.Set("Idempotency-Key", "k1")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w.Code
	}
	c := api.Case("mycase")
	for range 3 {
		fmt.Println(pay())
		c.Advance(time.Second)
	}
	fmt.Println(c.Effects().Charges, "charge,", c.Journal().Requests, "requests")
	// Output:
	// 503
	// 504
	// 201
	// 1 charge, 3 requests
}
