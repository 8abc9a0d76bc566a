package gateway

import (
	"net/http"
	"strings"
)

// dropNamed removes the fields that Connection names (RFC 9110 §7.6.1).
func dropNamed(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.Trim(name, " \t"); name != "" {
				h.Del(name)
			}
		}
	}
}

// hopByHop tells whether a field is known to concern one connection only.
func hopByHop(k string) bool {
	switch k {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// hasToken tells whether one of the comma-separated lines holds token.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for t := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(t, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// noAgent keeps net/http from naming itself where the caller sent no User-Agent.
var noAgent = []string{""}

// trailers is the one TE member that may cross a proxy.
var trailers = []string{"trailers"}

// outgoing turns the header of a request into the one that is sent. It is
// changed in place: net/http looks at what it needs before the handler runs.
func (rt *route) outgoing(h http.Header) {
	te := hasToken(h["Te"], "trailers")
	dropNamed(h)
	for k := range h {
		if hopByHop(k) || strings.HasPrefix(k, "Heed-") || !rt.Passthrough && (k == "Authorization" || k == "Cookie") {
			delete(h, k)
		}
	}
	delete(h, "Expect") // fulfilled on this hop by reading the body
	if te {
		h["Te"] = trailers
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = noAgent
	}
}
