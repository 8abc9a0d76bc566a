package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
)

// Digest is what the gateway keeps of a token. The zero Digest is none.
type Digest [sha256.Size]byte

// DigestOf returns the Digest of a token.
func DigestOf(token mask.Secret) Digest { return sha256.Sum256([]byte(token)) }

// is tells in constant time whether d is of token. Both are hashed first, so
// that not even the length can be told from the time.
func (d *Digest) is(token string) bool {
	got := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(d[:], got[:]) == 1
}

// Client is a holder of a token for the data port.
type Client struct {
	Name      string
	Token     Digest
	Endpoints []string // empty: all
	Methods   []string // empty: all; GET includes HEAD
	NoAsync   bool     // its calls are not answered later
}

func (c *Client) may(endpoint, method string) bool {
	return (len(c.Endpoints) == 0 || slices.Contains(c.Endpoints, endpoint)) &&
		policy.Covers(c.Methods, method)
}

// presented takes the token out of Heed-Token or, when there is none, out of
// Authorization: Bearer. fromAuth tells the latter, which is ours then and not
// the provider's.
func presented(h http.Header) (token string, fromAuth bool) {
	if v := h["Heed-Token"]; len(v) == 1 {
		return v[0], false
	}
	if v := h["Authorization"]; len(v) == 1 {
		if scheme, rest, ok := strings.Cut(v[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			return strings.TrimLeft(rest, " "), true
		}
	}
	return "", false
}

// client finds out who sent h, or returns nil. Every token is compared, so
// that the time does not tell which one was near.
func (t *table) client(h http.Header) *Client {
	token, fromAuth := presented(h)
	if token == "" {
		return nil
	}
	var found *Client
	for i := range t.Clients {
		if t.Clients[i].Token.is(token) {
			found = &t.Clients[i]
		}
	}
	if found != nil && fromAuth {
		delete(h, "Authorization")
	}
	return found
}

// A page in a browser can reach loopback too, and with a name of its own that
// resolves to it even read the answers. Where no token is asked for, a request
// must name the machine itself and must not come from a foreign page.

// foreign tells why r may be the work of a foreign page, or returns "".
func (t *table) foreign(r *http.Request) string {
	if last := t.host.Load(); last == nil || *last != r.Host {
		if !overSocket(r) {
			if !ownName(r.Host) {
				return "the Host field names something other than this machine"
			}
			host := r.Host
			t.host.Store(&host)
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		return "the request comes from a page of another site"
	}
	if crossOrigin.Check(r) != nil {
		return "the request comes from a page of another origin"
	}
	return ""
}

var crossOrigin = http.NewCrossOriginProtection()

func overSocket(r *http.Request) bool {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && a.Network() == "unix"
}

// ownName tells whether host, with or without a port, can only mean this
// machine: a literal loopback address or localhost (RFC 6761 §6.3). No host at
// all comes from HTTP/1.0, which browsers do not speak.
func ownName(host string) bool {
	if host == "" {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
