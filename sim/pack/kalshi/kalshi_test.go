package kalshi_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
)

const (
	root   = "/trade-api/v2"
	orders = root + "/portfolio/orders"
	bid    = `{"ticker":"KXRAIN-26DEC-T1","side":"yes","action":"buy","count":3,"yes_price":1,"client_order_id":"c1"}`
)

type order struct {
	ID     string `json:"order_id"`
	Status string
}

func (r *rig) place(body string) order {
	r.T.Helper()
	var got struct{ Order order }
	r.signed("POST", orders, body).Into(&got)
	return got.Order
}

func TestMarketsArePublicAndTheirListEndsWithAnEmptyCursor(t *testing.T) {
	r := open(t, sim.World{})
	var sizes []int
	cursor, next := "x", ""
	for cursor != "" {
		var page struct {
			Markets []struct{ Ticker string }
			Cursor  string
		}
		r.Send("GET", root+"/markets?limit=50&cursor="+next, "").Into(&page)
		sizes = append(sizes, len(page.Markets))
		cursor, next = page.Cursor, page.Cursor
	}
	if diff := cmp.Diff(sizes, []int{50, 50, 20}); diff != "" {
		t.Error(diff)
	}
}

func TestAnOrderRestsUntilItIsCancelledAndCannotBeCancelledTwice(t *testing.T) {
	r := open(t, sim.World{})
	o := r.place(bid)
	first := r.signed("DELETE", orders+"/"+o.ID, "")
	second := r.signed("DELETE", orders+"/"+o.ID, "")
	if o.Status != "resting" || first.Status != 200 || told(second) != "409 conflict" {
		t.Errorf("got %+v, then %d, then %d %s", o, first.Status, second.Status, second.Body)
	}
}

func TestAnOrderAtThePriceOfTheMarketIsExecutedAtOnce(t *testing.T) {
	r := open(t, sim.World{})
	o := r.place(strings.Replace(bid, `"yes_price":1`, `"yes_price":99`, 1))
	if o.Status != "executed" {
		t.Errorf("got %+v", o)
	}
}

func TestAnOrderExpiresOnTheClockOfTheCaseAndGivesItsMoneyBack(t *testing.T) {
	r := open(t, sim.World{Clock: sim.Clock{Start: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}})
	at := strconv.FormatInt(r.Case.Now().Add(time.Minute).Unix(), 10)
	o := r.place(strings.Replace(bid, `"count":3`, `"count":3,"expiration_ts":`+at, 1))
	balance := func() int {
		var b struct{ Balance int }
		r.signed("GET", root+"/portfolio/balance", "").Into(&b)
		return b.Balance
	}
	got := []int{balance()}
	r.Advance(time.Minute)
	got = append(got, balance())
	if diff := cmp.Diff(got, []int{99_997, 100_000}); diff != "" {
		t.Error(diff)
	}
	var now struct{ Order order }
	r.signed("GET", orders+"/"+o.ID, "").Into(&now)
	if now.Order.Status != "canceled" {
		t.Errorf("got %+v", now)
	}
}

func TestASecondOrderWithTheSameClientIDIsRefusedAndTheFirstIsFound(t *testing.T) {
	r := open(t, sim.World{Steps: "orders.create: commit-then-504"})
	if w := r.signed("POST", orders, bid); w.Status != 504 {
		t.Fatalf("got %d", w.Status)
	}
	again := r.signed("POST", orders, bid)
	var list struct {
		Orders []struct {
			ClientID string `json:"client_order_id"`
		}
	}
	r.signed("GET", orders, "").Into(&list)
	if told(again) != "409 order_already_exists" || len(list.Orders) != 1 || list.Orders[0].ClientID != "c1" {
		t.Errorf("got %s, %+v", again.Body, list)
	}
	if n := r.Case.Effects().Kinds["order"].Count; n != 1 {
		t.Errorf("got %d orders", n)
	}
}

