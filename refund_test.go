package heed_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed"
)

func TestARetryThatNobodyWaitedForCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})
		tr := &heed.Transport{Base: down}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Millisecond, cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example/v1/items", strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.RoundTrip(req); err == nil {
			t.Fatal("RoundTrip: got an answer, want Canceled")
		}
		if got, want := tr.Gates()[0].RetryTokens, 500; got != want {
			t.Errorf("retry tokens: got %d, want %d", got, want)
		}
	})
}
