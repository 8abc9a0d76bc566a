package heed

import (
	"net"
	"net/http"
	"time"

	"github.com/heedproject/heed/policy"
)

// NewBase returns the http.Transport that a Transport without Base uses: the
// timeouts of the policy, HTTP/2, and enough idle connections for a fleet.
func NewBase(t policy.Timeouts) *http.Transport {
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