func TestAnOrderBeyondTheBalanceIsRefused(t *testing.T) {
	r := open(t, sim.World{})
	w := r.signed("POST", orders, strings.Replace(bid, `"count":3,"yes_price":1`, `"count":1100,"yes_price":99`, 1))
	if told(w) != "400 insufficient_balance" {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestAnAmendedOrderHasItsNewPriceAndIsPaidFor(t *testing.T) {
	r := open(t, sim.World{})
	o := r.place(bid)
	w := r.signed("POST", orders+"/"+o.ID+"/amend", `{"count":5,"yes_price":2}`)
	var b struct{ Balance int }
	r.signed("GET", root+"/portfolio/balance", "").Into(&b)
	if w.Status != 200 || b.Balance != 99_990 {
		t.Errorf("got %d %s, balance %d", w.Status, w.Body, b.Balance)
	}
}

func TestAThrottleTellsNothing(t *testing.T) {
	r := open(t, sim.World{})
	var w packtest.Answer
	for range 21 { // 200 tokens at 10 each
		w = r.Send("GET", root+"/markets?limit=1", "")
	}
	if w.Status != 429 || strings.TrimSpace(w.Body) != `{"error":"too many requests"}` {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
	for name := range w.Header {
		if strings.Contains(strings.ToLower(name), "ratelimit") || name == "Retry-After" {
			t.Errorf("got %s: %s", name, w.Header.Get(name))
		}
	}
	r.Advance(50 * time.Millisecond) // brings 10 tokens back
	if w := r.Send("GET", root+"/markets?limit=1", ""); w.Status != 200 {
		t.Errorf("after the wait: got %d", w.Status)
	}
}

func TestABatchCostsAsMuchAsItsOrders(t *testing.T) {
	r := open(t, sim.World{})
	one := `{"ticker":"KXRAIN-26DEC-T1","side":"yes","action":"buy","count":1,"yes_price":1}`
	batch := `{"orders":[` + strings.TrimSuffix(strings.Repeat(one+",", 20), ",") + `]}`
	got := []int{r.signed("POST", orders+"/batched", batch).Status, r.signed("POST", orders, bid).Status}
	r.Advance(100 * time.Millisecond) // 10 tokens of 100 a second
	got = append(got, r.signed("POST", orders, bid).Status)
	if diff := cmp.Diff(got, []int{201, 429, 201}); diff != "" {
		t.Error(diff)
	}
}

func TestAReadDoesNotUseUpTheBucketOfWrites(t *testing.T) {
	r := open(t, sim.World{})
	for range 21 {
		r.signed("GET", root+"/markets", "")
	}
	if w := r.signed("POST", orders, bid); w.Status != 201 {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestABatchIsCancelledOneByOne(t *testing.T) {
	r := open(t, sim.World{})
	o := r.place(bid)
	var got struct {
		Orders []struct {
			Reduced int `json:"reduced_by"`
			Error   *struct{ Code string }
		}
	}
	r.signed("DELETE", orders+"/batched", `{"ids":["`+o.ID+`","none"]}`).Into(&got)
	if len(got.Orders) != 2 || got.Orders[0].Reduced != 3 || got.Orders[1].Error == nil || got.Orders[1].Error.Code != "not_found" {
		t.Errorf("got %+v", got)
	}
}

func TestTheAccountTellsItsLimitsAndWhatEndpointsCost(t *testing.T) {
	r := open(t, sim.World{})
	var limits struct {
		Tier  string `json:"usage_tier"`
		Write struct {
			Refill   int `json:"refill_rate"`
			Capacity int `json:"bucket_capacity"`
		}
	}
	r.signed("GET", root+"/account/limits", "").Into(&limits)
	var costs struct {
		Default int `json:"default_cost"`
		Costs   []struct {
			Method string
			Cost   int
		} `json:"endpoint_costs"`
	}
	r.signed("GET", root+"/account/endpoint_costs", "").Into(&costs)
	if limits.Tier != "basic" || limits.Write.Refill != 100 || limits.Write.Capacity != 200 || costs.Default != 10 || len(costs.Costs) == 0 {
		t.Errorf("got %+v, %+v", limits, costs)
	}
}

func TestASignatureWithAnOldTimeIsRefused(t *testing.T) {
	r := open(t, sim.World{})
	sign := []string{"KALSHI-ACCESS-KEY: key-1", "KALSHI-ACCESS-SIGNATURE: c2ln", "KALSHI-ACCESS-TIMESTAMP: " + r.stamp()}
	got := []int{r.Send("GET", orders, "", sign...).Status}
	r.Advance(6 * time.Second)
	got = append(got, r.Send("GET", orders, "", sign...).Status)
	if diff := cmp.Diff(got, []int{200, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestThePortfolioNeedsASignature(t *testing.T) {
	r := open(t, sim.World{})
	for _, header := range [][]string{
		nil,
		{"KALSHI-ACCESS-KEY: key-1", "KALSHI-ACCESS-SIGNATURE: c2ln"},
		{"KALSHI-ACCESS-KEY: key-1", "KALSHI-ACCESS-SIGNATURE: c2ln", "KALSHI-ACCESS-TIMESTAMP: " + strconv.FormatInt(r.Case.Now().Unix(), 10)},
		{"KALSHI-ACCESS-KEY: key-1", "KALSHI-ACCESS-SIGNATURE: %%", "KALSHI-ACCESS-TIMESTAMP: " + r.stamp()},
	} {
		if w := r.Send("GET", orders, "", header...); told(w) != "401 authentication_error" {
			t.Errorf("%q: got %d %s", header, w.Status, w.Body)
		}
	}
}

// signer signs as docs.kalshi.com has it.
type signer struct{ key *rsa.PrivateKey }

func (s signer) header(t *testing.T, r *rig, method, path string) []string {
	t.Helper()
	stamp := r.stamp()
	digest := sha256.Sum256([]byte(stamp + method + path))
	sum, err := rsa.SignPSS(rand.Reader, s.key, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"KALSHI-ACCESS-KEY: key-1", "KALSHI-ACCESS-TIMESTAMP: " + stamp,
		"KALSHI-ACCESS-SIGNATURE: " + base64.StdEncoding.EncodeToString(sum)}
}

func newSigner(t *testing.T, r *rig) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"name": "test",
		"public_key": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))})
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Send("POST", root+"/api_keys", string(body), "KALSHI-ACCESS-KEY: key-1"); w.Status != http.StatusCreated {
		t.Fatalf("got %d %s", w.Status, w.Body)
	}
	return signer{key}
}

func TestASignatureIsVerifiedOnceItsKeyIsKnown(t *testing.T) {
	r := open(t, sim.World{})
	s := newSigner(t, r)
	good := s.header(t, r, "GET", orders)
	got := []int{
		r.Send("GET", orders+"?limit=5", "", good...).Status, // the query is not signed
		r.Send("GET", root+"/portfolio/balance", "", good...).Status,
		r.signed("GET", orders, "").Status,
	}
	if diff := cmp.Diff(got, []int{200, 401, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestAKeyThatIsNoneIsNotRegistered(t *testing.T) {
	r := open(t, sim.World{})
	if w := r.Send("POST", root+"/api_keys", `{"public_key":"no key"}`); told(w) != "400 invalid_parameters" {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestASignatureCoversThePathThatTheClientSees(t *testing.T) {
	r := open(t, sim.World{})
	s := newSigner(t, r)
	if w := r.Send("GET", orders, "", s.header(t, r, "GET", "/kalshi"+orders)...); w.Status != 401 {
		t.Errorf("signed another path: got %d", w.Status)
	}
	if w := r.Send("GET", "/kalshi"+orders, "", s.header(t, r, "GET", "/t/inside/kalshi"+orders)...); w.Status != 200 {
		t.Errorf("signed the path that it sees: got %d %s", w.Status, w.Body)
	}
}

func TestARevokedKeyStaysRevoked(t *testing.T) {
	r := open(t, sim.World{Steps: "orders.list: expire"})
	got := []int{r.signed("GET", orders, "").Status, r.signed("GET", orders, "").Status}
	if diff := cmp.Diff(got, []int{401, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestOnesOrdersAreNotAnothers(t *testing.T) {
	r := open(t, sim.World{})
	o := r.place(bid)
	w := r.Send("GET", orders+"/"+o.ID, "", "KALSHI-ACCESS-KEY: key-2", "KALSHI-ACCESS-SIGNATURE: c2ln", "KALSHI-ACCESS-TIMESTAMP: "+r.stamp())
	if w.Status != 404 {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}
