package heed_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/heedproject/heed"
)

func TestTimeThatRanOutIsATimeoutForWhoAsksTheWayOfNetHTTP(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pol := unpaced()
		pol.Retry.Budget = 5 * time.Second
		client := &http.Client{Transport: &heed.Transport{Base: plays(hangs), Policy: pol}}
		_, err := client.Do(request(t, "GET", ""))
		if e, ok := errors.AsType[*url.Error](err); !ok || !e.Timeout() || !os.IsTimeout(err) {
			t.Errorf("got %v, want a timeout", err)
		}
	})
}

func TestACancellationIsNoTimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := &http.Client{Transport: &heed.Transport{Base: plays(hangs)}}
	_, err := client.Do(request(t, "GET", "").WithContext(ctx))
	if err == nil || os.IsTimeout(err) {
		t.Errorf("got %v, want an error that is no timeout", err)
	}
}
