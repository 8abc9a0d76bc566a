package stripe_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stripe"
)

const coffee = "amount=350&currency=eur&source=tok_visa"

// till is a Stripe on a clock that stands still.
func till(t *testing.T, w sim.World) *sim.API {
	t.Helper()
	w.Packs, w.Clock.Stepped = []sim.Pack{stripe.Pack()}, true
	a, err := sim.New(w)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func send(a *sim.API, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sk_test_1")
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// code is the status and what stands in error.code, or else error.type.
func code(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct{ Error struct{ Type, Code string } }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return strings.TrimSpace(strings.Join([]string{w.Result().Status[:3], body.Error.Type, body.Error.Code}, " "))
}

func read[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

type thing struct{ ID, Status string }

func TestAChargeIsFoundByItsIDAndInTheList(t *testing.T) {
	a := till(t, sim.World{})
	c := read[thing](t, send(a, "POST", "/v1/charges", coffee))
	if got := read[thing](t, send(a, "GET", "/v1/charges/"+c.ID, "")); got != (thing{c.ID, "succeeded"}) {
		t.Errorf("got %+v", got)
	}
	list := read[struct{ Data []thing }](t, send(a, "GET", "/v1/charges", ""))
	if diff := cmp.Diff(list.Data, []thing{{c.ID, "succeeded"}}); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsAreWrittenAsStripeDoes(t *testing.T) {
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "/v1/charges", "currency=eur&source=tok_visa", "400 invalid_request_error parameter_missing"},
		{"POST", "/v1/charges", "amount=350&currency=eur&source=tok_chargeDeclined", "402 card_error card_declined"},
		{"GET", "/v1/charges/ch_none", "", "404 invalid_request_error resource_missing"},
		{"GET", "/v1/nothing", "", "404 invalid_request_error"},
		{"POST", "/v1/payment_intents", "amount=1&currency=eur&confirm=true", "400 invalid_request_error parameter_missing"},
		{"POST", "/v1/refunds", "charge=ch_none", "404 invalid_request_error resource_missing"},
	} {
		if got := code(t, send(till(t, sim.World{}), tt.method, tt.path, tt.body)); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.method, tt.path, got, tt.want)
		}
	}
}

func TestWithoutAKeyNobodyGetsIn(t *testing.T) {
	a := till(t, sim.World{})
	for _, key := range []string{"Authorization: ", "Authorization: Bearer pk_test_1"} {
		if w := send(a, "POST", "/v1/charges", coffee, key); w.Code != 401 {
			t.Errorf("%q: got %d", key, w.Code)
		}
	}
}

func TestAThrottleHasAReasonAndNoRetryAfter(t *testing.T) {
	a := till(t, sim.World{})
	for range 25 {
		send(a, "GET", "/v1/charges", "")
	}
	w := send(a, "GET", "/v1/charges", "")
	if w.Code != 429 || w.Header().Get("Stripe-Rate-Limited-Reason") != "global-rate" || w.Header().Get("Retry-After") != "" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

func TestAKeyWithOtherParametersIsAnIdempotencyError(t *testing.T) {
	a := till(t, sim.World{})
	send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k")
	if got := code(t, send(a, "POST", "/v1/charges", coffee+"0", "Idempotency-Key: k")); got != "400 idempotency_error" {
		t.Errorf("got %q", got)
	}
}

func TestARefusedRequestDoesNotUseItsKeyUp(t *testing.T) {
	a := till(t, sim.World{})
	send(a, "POST", "/v1/charges", "amount=350", "Idempotency-Key: k")
	if w := send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k"); w.Code != 200 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestAFailureIsKeptForItsKeyAndSaysNotToRetry(t *testing.T) {
	a := till(t, sim.World{Steps: "charges.create: 500"})
	var got []string
	for range 2 {
		w := send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k")
		got = append(got, code(t, w)+" "+w.Header().Get("Idempotent-Replayed")+" "+w.Header().Get("Stripe-Should-Retry"))
	}
	if diff := cmp.Diff(got, []string{"500 api_error  false", "500 api_error true false"}); diff != "" {
		t.Error(diff)
	}
}

func TestAfterADayAKeyMakesASecondCharge(t *testing.T) {
	a := till(t, sim.World{})
	for _, d := range []time.Duration{24*time.Hour - 1, 1, 0} {
		send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k")
		a.Case("").Advance(d)
	}
	if got := a.Effects().Charges; got != 2 {
		t.Errorf("got %d charges, want one in the window and one after it", got)
	}
}

func TestALostAnswerIsFoundAgainByItsKey(t *testing.T) {
	a := till(t, sim.World{Steps: "charges.create: commit-then-504"})
	if w := send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k"); w.Code != 504 {
		t.Fatalf("got %d", w.Code)
	}
	w := send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k")
	if w.Code != 200 || w.Header().Get("Idempotent-Replayed") != "true" || a.Effects().Charges != 1 {
		t.Errorf("got %d, %+v", w.Code, a.Effects())
	}
}

