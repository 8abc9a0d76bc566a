package gateway

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Dialer opens connections for one endpoint and is the only thing that decides
// where they may go: it resolves the name itself, checks every address, and
// dials the address that it checked. What a name meant a moment before, or
// will mean a moment later, does not matter.
type Dialer struct {
	// Endpoint is the name that an error carries.
	Endpoint string
	// Networks are the ranges that may be dialed although they are not public.
	Networks []netip.Prefix
	// Own lists our own listeners, which are never dialed: a call would come
	// back to us without end. nil: there are none.
	Own func() []netip.AddrPort
	// Resolve looks a name up. nil: the resolver of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Timeout bounds the dial of one address. Default 10 s.
	Timeout time.Duration
}

// Blocked is a refusal to connect.
type Blocked struct {
	Endpoint string
	Host     string
	Addr     netip.Addr
	Why      string // what the address is
	// Fixed tells that no setting permits it.
	Fixed bool
}

// Error says what to write into heed.yaml where the address is meant.
func (b *Blocked) Error() string {
	who, where := "endpoint "+b.Endpoint, "endpoints."+b.Endpoint
	if b.Endpoint == callbackEndpoint {
		who, where = "callback", "queue.callbacks"
	}
	s := fmt.Sprintf("%s: %s is %s and is not dialed", who, b.Addr, b.Why)
	if b.Host != b.Addr.String() {
		s = fmt.Sprintf("%s: %s resolves to %s, %s, and is not dialed", who, b.Host, b.Addr, b.Why)
	}
	if b.Fixed {
		return s
	}
	return s + fmt.Sprintf("; if it is meant, write networks: [%s] under %s in heed.yaml",
		netip.PrefixFrom(b.Addr, b.Addr.BitLen()), where)
}

// Blocked tells the Transport what kind of failure this is, without a type of
// ours in between.
func (b *Blocked) Blocked() bool { return true }

// DialContext has the form that http.Transport wants.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	number, err := net.DefaultResolver.LookupPort(ctx, network, port)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	found, err := d.resolve(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var open []netip.AddrPort
	var blocked *Blocked
	for _, ip := range found {
		to := netip.AddrPortFrom(ip.Unmap(), uint16(number))
		if b := d.check(host, to); b != nil {
			blocked = b
			continue
		}
		open = append(open, to)
	}
	if len(open) == 0 && blocked != nil {
		return nil, blocked
	}
	return d.first(ctx, network, open)
}

func (d *Dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	look := d.Resolve
	if look == nil {
		look = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	found, err := look(ctx, host)
	if err == nil && len(found) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return found, err
}

// first dials one address after the other, in the order of the resolver
// (RFC 6724), each with its share of the time.
func (d *Dialer) first(ctx context.Context, network string, to []netip.AddrPort) (net.Conn, error) {
	limit := d.Timeout
	if limit <= 0 {
		limit = 10 * time.Second
	}
	end := time.Now().Add(limit)
	if t, ok := ctx.Deadline(); ok && t.Before(end) {
		end = t
	}
	var err error
	for i, ap := range to {
		share := time.Until(end) / time.Duration(len(to)-i)
		nd := net.Dialer{Timeout: max(share, time.Millisecond)}
		c, e := nd.DialContext(ctx, network, ap.String())
		if e == nil {
			return c, nil
		}
		if err == nil {
			err = e
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// check tells why an address is not dialed, or returns nil.
func (d *Dialer) check(host string, to netip.AddrPort) *Blocked {
	ip := to.Addr().WithZone("")
	b := &Blocked{Endpoint: d.Endpoint, Host: host, Addr: ip}
	if d.own(to) {
		b.Why, b.Fixed = "the address of this gateway itself", true
		return b
	}
	if slices.Contains(metadata, inner(ip)) {
		// A range that happens to hold it is not enough: who can read the
		// metadata service owns the machine's role.
		if slices.ContainsFunc(d.Networks, func(p netip.Prefix) bool { return p.IsSingleIP() && contains(p, ip) }) {
			return nil
		}
		b.Why = "a cloud metadata service"
		return b
	}
	if b.Why = unreachable(ip); b.Why == "" {
		return nil
	}
	if slices.ContainsFunc(d.Networks, func(p netip.Prefix) bool { return contains(p, ip) }) {
		return nil
	}
	return b
}

func contains(p netip.Prefix, ip netip.Addr) bool {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked().Contains(ip)
}

// own tells whether to is one of our listeners. One that listens everywhere is
// reached at every address of the machine.
func (d *Dialer) own(to netip.AddrPort) bool {
	if d.Own == nil {
		return false
	}
	for _, l := range d.Own() {
		if l.Port() != to.Port() {
			continue
		}
		at, ip := l.Addr().Unmap(), to.Addr().WithZone("")
		if at == ip || ip.IsUnspecified() || at.IsUnspecified() && (ip.IsLoopback() || local(ip)) {
			return true
		}
	}
	return false
}

func local(ip netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // nobody knows: rather refuse
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == ip
	})
}
