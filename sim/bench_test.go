package sim_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/heedproject/heed/sim"
)

// BenchmarkAStatefulGET is what one answered request costs the simulator
// beyond net/http, with its limit and the journal on.
func BenchmarkAStatefulGET(b *testing.B) {
	a := api(b, sim.World{Rate: 1e9, Burst: 1e9})
	ask(a, "PUT", "/v1/bibs/7", `{"title":"T","author":"A"}`)
	r := httptest.NewRequest(http.MethodGet, "/v1/bibs/7", http.NoBody)
	r.Header.Set("X-Api-Key", "k")
	b.ReportAllocs()
	for b.Loop() {
		a.ServeHTTP(nowhere{}, r)
	}
}

// nowhere is an answer that nobody reads.
type nowhere struct{}

var nowhereHeader = http.Header{}

func (nowhere) Header() http.Header         { return nowhereHeader }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
