package stripe_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/stripe"
)

// open is a Stripe whose client has a key of the sandbox.
func open(t *testing.T, w sim.World) *packtest.Client {
	t.Helper()
	c := packtest.Serve(t, stripe.Pack(), w)
	c.Header.Set("Authorization", "Bearer sk_test_1")
	c.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c
}

// told is the status, and the code of the error or else its type.
func told(a packtest.Answer) string {
	e := packtest.Read[struct{ Error struct{ Type, Code string } }](a).Error
	if e.Code == "" {
		e.Code = e.Type
	}
	return strings.TrimSpace(strconv.Itoa(a.Status) + " " + e.Code)
}

// intent makes one, and gives its path and state.
func intent(c *packtest.Client, form string) (path, status string) {
	c.T.Helper()
	p := packtest.Read[thing](c.Send("POST", "/v1/payment_intents", "amount=900&currency=eur&"+form))
	return "/v1/payment_intents/" + p.ID, p.Status
}

func state(a packtest.Answer) string { return packtest.Read[thing](a).Status }

func TestAnIntentIsConfirmedAndThenItIsTooLateToCancel(t *testing.T) {
	c := open(t, sim.World{})
	path, first := intent(c, "payment_method=pm_card_visa")
	got := []string{first, state(c.Send("POST", path+"/confirm", "")), told(c.Send("POST", path+"/cancel", "")), told(c.Send("POST", path+"/confirm", ""))}
	if diff := cmp.Diff(got, []string{"requires_confirmation", "succeeded", "400 payment_intent_unexpected_state", "400 payment_intent_unexpected_state"}); diff != "" {
		t.Error(diff)
	}
}

func TestAnIntentThatIsCancelledCanNoLongerBeConfirmed(t *testing.T) {
	c := open(t, sim.World{})
	path, _ := intent(c, "payment_method=pm_card_visa")
	got := []string{state(c.Send("POST", path+"/cancel", "")), told(c.Send("POST", path+"/confirm", ""))}
	if diff := cmp.Diff(got, []string{"canceled", "400 payment_intent_unexpected_state"}); diff != "" || c.Case.Effects().Charges != 0 {
		t.Errorf("%s, %+v", diff, c.Case.Effects())
	}
}

func TestMoneyThatIsReservedIsCapturedInPart(t *testing.T) {
	c := open(t, sim.World{})
	path, first := intent(c, "payment_method=pm_card_visa&capture_method=manual&confirm=true")
	tooMuch := told(c.Send("POST", path+"/capture", "amount_to_capture=901"))
	p := packtest.Read[struct {
		Status   string
		Received int `json:"amount_received"`
	}](c.Send("POST", path+"/capture", "amount_to_capture=400"))
	if first != "requires_capture" || tooMuch != "400 parameter_missing" || p.Status != "succeeded" || p.Received != 400 {
		t.Errorf("got %s, %s, %+v", first, tooMuch, p)
	}
}

func TestMoneyThatIsReservedIsLetGoAfterAWeek(t *testing.T) {
	c := open(t, sim.World{})
	path, _ := intent(c, "payment_method=pm_card_visa&capture_method=manual&confirm=true")
	c.Advance(7 * 24 * time.Hour)
	if got := state(c.Get(path)); got != "canceled" {
		t.Errorf("got %q", got)
	}
}

func TestAPayerWhoMustActCanBeReplacedByAnotherCard(t *testing.T) {
	c := open(t, sim.World{})
	path, first := intent(c, "payment_method=pm_card_authenticationRequired&confirm=true")
	got := []string{first, state(c.Send("POST", path, "payment_method=pm_card_visa")), state(c.Send("POST", path+"/confirm", ""))}
	if diff := cmp.Diff(got, []string{"requires_action", "requires_confirmation", "succeeded"}); diff != "" {
		t.Error(diff)
	}
}

func TestADeclinedCardLeavesTheIntentToAnotherOne(t *testing.T) {
	c := open(t, sim.World{})
	path, _ := intent(c, "payment_method=pm_card_chargeDeclined")
	got := []string{told(c.Send("POST", path+"/confirm", "")), state(c.Get(path)), state(c.Send("POST", path+"/confirm", "payment_method=pm_card_visa"))}
	if diff := cmp.Diff(got, []string{"402 card_declined", "requires_payment_method", "succeeded"}); diff != "" {
		t.Error(diff)
	}
}

