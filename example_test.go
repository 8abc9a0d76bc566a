package heed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/token"
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

// Why a call failed: an answer and an error have the same Report.
func ExampleReport() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/closed" {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer api.Close()
	client := &http.Client{Transport: &heed.Transport{}}
	why := func(resp *http.Response, err error) heed.Report {
		if e, ok := errors.AsType[*heed.Error](err); ok {
			return e.Report // nothing to hand over: heed decided
		}
		report, _ := heed.ReportOf(resp) // the server said, whatever its status
		return report
	}
	for _, path := range []string{"/v1/items", "/v1/closed", "/v1/items"} {
		resp, err := client.Get(api.URL + path)
		r := why(resp, err)
		if err == nil {
			resp.Body.Close()
		}
		switch {
		case r.Reason == "":
			fmt.Println("done")
		case r.Class == classify.Throttled:
			fmt.Println("throttled:", r.Reason, "in", time.Until(r.RetryAt).Round(time.Hour))
		default:
			fmt.Println("not sent:", r.Reason, "in", time.Until(r.RetryAt).Round(time.Hour), r.Attempts)
		}
	}
	// Output:
	// done
	// throttled: hint-over-ceiling in 1h0m0s
	// not sent: quota-wait-exceeds-deadline in 1h0m0s 0
}

// A poller with OAuth client credentials, at the published rate.
func ExampleTransport_token() {
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"access_token":"t1","token_type":"bearer","expires_in":3600}`)
	}))
	defer issuer.Close()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer api.Close()

	source := &token.Source{Fetcher: token.ClientCredentials{
		TokenURL: issuer.URL, ID: "poller", Secret: mask.Secret("from your vault"),
	}}
	defer source.Close()
	client := &http.Client{Transport: &heed.Transport{
		Token:  source,
		Policy: policy.Policy{Endpoint: "library", Limits: policy.Limits{Rate: 50, Source: "the vendor's page on limits"}},
	}}
	for _, path := range []string{"/v6/bibs", "/v6/items"} {
		resp, err := client.Get(api.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	// Output:
	// /v6/bibs Bearer t1
	// /v6/items Bearer t1
}

// A write is repeated, with one key, where the API honours keys.
func ExampleCall_key() {
	var mu sync.Mutex
	made, failed := map[string]int{}, map[string]bool{} // by key
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if strings.HasSuffix(key, "0") && !failed[key] { // done, and the answer is lost
			failed[key] = true
			w.WriteHeader(http.StatusGatewayTimeout)
		}
		made[key] = 1 // the same key is the same item
	}))
	defer api.Close()

	client := &http.Client{Transport: &heed.Transport{Policy: policy.Policy{
		Key:     policy.Key{Header: "Idempotency-Key"},
		Backoff: policy.Backoff{Base: time.Millisecond},
		Limits:  policy.Limits{Concurrency: 8},
	}}}
	var jobs sync.WaitGroup
	for n := range 50 {
		jobs.Go(func() {
			ctx := heed.WithCall(context.Background(), heed.Call{Key: fmt.Sprintf("import-%d", n)})
			req, _ := http.NewRequestWithContext(ctx, "POST", api.URL+"/v1/items", strings.NewReader(`{}`))
			resp, err := client.Do(req)
			if err != nil {
				fmt.Println(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				fmt.Println(resp.Status)
			}
		})
	}
	jobs.Wait()
	fmt.Println(len(made), "items,", len(failed), "answers lost")
	// Output: 50 items, 5 answers lost
}
