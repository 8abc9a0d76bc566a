package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider"
)

// A profile becomes the settings of a Transport.
func ExampleGet() {
	stripe, err := provider.Get("stripe")
	if err != nil {
		fmt.Println(err)
		return
	}
	t := &heed.Transport{Policy: stripe.Policy}
	if t.Classifier, t.Hints, err = stripe.Dialect(); err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: t}
	defer client.CloseIdleConnections()
	fmt.Println(stripe.Title, stripe.Policy.Key.Header)
	// Output: Stripe API (v1 and v2) Idempotency-Key
}

// An API that is in no profile: answers are read to their end before they are
// handed over, and a page that says 200 is no success.
func ExampleProfile_Dialect() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>We will be back soon</html>")
	}))
	defer api.Close()
	p, err := provider.Get("generic")
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Rules = append([]classify.Rule{{
		ID:   "maintenance",
		When: classify.Match{Statuses: []classify.StatusRange{{From: 200, To: 299}}, Body: classify.BodyHTML},
		Then: classify.Verdict{Class: classify.Transient, Retry: classify.Idempotent},
	}}, p.Rules...)
	t := &heed.Transport{Policy: policy.Policy{
		Retry:  policy.Retry{Attempts: 2},
		Verify: policy.Verify{Mode: policy.VerifyFull},
	}}
	if t.Classifier, t.Hints, err = p.Dialect(); err != nil {
		fmt.Println(err)
		return
	}
	defer t.CloseIdleConnections()
	_, err = (&http.Client{Transport: t}).Get(api.URL)
	if failed, ok := errors.AsType[*heed.Error](err); ok {
		fmt.Println(failed.Reason, failed.Report.Rule)
	}
	// Output: attempts-exhausted maintenance
}