func TestAnObjectThatAnotherRequestHoldsIsALockTimeoutWithoutAReason(t *testing.T) {
	c := open(t, sim.World{})
	path, _ := intent(c, "payment_method=pm_card_held&confirm=true")
	a := c.Send("POST", path+"/confirm", "")
	if told(a) != "429 lock_timeout" || a.Header.Get("Stripe-Rate-Limited-Reason") != "" || a.Header.Get("Stripe-Should-Retry") != "true" {
		t.Errorf("got %d %v %s", a.Status, a.Header, a.Body)
	}
	c.Advance(2 * time.Second)
	if got := state(c.Send("POST", path+"/confirm", "")); got != "succeeded" {
		t.Errorf("later: got %q", got)
	}
}

func TestAnIntentWithoutAMethodIsNotMadeWhenItIsToBeConfirmed(t *testing.T) {
	c := open(t, sim.World{})
	a := c.Send("POST", "/v1/payment_intents", "amount=900&currency=eur&confirm=true")
	list := packtest.Read[struct{ Data []thing }](c.Get("/v1/payment_intents"))
	if a.Status != 400 || len(list.Data) != 0 {
		t.Errorf("got %d, %+v", a.Status, list)
	}
}

func TestAKeyThatIsInFlightIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := till(t, sim.World{Steps: "charges.create: slow(for=10s)"})
		first := make(chan int)
		go func() { first <- send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k").Code }()
		synctest.Wait() // the first one is at work
		w := send(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k")
		if got := code(t, w); got != "409 idempotency_error idempotency_key_in_use" || w.Header().Get("Stripe-Should-Retry") != "true" {
			t.Errorf("got %s %v", got, w.Header())
		}
		a.Case("").Advance(10 * time.Second)
		if got := <-first; got != 200 || a.Effects().Charges != 1 {
			t.Errorf("got %d, %+v", got, a.Effects())
		}
	})
}

func TestALiveKeyHasFourTimesTheRateButNotAtOneEndpoint(t *testing.T) {
	c := open(t, sim.World{})
	c.Header.Set("Authorization", "Bearer sk_live_1")
	reason := func(path string) string {
		var a packtest.Answer
		for range 26 {
			a = c.Get(path)
		}
		return strconv.Itoa(a.Status) + a.Header.Get("Stripe-Rate-Limited-Reason")
	}
	got := []string{reason("/v1/charges"), reason("/v1/customers"), reason("/v1/refunds")}
	if diff := cmp.Diff(got, []string{"429endpoint-rate", "429endpoint-rate", "429endpoint-rate"}); diff != "" {
		t.Error(diff)
	}
	c.Statuses(25, "/v1/events") // with these, a hundred were let through
	if a := c.Get("/v1/payment_intents"); a.Status != 429 || a.Header.Get("Stripe-Rate-Limited-Reason") != "global-rate" {
		t.Errorf("got %d %v", a.Status, a.Header)
	}
}

func TestAListIsNarrowedAndReadBackwards(t *testing.T) {
	c := open(t, sim.World{})
	who := packtest.Read[thing](c.Send("POST", "/v1/customers", "email=a@example.org")).ID
	var ids []string
	for range 3 {
		ids = append(ids, packtest.Read[thing](c.Send("POST", "/v1/charges", coffee+"&customer="+who)).ID)
	}
	c.Send("POST", "/v1/charges", coffee)
	type page struct {
		Data []thing
		More bool `json:"has_more"`
	}
	mine := packtest.Read[page](c.Get("/v1/charges?customer=" + who))
	before := packtest.Read[page](c.Get("/v1/charges?limit=1&customer=" + who + "&ending_before=" + ids[0]))
	if len(mine.Data) != 3 || len(before.Data) != 1 || before.Data[0].ID != ids[1] || !before.More {
		t.Errorf("got %+v, then %+v", mine, before)
	}
}

func TestWhatHappenedIsToldByEvents(t *testing.T) {
	c := open(t, sim.World{})
	charge := packtest.Read[thing](c.Send("POST", "/v1/charges", coffee)).ID
	c.Send("POST", "/v1/refunds", "charge="+charge)
	type event struct {
		ID, Type string
		Data     struct{ Object struct{ ID string } }
	}
	list := packtest.Read[struct{ Data []event }](c.Get("/v1/events"))
	var types []string
	for _, e := range list.Data {
		types = append(types, e.Type)
	}
	if diff := cmp.Diff(types, []string{"charge.refunded", "charge.succeeded"}); diff != "" {
		t.Fatal(diff)
	}
	one := packtest.Read[event](c.Get("/v1/events/" + list.Data[1].ID))
	if one.Data.Object.ID != charge {
		t.Errorf("got %+v", one)
	}
	narrowed := packtest.Read[struct{ Data []event }](c.Get("/v1/events?type=charge.refunded"))
	if len(narrowed.Data) != 1 {
		t.Errorf("got %+v", narrowed)
	}
}

