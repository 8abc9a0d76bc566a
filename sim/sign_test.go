package sim_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

func unix(t *testing.T, text string) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(n, 0)
}

// The expected signatures are the examples of the providers' documentation
// where there is one, else computed with openssl.
func TestSignaturesAreThoseOfTheProviders(t *testing.T) {
	for name, tt := range map[string]struct {
		sign    func(sim.Message) [][2]string
		message sim.Message
		want    [2]string
	}{
		"Standard Webhooks": {sim.SignStandard, sim.Message{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Time: unix(t, "1614265330"),
			Body: []byte(`{"test": 2432232314}`), Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
			[2]string{"Webhook-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
		"GitHub": {sim.SignGitHub, sim.Message{Body: []byte("Hello, World!"), Secret: "It's a Secret to Everybody"},
			[2]string{"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
		"Stripe": {sim.SignStripe, sim.Message{Time: unix(t, "1492774577"), Body: []byte(`{"id":"evt_1"}`), Secret: "whsec_test"},
			[2]string{"Stripe-Signature", "t=1492774577,v1=7656fc2882a7ca0a651666b36bf2f2f22ee204f54f608f227498a2419f2890b2"}},
		"Shopify": {sim.SignShopify, sim.Message{Body: []byte(`{"id":1}`), Secret: "hush"},
			[2]string{"X-Shopify-Hmac-Sha256", "VnKUjZsLuN5iZWjn5EntcBVCF9kMN43LglzCE1/GSeY="}},
	} {
		fields := tt.sign(tt.message)
		if diff := cmp.Diff(fields[len(fields)-1], tt.want); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
