package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAThrottleThatIsTooLongToWaitForIsAFailureWithAnInstant(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer api.Close()
	for _, want := range []string{"status 429: hint-over-ceiling; try again at ", "quota-wait-exceeds-deadline"} { // the second is not sent
		if err := fetch(api.URL + "/v1/items?key=canary"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v, want %q and no query", err, want)
		}
	}
}