// receiver keeps what it is told.
type receiver struct {
	*httptest.Server
	mu        sync.Mutex
	signature string
	bodies    []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.signature = q.Header.Get("Stripe-Signature")
		r.bodies = append(r.bodies, string(body))
	}))
	t.Cleanup(r.Close)
	return r
}

func TestAWebhookThatIsRegisteredIsToldWithASignatureOfItsSecret(t *testing.T) {
	c, r := open(t, sim.World{}), newReceiver(t)
	form := url.Values{"url": {r.URL}, "enabled_events[]": {"charge.succeeded"}}.Encode()
	e := packtest.Read[struct{ ID, Secret string }](c.Send("POST", "/v1/webhook_endpoints", form))
	c.Send("POST", "/v1/charges", coffee)
	c.Send("POST", "/v1/customers", "name=x") // which nobody asked to be told of
	c.Advance(time.Second)
	if len(r.bodies) != 1 {
		t.Fatalf("got %d messages", len(r.bodies))
	}
	var event struct {
		ID, Type string
		Data     struct{ Object struct{ Amount int } }
	}
	if err := json.Unmarshal([]byte(r.bodies[0]), &event); err != nil || event.Type != "charge.succeeded" || event.Data.Object.Amount != 350 {
		t.Errorf("got %+v, %v", event, err)
	}
	stamp, sum, _ := strings.Cut(strings.TrimPrefix(r.signature, "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte(e.Secret))
	_, _ = io.WriteString(mac, stamp+"."+r.bodies[0])
	if want := hex.EncodeToString(mac.Sum(nil)); sum != want || stamp != strconv.FormatInt(packtest.Noon.Add(time.Second).Unix(), 10) {
		t.Errorf("got %q, want the sum %s", r.signature, want)
	}
	if a := c.Get("/v1/webhook_endpoints/" + e.ID); strings.Contains(a.Body, "secret") {
		t.Errorf("the secret is shown again: %s", a.Body)
	}
}

func TestAWebhookThatIsDeletedIsToldNothing(t *testing.T) {
	c, r := open(t, sim.World{}), newReceiver(t)
	form := url.Values{"url": {r.URL}, "enabled_events[]": {"*"}}.Encode()
	e := packtest.Read[thing](c.Send("POST", "/v1/webhook_endpoints", form))
	a := c.Send("DELETE", "/v1/webhook_endpoints/"+e.ID, "")
	c.Send("POST", "/v1/charges", coffee)
	c.Advance(time.Second)
	if a.Status != 200 || len(r.bodies) != 0 {
		t.Errorf("got %d, %d messages", a.Status, len(r.bodies))
	}
}

func TestAWebhookNeedsAURLAndEvents(t *testing.T) {
	c := open(t, sim.World{})
	for _, form := range []string{"enabled_events[]=*", "url=http://127.0.0.1:1/", "url=nowhere&enabled_events[]=*"} {
		if a := c.Send("POST", "/v1/webhook_endpoints", form); a.Status != 400 {
			t.Errorf("%s: got %d %s", form, a.Status, a.Body)
		}
	}
}

func TestAnswersHaveARequestID(t *testing.T) {
	c := open(t, sim.World{})
	one, two := c.Get("/v1/charges").Header.Get("Request-Id"), c.Get("/v1/charges/none").Header.Get("Request-Id")
	if !strings.HasPrefix(one, "req_") || !strings.HasPrefix(two, "req_") || one == two {
		t.Errorf("got %q and %q", one, two)
	}
}

func TestTheSameSeedIsTheSameStoryAndAnotherIsNot(t *testing.T) {
	story := func(seed uint64) (bodies []string) {
		c := open(t, sim.World{Seed: seed, FailureRate: 0.2})
		for range 10 {
			bodies = append(bodies, c.Send("POST", "/v1/charges", coffee).Body)
		}
		return append(bodies, c.Get("/v1/events?limit=100").Body)
	}
	first := story(1)
	if diff := cmp.Diff(story(1), first); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(story(2), first) {
		t.Error("another seed tells the same story")
	}
}
