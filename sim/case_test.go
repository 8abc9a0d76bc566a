package sim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

func TestACaseIsFoundInPathHeaderHostAndKey(t *testing.T) {
	for name, send := range map[string]func(a *sim.API) int{
		"path":   func(a *sim.API) int { return ask(a, "GET", "/t/alpha/v1/bibs/1", "").Code },
		"header": func(a *sim.API) int { return ask(a, "GET", "/v1/bibs/1", "", "Sim-Case: alpha").Code },
		"host":   func(a *sim.API) int { return askHost(a, "alpha.localhost:8080", "/v1/bibs/1") },
		"pack's host": func(a *sim.API) int {
			return askHost(a, "alpha.api.example.org", "/v1/bibs/1")
		},
		"key": func(a *sim.API) int { return ask(a, "GET", "/v1/bibs/1", "", "X-Api-Key: sk_test_case_alpha").Code },
		"bearer": func(a *sim.API) int {
			return ask(a, "GET", "/v1/bibs/1", "", "Authorization: Bearer x_case_alpha").Code
		},
		"basic": func(a *sim.API) int { // the user name is sk_case_alpha
			return ask(a, "GET", "/v1/bibs/1", "", "Authorization: Basic c2tfY2FzZV9hbHBoYTo=").Code
		},
	} {
		p := sim.Generic()
		p.Hosts = []string{"api.example.org"}
		a := api(t, sim.World{Packs: []sim.Pack{p}})
		if got := send(a); got != 200 {
			t.Errorf("%s: got %d", name, got)
		}
		if got := a.Case("alpha").Journal().Requests; got != 1 {
			t.Errorf("%s: the case saw %d requests", name, got)
		}
		if got := a.Journal().Requests; got != 0 {
			t.Errorf("%s: the case without a name saw %d requests", name, got)
		}
	}
}

