package stripe_test

import (
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/stripe"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestThePackAnswersLikeItsGoldenExchanges(t *testing.T) {
	charge := func(form string, header ...string) func(c *packtest.Client) packtest.Answer {
		return func(c *packtest.Client) packtest.Answer { return c.Send("POST", "/v1/charges", form, header...) }
	}
	for name, get := range map[string]func(c *packtest.Client) packtest.Answer{
		"an object that another request holds": func(c *packtest.Client) packtest.Answer {
			path, _ := intent(c, "payment_method=pm_card_held&confirm=true")
			return c.Send("POST", path+"/confirm", "")
		},
		"too many of the account": func(c *packtest.Client) packtest.Answer {
			c.Statuses(25, "/v1/charges")
			return c.Get("/v1/charges")
		},
		"a key with other parameters": func(c *packtest.Client) packtest.Answer {
			c.Send("POST", "/v1/charges", coffee, "Idempotency-Key: k")
			return c.Send("POST", "/v1/charges", coffee+"0", "Idempotency-Key: k")
		},
		"a parameter that is missing":       charge("currency=eur&source=tok_visa"),
		"a card that is declined":           charge("amount=350&currency=eur&source=tok_chargeDeclined"),
		"a secret key that is not accepted": charge(coffee, "Authorization: Bearer no"),
		"a success of an earlier attempt, played again": func(c *packtest.Client) packtest.Answer {
			c.Send("POST", "/v1/charges", coffee, "Idempotency-Key: k")
			return c.Send("POST", "/v1/charges", coffee, "Idempotency-Key: k")
		},
	} {
		got, want := get(open(t, sim.World{})), packtest.Golden(t, stripe.Pack(), name)
		if short := packtest.Alike(got, want, "code", "type"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
		for _, h := range []string{"Stripe-Rate-Limited-Reason", "Idempotent-Replayed"} {
			if got.Header.Get(h) != want.Header.Get(h) {
				t.Errorf("%s: %s: got %q, want %q", name, h, got.Header.Get(h), want.Header.Get(h))
			}
		}
	}
}