func TestAPaymentFromABankAccountSucceedsLater(t *testing.T) {
	a := till(t, sim.World{})
	p := read[thing](t, send(a, "POST", "/v1/payment_intents", "amount=9&currency=usd&confirm=true&payment_method=pm_usBankAccount_processing"))
	late := send(a, "POST", "/v1/payment_intents/"+p.ID+"/cancel", "")
	if got := code(t, late); p.Status != "processing" || got != "400 invalid_request_error payment_intent_unexpected_state" {
		t.Errorf("got %s, then %s", p.Status, got)
	}
	a.Case("").Advance(2 * time.Second)
	if got := read[thing](t, send(a, "GET", "/v1/payment_intents/"+p.ID, "")); got.Status != "succeeded" || a.Effects().Charges != 1 {
		t.Errorf("got %+v, %+v", got, a.Effects())
	}
}

func TestMoneyIsGivenBackOnce(t *testing.T) {
	a := till(t, sim.World{})
	c := read[thing](t, send(a, "POST", "/v1/charges", coffee))
	send(a, "POST", "/v1/refunds", "charge="+c.ID)
	if got := code(t, send(a, "POST", "/v1/refunds", "charge="+c.ID)); got != "400 invalid_request_error charge_already_refunded" {
		t.Errorf("got %q", got)
	}
}

func TestAListGoesOnAfterTheLastOfAPage(t *testing.T) {
	a := till(t, sim.World{})
	for range 5 {
		send(a, "POST", "/v1/customers", "name=x")
	}
	type page struct {
		Data []thing
		More bool `json:"has_more"`
	}
	first := read[page](t, send(a, "GET", "/v1/customers?limit=3", ""))
	rest := read[page](t, send(a, "GET", "/v1/customers?limit=3&starting_after="+first.Data[2].ID, ""))
	if len(first.Data) != 3 || !first.More || len(rest.Data) != 2 || rest.More {
		t.Errorf("got %+v, then %+v", first, rest)
	}
}

func TestADeletedCustomerIsGone(t *testing.T) {
	a := till(t, sim.World{})
	c := read[thing](t, send(a, "POST", "/v1/customers", "email=a@example.org"))
	send(a, "DELETE", "/v1/customers/"+c.ID, "")
	if w := send(a, "GET", "/v1/customers/"+c.ID, ""); w.Code != 404 {
		t.Errorf("got %d", w.Code)
	}
}

func TestAnExpiredKeyStaysExpired(t *testing.T) {
	a := till(t, sim.World{Steps: "charges.list: expire"})
	var got []int
	for range 2 {
		got = append(got, send(a, "GET", "/v1/charges", "").Code)
	}
	if diff := cmp.Diff(got, []int{401, 401}); diff != "" {
		t.Error(diff)
	}
}
