package provider_test

import (
	"fmt"
	"net/http"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/provider"
)

// A profile becomes the settings of a Transport.
func ExampleGet() {
	stripe, err := provider.Get("stripe")
	if err != nil {
		fmt.Println(err)
		return
	}
	classifier, problems := classify.New(stripe.Rules)
	hints, more := hint.NewReader(append(stripe.Hints, hint.Standard()...))
	client := &http.Client{Transport: &heed.Transport{Policy: stripe.Policy, Classifier: classifier, Hints: hints}}
	defer client.CloseIdleConnections()
	fmt.Println(stripe.Title, len(problems), len(more), stripe.Policy.Key.Header)
	// Output: Stripe API (v1 and v2) 0 0 Idempotency-Key
}
