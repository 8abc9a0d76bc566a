package gateway

import (
	"net/http"
	"strings"
)

// dropHopByHop removes what concerns one connection only (RFC 9110 §7.6.1):
// the fields that Connection names, and those that are known to.
func dropHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.Trim(name, " \t"); name != "" {
				h.Del(name)
			}
		}
	}
	for k := range h {
		if hopByHop(k) {
			delete(h, k)
		}
	}
}

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
	dropHopByHop(h)
	for k := range h {
		switch {
		case k == "Expect": // fulfilled on this hop by reading the body
			delete(h, k)
		case k == "Authorization", k == "Cookie":
			if !rt.Passthrough {
				delete(h, k)
			}
		case strings.HasPrefix(k, "Heed-"):
			delete(h, k)
		}
	}
	if te {
		h["Te"] = trailers
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = noAgent
	}
}
