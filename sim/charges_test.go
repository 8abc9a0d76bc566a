package sim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

const coffee = `{"amount":350,"currency":"eur"}`

func TestAKeyMakesOneChargeHoweverOftenItIsSent(t *testing.T) {
	a := api(t, sim.World{})
	var wg sync.WaitGroup
	answers := make([]string, 64)
	for i := range answers {
		wg.Go(func() { answers[i] = ask(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k1").Body.String() })
	}
	wg.Wait()
	for _, got := range answers {
		if got != answers[0] {
			t.Errorf("got %s, want %s", got, answers[0])
		}
	}
	if diff := cmp.Diff(sim.Effects{
		Charges: 1, Amount: 350, Keys: 1, Replayed: 63,
		Kinds: map[string]sim.Effect{"charge": {Count: 1, Amount: 350}},
	}, a.Effects()); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutAKeyEveryRequestCharges(t *testing.T) {
	a := api(t, sim.World{})
	ask(a, "POST", "/v1/charges", coffee)
	ask(a, "POST", "/v1/charges", coffee)
	if got := a.Effects().Charges; got != 2 {
		t.Errorf("got %d", got)
	}
}

func TestAKeyWithAnotherBodyIsRefused(t *testing.T) {
	a := api(t, sim.World{})
	ask(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k1")
	w := ask(a, "POST", "/v1/charges", `{"amount":9,"currency":"eur"}`, "Idempotency-Key: k1")
	if w.Code != 422 || a.Effects().Charges != 1 {
		t.Errorf("got %d, %+v", w.Code, a.Effects())
	}
}

func TestKeysOfTwoCallersAreTwoKeys(t *testing.T) {
	a := api(t, sim.World{})
	ask(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k1", "X-Api-Key: a")
	ask(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k1", "X-Api-Key: b")
	if got := a.Effects().Charges; got != 2 {
		t.Errorf("got %d", got)
	}
}

func TestACommitThatLosesItsAnswerStillCharges(t *testing.T) {
	a := api(t, sim.World{Steps: "POST /v1/charges: commit-then-reset"})
	srv := httptest.NewServer(a)
	defer srv.Close()
	post := func() (*http.Response, error) {
		r, _ := http.NewRequest("POST", srv.URL+"/v1/charges", strings.NewReader(coffee))
		r.GetBody = nil // or net/http may send it again by itself
		r.Header.Set("Idempotency-Key", "k1")
		return http.DefaultClient.Do(r)
	}
	if _, err := post(); err == nil {
		t.Fatal("no error")
	}
	if got := a.Effects().Charges; got != 1 {
		t.Fatalf("got %d charges", got)
	}
	resp, err := post()
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.Header.Get("Idempotent-Replayed") != "true" || a.Effects().Charges != 1 {
		t.Errorf("got %v, %+v", resp.Header, a.Effects())
	}
}

func TestAChargeIsFoundByItsID(t *testing.T) {
	a := api(t, sim.World{})
	at := ask(a, "POST", "/v1/charges", coffee).Header().Get("Location")
	if w := ask(a, "GET", at, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"amount":350`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