func askHost(a *sim.API, host, path string) int {
	r := httptest.NewRequest("GET", path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Code
}

func TestCasesShareNothing(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /health: 503"})
	ask(a, "POST", "/t/one/v1/charges", coffee, "Idempotency-Key: k")
	ask(a, "POST", "/t/one/_sim/steps", "GET /health: 500")
	var got []int
	for _, path := range []string{"/t/one/health", "/t/two/health", "/t/two/health", "/t/one/health"} {
		got = append(got, ask(a, "GET", path, "").Code)
	}
	if diff := cmp.Diff(got, []int{500, 503, 200, 200}); diff != "" {
		t.Error(diff)
	}
	ask(a, "POST", "/t/two/v1/charges", coffee, "Idempotency-Key: k")
	if one, two := a.Case("one").Effects(), a.Case("two").Effects(); one.Charges != 1 || two.Charges != 1 {
		t.Errorf("got %+v and %+v", one, two)
	}
}

func TestADeletedCaseBeginsAnew(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /health: 503"})
	ask(a, "GET", "/t/one/health", "")
	if w := ask(a, "DELETE", "/t/one", ""); w.Code != 204 {
		t.Fatalf("got %d", w.Code)
	}
	if w := ask(a, "DELETE", "/t/one", ""); w.Code != 404 {
		t.Errorf("a second time: got %d", w.Code)
	}
	if w := ask(a, "GET", "/t/one/health", ""); w.Code != 503 {
		t.Errorf("got %d", w.Code)
	}
}

func TestOfTooManyCasesTheIdleOneIsForgottenAndCounted(t *testing.T) {
	a := api(t, sim.World{Cases: 2})
	for _, id := range []string{"a", "b", "a", "c"} {
		ask(a, "POST", "/t/"+id+"/v1/charges", coffee)
	}
	if kept, forgotten := a.Cases(); kept != 3 || forgotten != 1 {
		t.Errorf("got %d kept with the one without a name, %d forgotten", kept, forgotten)
	}
	if got := a.Case("a").Effects().Charges; got != 2 {
		t.Errorf("the case in use has %d charges", got)
	}
}

func TestAnIDThatIsNoneIsRefused(t *testing.T) {
	for _, id := range []string{"a b", "a%2Fb", fmt.Sprintf("%065d", 1)} {
		if w := ask(api(t, sim.World{}), "GET", "/v1/bibs/1", "", "Sim-Case: "+id); w.Code != 400 {
			t.Errorf("%q: got %d", id, w.Code)
		}
	}
}

func TestThousandsOfCasesTakeLittleMemory(t *testing.T) {
	const cases = 5000
	a := api(t, sim.World{Cases: cases})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range cases {
		a.Case(fmt.Sprint("case-", i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := (after.HeapAlloc - before.HeapAlloc) / cases; per > 4<<10 {
		t.Errorf("a case takes %d bytes before its first request", per)
	}
	runtime.KeepAlive(a)
}

func TestAPackIsFoundByItsNameItsHostAndWhatItCanDo(t *testing.T) {
	other := sim.Pack{Name: "other", Hosts: []string{"api.other.example"}, Operations: []sim.Operation{
		{Route: "GET /v1/bibs/{id}", Do: func(x *sim.Exchange) sim.Answer { return sim.Text(299, "text/plain", x.Path) }},
		{Route: "GET /only", Do: func(x *sim.Exchange) sim.Answer { return sim.Text(299, "text/plain", x.Path) }},
	}}
	a := api(t, sim.World{Packs: []sim.Pack{sim.Generic(), other}})
	got := []int{
		ask(a, "GET", "/v1/bibs/1", "").Code,
		ask(a, "GET", "/other/v1/bibs/1", "").Code,
		askHost(a, "api.other.example", "/v1/bibs/1"),
		ask(a, "GET", "/only", "").Code,
		ask(a, "GET", "/t/x/other/v1/bibs/1", "").Code,
	}
	if diff := cmp.Diff(got, []int{200, 299, 299, 299, 299}); diff != "" {
		t.Error(diff)
	}
}

// caseWork is what one of a thousand tests does: a fault of its own, a charge
// sent twice with one key, a message to its own receiver, its own time.
func caseWork(a *sim.API, id string) error {
	c, err := a.Begin(id, sim.World{
		Clock: sim.Clock{Stepped: true}, Steps: "POST /v1/charges: 503, commit-then-504",
		Courier: answering(204), Webhooks: []sim.Webhook{{URL: "http://" + id + ".example/"}},
	})
	if err != nil {
		return err
	}
	var got []int
	for range 4 {
		got = append(got, ask(a, "POST", "/t/"+id+"/v1/charges", coffee, "Idempotency-Key: the same in all cases").Code)
	}
	c.Advance(time.Minute)
	j, e := c.Journal(), c.Effects()
	if !slices.Equal(got, []int{503, 504, 201, 201}) || e.Charges != 1 || j.Requests != 4 ||
		len(j.Webhooks) != 1 || j.Webhooks[0].URL != "http://"+id+".example/" {
		return fmt.Errorf("case %s: got %v, %d charges, %d messages", id, got, e.Charges, len(j.Webhooks))
	}
	return nil
}

// answering is a way to all receivers, which answer with a status.
type answering int

// RoundTrip implements http.RoundTripper.
func (s answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(s), Body: http.NoBody}, nil
}

func TestAThousandCasesAtTheSameTimeShareNothing(t *testing.T) {
	a := api(t, sim.World{})
	defer a.Close()
	failed := make(chan error, 1000)
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			if err := caseWork(a, fmt.Sprint("c", i)); err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if kept, forgotten := a.Cases(); kept != 1001 || forgotten != 0 {
		t.Errorf("%d cases are kept, %d forgotten", kept, forgotten)
	}
	if got := a.Effects().Charges; got != 0 {
		t.Errorf("the case without a name has %d charges", got)
	}
}

// BenchmarkACase tells how much memory a case holds that nobody has asked
// anything, and one that answered ten requests.
func BenchmarkACase(b *testing.B) {
	for name, requests := range map[string]int{"idle": 0, "used": 10} {
		b.Run(name, func(b *testing.B) {
			const cases = 2000
			a := api(b, sim.World{Cases: cases})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range cases {
				id := fmt.Sprint("case-", i)
				a.Case(id)
				for n := range requests {
					ask(a, "GET", fmt.Sprintf("/t/%s/v1/bibs/%d", id, n+1), "")
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(a)
			for b.Loop() { // what is measured is not time
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/cases, "B/case")
		})
	}
}
