package heed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// The zero Transport survives an outage that passes.
func ExampleTransport() {
	n := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "42 items")
	}))
	defer api.Close()

	client := &http.Client{Transport: &heed.Transport{}}
	resp, err := client.Get(api.URL + "/v1/items")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	report, _ := heed.ReportOf(resp)
	fmt.Printf("%s after %d attempts\n", body, report.Attempts)
	// Output: 42 items after 2 attempts
}

// A call may bring its own budget, its place in the line and a name for the log.
func ExampleWithCall() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer api.Close()

	client := &http.Client{Transport: &heed.Transport{
		Observe: func(e heed.Event) {
			if e.Kind == heed.CallDone {
				fmt.Println(e.CorrelationID, e.Attempt, e.Status, e.Reason)
			}
		},
	}}
	ctx := heed.WithCall(context.Background(), heed.Call{
		CorrelationID: "nightly-sync-7", Priority: 2, Budget: 10 * time.Second, RetryOff: true,
	})
	req, _ := http.NewRequestWithContext(ctx, "GET", api.URL+"/v1/items", nil)
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	// Output: nightly-sync-7 1 502 retry-off
}

// Where there is no answer to hand over, an Error says why and when to try again.
func ExampleError() {
	client := &http.Client{Transport: &heed.Transport{Policy: policy.Policy{
		Endpoint: "catalogue",
		Allow:    []policy.Allow{{Methods: []string{"GET"}}},
	}}}
	req, _ := http.NewRequest("DELETE", "http://catalogue.example/v1/items/1234567", nil)
	_, err := client.Do(req)
	if e, ok := errors.AsType[*heed.Error](err); ok {
		fmt.Println(e.Reason, e.Report.Attempts)
		fmt.Println(e)
	}
	// Output:
	// not-allowed 0
	// heed: DELETE catalogue/v1/items/{id}: not-allowed: the allow list of the endpoint does not have this method and path
}
