// Package gateway lets a program in any language send its calls through heed
// by changing a base URL: http://127.0.0.1:8642/{endpoint}/{path}.
//
// The upstream's answer comes back as it was, with a few Heed-* fields beside
// it. When heed itself answers it is an RFC 9457 problem, with Heed-Origin and
// Proxy-Status (RFC 9209), so that a caller can always tell our 503 from the
// provider's.
package gateway

import (
	"net/url"

	"github.com/heedproject/heed"
)

// Endpoint is one upstream that the gateway serves under its name.
type Endpoint struct {
	Name      string
	URL       *url.URL
	Transport *heed.Transport
	// Passthrough sends the caller's own Authorization and Cookie on.
	Passthrough      bool
	RewriteLinks     bool
	FollowSameOrigin bool
	ForceQuery       map[string]string
}
