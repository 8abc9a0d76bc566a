package shopify_test

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// inbox keeps what webhooks send.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	told   []string // the topic, and the title of a product
	signed bool     // all of them
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{signed: true}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		in.mu.Lock()
		defer in.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		var e struct{ Title, Status string }
		if json.Unmarshal(body, &e) != nil {
			in.signed = false
		}
		mac := hmac.New(sha256.New, []byte("shpss_of_the_simulator"))
		mac.Write(body)
		in.signed = in.signed && r.Header.Get("X-Shopify-Hmac-Sha256") == base64.StdEncoding.EncodeToString(mac.Sum(nil))
		in.told = append(in.told, r.Header.Get("X-Shopify-Topic")+" "+cmp.Or(e.Title, e.Status))
	}))
	t.Cleanup(in.Close)
	return in
}

func subscribe(c *packtest.Client, in *inbox, topic string) packtest.Answer {
	c.T.Helper()
	return c.Send("POST", base+"webhooks.json", `{"webhook":{"topic":"`+topic+`","address":"`+in.URL+`","format":"json"}}`)
}

func TestAWebhookIsToldOfItsTopicWithASignature(t *testing.T) {
	c, in := open(t, sim.World{}), newInbox(t)
	for _, topic := range []string{"products/create", "bulk_operations/finish"} {
		subscribe(c, in, topic)
	}
	p := create(c, "Gauge")
	c.Send("DELETE", base+"products/"+strconv.Itoa(p.ID)+".json", "") // which nobody asked to be told of
	c.Advance(time.Second)
	ask(c, runBulk, nil)
	c.Advance(5 * time.Second)
	if diff := gocmp.Diff(in.told, []string{"products/create Gauge", "bulk_operations/finish completed"}); diff != "" || !in.signed {
		t.Errorf("%s, signed: %v", diff, in.signed)
	}
}

func TestAWebhookIsRegisteredOnceAndTakenBack(t *testing.T) {
	c, in := open(t, sim.World{}), newInbox(t)
	first := subscribe(c, in, "orders/create")
	got := []int{first.Status, subscribe(c, in, "orders/create").Status, subscribe(c, in, "weather/change").Status}
	list := packtest.Read[struct{ Webhooks []struct{ ID int } }](c.Get(base + "webhooks.json")).Webhooks
	got = append(got, len(list), c.Send("DELETE", base+"webhooks/"+strconv.Itoa(list[0].ID)+".json", "").Status)
	c.Send("POST", base+"orders.json", `{"order":{"line_items":[{"title":"x","price":"1","quantity":1}]}}`)
	c.Advance(time.Second)
	got = append(got, len(in.told))
	if diff := gocmp.Diff(got, []int{201, 422, 422, 1, 200, 0}); diff != "" {
		t.Error(diff)
	}
}
