package heed

import (
	"net"
	"net/http"
	"time"

	"github.com/heedproject/heed/policy"
)

// NewBase returns the http.Transport that a Transport without Base uses: the
// timeouts of the policy, zero ones at their defaults, HTTP/2, the proxy of the
// environment, and enough idle connections for a fleet. Start from it for a
// client certificate or a proxy of your own: a Base of another type does not
// tell heed whether it took a connection for a request that failed, and so
// fewer writes are known to be unsent.
func NewBase(t policy.Timeouts) *http.Transport {
	t = policy.Policy{Timeouts: t}.WithDefaults().Timeouts
	dialer := &net.Dialer{Timeout: t.Connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   t.Connect,
		ResponseHeaderTimeout: t.Header,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   128,
		IdleConnTimeout:       90 * time.Second,
	}
}
