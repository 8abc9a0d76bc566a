package pack_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// job is a resource with a life: it is pending until two seconds have passed.
type job struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// printing is a whole pack.
func printing() sim.Pack {
	return sim.Pack{
		Name:   "printing",
		Limits: []rate.Limit{{Name: "requests", Capacity: 10, Refill: 5}},
		Dialect: sim.Dialect{Refuse: func(_ *sim.Exchange, r sim.Refusal) sim.Answer {
			return sim.Text(r.StatusOr(r.Kind.DefaultStatus()), "text/plain", "E: "+r.Detail+" "+strings.Join(r.Operations, ", "))
		}},
		Operations: []sim.Operation{
			{Name: "jobs.print", Route: "POST /jobs", Keyed: true, Do: func(x *sim.Exchange) sim.Answer {
				jobs := sim.Rows[job](x, "jobs")
				j := job{ID: x.ID("job_"), State: "pending"}
				jobs.Put(j.ID, j)
				x.Effect("page", "", 1)
				x.After(2*time.Second, func(time.Time) { jobs.Put(j.ID, job{j.ID, "done"}) })
				return sim.JSON(202, j).With("Location", "/jobs/"+j.ID)
			}},
			{Name: "jobs.get", Route: "GET /jobs/{id}", Do: func(x *sim.Exchange) sim.Answer {
				j, ok := sim.Rows[job](x, "jobs").Get(x.Value("id"))
				if !ok {
					return x.Refuse(sim.Refusal{Kind: sim.NotFound, Detail: "no such job"})
				}
				return sim.JSON(200, j)
			}},
		},
	}
}

func Example() {
	api, err := sim.New(sim.World{
		Packs: []sim.Pack{printing()},
		Clock: sim.Clock{Stepped: true},
		Steps: "jobs.print: commit-then-504, ok",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	send := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Idempotency-Key", "k1")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w
	}
	fmt.Println(send("POST", "/jobs").Code)
	again := send("POST", "/jobs")
	fmt.Println(again.Code, again.Header().Get("Idempotent-Replayed"), api.Effects().Kinds["page"].Count)
	api.Case("").Advance(2 * time.Second)
	fmt.Println(strings.Contains(send("GET", again.Header().Get("Location")).Body.String(), "done"))
	fmt.Println(send("GET", "/paper").Body)
	// Output:
	// 504
	// 202 true 1
	// true
	// E: there is no such operation POST /jobs, GET /jobs/{id}
}
